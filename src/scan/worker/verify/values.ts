/** The deep check of an event file's values: strings, bools, and saved reductions against their tensors. */

import { entryOf } from '../../../base/maps.js'
import type { DType, ReductionName } from '../../../base/types.js'
import { KnownMoments } from '../../../core/border/abi.js'
import { isNarrowFloat } from '../../../core/dtype.js'
import type { Engine } from '../../../core/engine.js'
import { isDefined, Moments } from '../../../core/moments.js'
import type { Batch, SlotReader } from '../../../core/slots.js'
import { parseReductionName } from '../../../format/reduction-name.js'

/** The number of tensors whose moments are kept for comparison; further ones are not compared. */
const MAX_KEPT = 1 << 16

/** The ranges of integer types. Frameworks sum and multiply in these types or wider ones. */
const INTEGERS: Readonly<Partial<Record<DType, readonly [number, number]>>> = {
  int8: [-128, 127],
  int16: [-32768, 32767],
  int32: [-(2 ** 31), 2 ** 31 - 1],
  int64: [-(2 ** 63), 2 ** 63],
  uint8: [0, 255],
  uint16: [0, 65535],
  uint32: [0, 2 ** 32 - 1],
  uint64: [0, 2 ** 64],
}

/** A saved reduction and its place. */
interface Saved {
  readonly reduction: ReductionName
  readonly tensor: string
  readonly step: number
  readonly value: number
  /** The index of its record. */
  readonly record: number
}

/** A tensor to compare saved reductions with. */
interface Kept {
  readonly moments: Moments
  readonly shape: readonly number[]
}

/** A saved reduction that differs from that of its tensor. */
export interface Mismatch {
  readonly saved: Saved
  readonly computed: number
}

/** The fault of a value. */
export type ValueFault = 'text' | 'bool' | null

const decoder = new TextDecoder('utf-8', { fatal: true })

export function isText(bytes: Uint8Array): boolean {
  try {
    decoder.decode(bytes)
    return true
  } catch {
    return false
  }
}

export class DeepLook {
  readonly #engine: Engine
  /** The tensors by step and name; one can be saved several times in a step. */
  readonly #kept = new Map<string, Kept[]>()
  #keptCount = 0
  readonly #saved: Saved[] = []

  constructor(engine: Engine) {
    this.#engine = engine
  }

  /** Decodes the value in a surveyed slot. */
  look(batch: Batch, slots: SlotReader, i: number, tensor: string, record: number): ValueFault {
    const engine = this.#engine
    const { dtype, kind, shape, dataByteLength } = slots.found(i)
    if (dtype === 'string') return engine.values.everyString(batch, i, isText) ? null : 'text'
    let fault: ValueFault = null
    if (dtype === 'bool' && kind === 'content') {
      const data = slots.dataAddress(i)
      const known =
        engine.elements.countEqual('uint8', data, dataByteLength, 0) +
        engine.elements.countEqual('uint8', data, dataByteLength, 1)
      if (known !== dataByteLength) fault = 'bool'
    }
    this.keep(
      new Moments(dtype, engine.reduceSlot(batch, i, KnownMoments.all).slice()),
      shape,
      tensor,
      slots.eventStep(i),
      record,
    )
    return fault
  }

  /** Keeps the moments of a tensor, or the value of a saved reduction. */
  keep(moments: Moments, shape: readonly number[], tensor: string, step: number, record: number): void {
    if (this.#keptCount + this.#saved.length >= MAX_KEPT) return
    const name = parseReductionName(tensor)
    if (name === null) {
      const key = `${step} ${tensor}`
      entryOf(this.#kept, key, () => []).push({ moments, shape })
      this.#keptCount++
    } else if (moments.count === 1 && isDefined('min', moments.dtype)) {
      this.#saved.push({ ...name, step, value: moments.reduction('min') as number, record })
    }
  }

  /** Yields saved reductions that differ from those of their tensors, in the order of their records. */
  *mismatches(): Generator<Mismatch> {
    for (const saved of this.#saved) {
      const all = this.#kept.get(`${saved.step} ${saved.tensor}`) ?? []
      const last = all.at(-1)
      if (last === undefined || all.some(kept => isPlausible(saved, kept))) continue
      yield { saved, computed: last.moments.reduction(saved.reduction) as number }
    }
  }
}

/**
 * True if a saved reduction may be that of a tensor. The hook computes in float32 and in its own order, PyTorch's spreads are unbiased,
 * and values beyond float32's range say nothing. Integers wrap, and the lowest has no absolute value. TensorFlow's hook uses numpy's
 * norms, which for two dimensions are matrix norms.
 */
function isPlausible({ reduction, value }: Saved, { moments, shape }: Kept): boolean {
  if (moments.count === 0 || !isDefined('min', moments.dtype)) return true
  const computed = moments.reduction(reduction) as number
  if (Object.is(value, computed) || value === computed) return true
  if (Number.isNaN(value) !== Number.isNaN(computed)) return mayOverflow(computed, moments)
  const limit = isNarrowFloat(moments.dtype) ? 65504 : 3.4e38
  if (!Number.isFinite(value) || !Number.isFinite(computed))
    return !Number.isFinite(computed) ? false : mayOverflow(computed, moments)
  const base = reduction.replace('abs_', '')
  const range = INTEGERS[moments.dtype]
  if (range) {
    const [lowest, highest] = range
    if (base !== reduction && moments.slot('min') === lowest) return true
    if ((base === 'sum' || base === 'prod') && !(computed >= lowest && computed <= highest)) return true
  }
  const tolerance = isNarrowFloat(moments.dtype) ? 2e-2 : 1e-3
  const n = moments.count
  const largest = moments.slot('maxAbs')
  if (largest >= limit) return true
  if (base === 'prod') {
    const [a, b] = [Math.abs(value), Math.abs(computed)]
    // A product of many factors leaves float32's range in one order or another.
    return a < 1e-30 || b < 1e-30 || a > 1e30 || b > 1e30 || Math.abs(value / computed - 1) < tolerance * 10
  }
  const close = (expected: number, scale: number): boolean => Math.abs(value - expected) <= tolerance * scale
  if (base === 'min' || base === 'max') return close(computed, Math.abs(computed))
  if (base === 'sum') return close(computed, moments.slot('sumAbs'))
  if (base === 'mean') return close(computed, moments.slot('meanAbs'))
  if (base === 'l1' || base === 'l2') {
    if (shape.length !== 2) return close(computed, computed)
    // The largest column sum and the largest singular value lie between these.
    const [rows, columns] = shape as readonly [number, number]
    const least = computed / (base === 'l1' ? columns : Math.sqrt(Math.min(rows, columns)))
    return value >= Math.max(least, largest) * (1 - tolerance) && value <= computed * (1 + tolerance)
  }
  // The unbiased spread of one element is undefined; near-equal elements lose their digits.
  if (n === 1) return true
  const unbiased = n / (n - 1)
  const meanAbs = moments.slot('meanAbs')
  if (base === 'std') {
    const scale = Math.abs(computed) + meanAbs
    return close(computed, scale) || close(computed * Math.sqrt(unbiased), scale)
  }
  const scale = Math.abs(computed) + meanAbs * meanAbs
  return close(computed, scale) || close(computed * unbiased, scale)
}

/** True if float32, or a narrower type, may have overflowed during the computation of a number. */
function mayOverflow(computed: number, moments: Moments): boolean {
  const limit = isNarrowFloat(moments.dtype) ? 255 : 1e18
  return moments.count === 1 || moments.slot('maxAbs') > limit || Math.abs(computed) > limit
}
