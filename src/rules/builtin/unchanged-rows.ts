/** UnchangedRows, a rule of trialscan's own, for checkpoints. */

import type { TensorAtStep } from '../../trial/measure/tensor-at-step.js'
import { builtin, each, type Judgements } from '../base/builtin.js'
import { Memory, type Moment } from '../base/moment.js'
import { integer, list, number } from '../parameters.js'
import type { Found } from '../rule.js'

/** The number of rows that a finding names. */
const MAX_REPORTED = 4

/** The rows of a tensor since its first step. */
interface Rows {
  readonly step: number
  /** The digests at the first step. */
  readonly first: Uint32Array
  /** 1 for each row that has differed from its first digest. */
  readonly hasChanged: Uint8Array
  /** The digests at the last step, and that step. */
  last: Uint32Array
  lastStep: number
  /** The last step at which a row changed, if any has, and the number of steps since. */
  changedStep: number | null
  standing: number
  steps: number
}

/**
 * Fires if rows of weights keep the bits of the first step while other rows of the tensor have changed, if a weight that has changed
 * stands still while others go on, and if rows of an optimizer's moments have always been zero while others were not.
 */
export class UnchangedRows extends builtin({
  meaning: 'Weights, or rows of them, do not change while others do: these layers, tokens or units do not learn.',
  advice:
    'Rows of an embedding belong to tokens that the data never have: look at the vocabulary, its padding, and the tokenizer. Elsewhere look for layers or units that are dead, masked or frozen, and for updates too small for the precision.',
  parameters: {
    collection_names: list('weights'),
    tensor_regex: list(),
    moments_regex: list('(^|[._])(exp_avg|exp_avg_sq|momentum_buffer)([.]|$)'),
    num_steps: integer(3, { min: 2 }),
    threshold: number(1, { min: 0, max: 100 }),
  },
  suggested: {
    threshold: ['10', 'in a healthy training some units are dead, and some tokens of a vocabulary are never used'],
  },
  isOfCheckpoints: true,
}) {
  readonly #weights = this.selectGiven({
    value: true,
    except: new RegExp(this.parameters.moments_regex.join('|') || '$^'),
  })
  readonly #moments = this.select({ regex: this.parameters.moments_regex, value: true, optional: true, quiet: true })
  readonly #seen = new Memory(() => new Map<string, Rows>())

  protected override *examine(moment: Moment): Iterable<Judgements> {
    yield this.#rows(this.#weights.at(moment), moment, false)
    yield this.#rows(this.#moments.at(moment), moment, true)
  }

  /** @param isZero true to ask for rows of zeros instead of unchanged rows */
  #rows(tensors: readonly TensorAtStep[], moment: Moment, isZero: boolean): Judgements {
    const seen = this.#seen.of(moment)
    return each(
      tensors,
      tensor => (tensor.hasValue ? tensor.rowDigests() : undefined),
      ({ value: digests }, { name, worker, step }): Found | null | undefined => {
        if (digests.length < 2) return undefined
        let rows = seen.get(name)
        if (rows?.first.length !== digests.length) {
          rows = {
            step,
            first: isZero ? new Uint32Array(digests.length) : digests,
            hasChanged: new Uint8Array(digests.length),
            last: digests,
            lastStep: step,
            changedStep: null,
            standing: 0,
            steps: 0,
          }
          seen.set(name, rows)
        }
        rows.steps++
        const { first, last, hasChanged: isOther, steps } = rows
        for (let row = 0; row < digests.length; row++) if (digests[row] !== first[row]) isOther[row] = 1
        const { num_steps, threshold } = this.parameters
        const hasMoved = !isZero && digests.some((digest, row) => digest !== last[row])
        rows.standing = hasMoved ? 0 : rows.standing + 1
        if (hasMoved) rows.changedStep = step
        const since = rows.lastStep
        rows.last = digests
        rows.lastStep = step
        if (steps < num_steps) return undefined
        const { changedStep, standing } = rows
        if (changedStep !== null && standing >= num_steps && hasOtherChanged(seen, Math.max(since, changedStep + 1))) {
          const message = `${name} has not changed since step ${changedStep}, over ${standing} steps, while other weights have`
          return { tensor: name, worker, value: 100, threshold, message }
        }
        const same = isOther.reduce((count, other) => count + 1 - other, 0)
        const value = (100 * same) / isOther.length
        // UnchangedTensor reports tensors that have not changed at all, OptimizerReset moments that are all zero.
        if (same === 0 || same === isOther.length || value < threshold) return null
        const are = same === 1 ? 'is' : 'are'
        const which = isZero
          ? `${are} zero at all ${steps} steps since step ${rows.step}`
          : `${same === 1 ? 'has' : 'have'} not changed since step ${rows.step}, over ${steps} steps`
        const message = `${same} of ${isOther.length} rows of ${name} ${which}: ${firstOf(isOther, same)}`
        return { tensor: name, worker, value, threshold, message }
      },
    )
  }
}

/** True if a tensor has changed at a step or behind it. */
function hasOtherChanged(seen: ReadonlyMap<string, Rows>, step: number): boolean {
  for (const { changedStep } of seen.values()) if (changedStep !== null && changedStep >= step) return true
  return false
}

/** The first unchanged rows, as text. */
function firstOf(isOther: Uint8Array, count: number): string {
  const rows: number[] = []
  for (let row = isOther.indexOf(0); row >= 0 && rows.length < MAX_REPORTED; row = isOther.indexOf(0, row + 1))
    rows.push(row)
  return `${rows.join(', ')}${count > rows.length ? ` and ${count - rows.length} more` : ''}`
}
