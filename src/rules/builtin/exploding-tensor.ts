/** ExplodingTensor: see docs/rules.md. */

import { type Kind, kindsOf } from '../../trial/kinds/kinds.js'
import { HALF, scalesLoss } from '../../trial/kinds/precision.js'
import { builtin, each, type Judgements } from '../base/builtin.js'
import { Memory, type Moment } from '../base/moment.js'
import { NOT_OF_TREES } from '../base/names.js'
import { Hold } from '../finding.js'
import { flag, list } from '../parameters.js'
import type { Found } from '../rule.js'

/** The gradients of a worker that overflowed, and whether that passed. */
interface Overflows {
  /** The findings that are held back, by gradient. */
  readonly held: Map<string, Hold[]>
  /** Gradients that are finite at the current step. */
  finite: Set<string>
  /** True if anything but gradients is not finite at the current step. */
  isAffected: boolean
  /** True if the precision is mixed, as far as the tensors so far show. */
  isMixed: boolean
}

/** The number of findings held back: a loss scale is halved at each overflow, and falls from 65,536 to 1 well within as many steps. */
const MAX_HELD = 32

/**
 * Fires if an element is NaN or, unless `only_nan`, infinite. With `skip_passed`, overflows of gradients in mixed precision are skipped
 * if the gradients are finite again when next saved and nothing else was affected.
 */
export class ExplodingTensor extends builtin({
  meaning: 'Values have grown beyond all bounds: there are NaN or infinite elements.',
  advice:
    'Lower the learning rate, or clip gradients. Look at the first step: the trouble begins in what the first tensor is computed from.',
  parameters: { collection_names: list(), tensor_regex: list(), only_nan: flag(false), skip_passed: flag(false) },
  suggested: {
    tensor_regex: [NOT_OF_TREES, "XGBoost's trees have NaN for whatever a leaf lacks"],
    skip_passed: [
      'true',
      'where the loss is scaled, as in mixed precision, a step whose gradients overflow is skipped, and the scale is lowered',
    ],
  },
}) {
  readonly #tensors = this.selectGiven({ all: true })

  readonly #overflows = new Memory(
    (): Overflows => ({ held: new Map(), finite: new Set(), isAffected: false, isMixed: scalesLoss(this.baseTrial) }),
  )
  #kindOf: ((name: string) => Kind) | undefined

  protected override *examine(moment: Moment): Iterable<Judgements> {
    const { only_nan: onlyNan, skip_passed } = this.parameters
    const overflows = this.#overflows.of(moment)
    const seen = (name: string, finding: Found | null): Found | null => {
      if (!skip_passed) return finding
      this.#kindOf ??= kindsOf(this.baseTrial)
      if (finding === null) {
        if (overflows.held.has(name)) overflows.finite.add(name)
        return null
      }
      if (this.#kindOf(name) !== 'gradients') {
        overflows.isAffected = true
        return finding
      }
      const hold = new Hold()
      overflows.held.set(name, [...(overflows.held.get(name) ?? []), hold])
      return { ...finding, hold }
    }
    const tensors = this.#tensors.at(moment)
    yield each(
      tensors,
      tensor => (tensor.hasValue ? tensor.counts() : undefined),
      ({ value: { nanCount, infinityCount, count, dtype } }, { name, worker }) => {
        overflows.isMixed ||= dtype === HALF
        const value = onlyNan ? nanCount : nanCount + infinityCount
        if (value === 0) return seen(name, null)
        const kinds = [nanCount > 0 && `${nanCount} NaN`, !onlyNan && infinityCount > 0 && `${infinityCount} infinite`]
        const message =
          count === 1
            ? `${name} is ${nanCount > 0 ? 'NaN' : 'infinite'}`
            : `${name} has ${kinds.filter(Boolean).join(' and ')} among its ${count} elements`
        return seen(name, { tensor: name, worker, value, threshold: 0, message })
      },
    )
    yield each(
      tensors.filter(({ hasValue }) => !hasValue),
      tensor => {
        const saved = tensor.savedReductions.map(reduction => [reduction, tensor.reduction(reduction)] as const)
        return saved.length > 0 ? saved : tensor.counts()
      },
      (saved, { name, worker }) => {
        // Only its shape was saved.
        if ('error' in saved) {
          if (this.isUnavailable(name)) return undefined
          throw saved.error
        }
        const reduction = saved.find(([, { value }]) => (onlyNan ? Number.isNaN(value) : !Number.isFinite(value)))
        if (!reduction) return seen(name, null)
        const value = reduction[1].value as number
        const message = `the saved ${reduction[0]} of ${name} is ${value}`
        return seen(name, { tensor: name, worker, value, threshold: null, message })
      },
    )
    if (skip_passed) {
      const settle = () => settleOverflows(overflows)
      yield { count: 1, judge: settle }
    }
  }
}

/** Settles open overflows at the end of a step. */
function settleOverflows(overflows: Overflows): undefined {
  const { held, finite, isAffected, isMixed } = overflows
  for (const [name, holds] of held) {
    const isTold = !isMixed || isAffected || holds.length > MAX_HELD
    if (!isTold && !finite.has(name)) continue
    for (const hold of holds) hold.state = isTold ? 'kept' : 'dropped'
    held.delete(name)
  }
  finite.clear()
  overflows.isAffected = false
}
