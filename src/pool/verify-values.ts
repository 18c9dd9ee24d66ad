/** A deep look at the values of an event file: strings, bools, and saved reductions against the tensors they are of. */

import { type Batch, type Engine, KNOWN, type SlotReader } from '../engine/engine.js'
import { isDefined, Moments } from '../engine/moments.js'
import { parseReductionName } from '../format/reduction-name.js'
import type { DType, ReductionName } from '../types.js'

/** Tensors whose moments are kept for comparing; those of further ones are not compared. */
const MAX_KEPT = 1 << 16
/** Of float16 and bfloat16 the hook may have computed in their own precision; else float32 is the least. */
const COARSE: ReadonlySet<DType> = new Set(['float16', 'bfloat16'])

/** Where a saved reduction lies, and what it says. */
interface Saved {
  readonly reduction: ReductionName
  readonly tensor: string
  readonly step: number
  readonly value: number
  /** The number of its record. */
  readonly record: number
}

/** A saved reduction that is not that of the tensor beside it. */
export interface Mismatch {
  readonly saved: Saved
  readonly computed: number
}

/** What a look at one value has found. */
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
  /** By step and tensor. */
  readonly #moments = new Map<string, Moments>()
  readonly #saved: Saved[] = []

  constructor(engine: Engine) {
    this.#engine = engine
  }

  /** Decodes the value in a surveyed slot. */
  look(room: Batch, slots: SlotReader, i: number, tensor: string, record: number): ValueFault {
    const engine = this.#engine
    const { dtype, kind, dataByteLength } = slots.found(i)
    if (dtype === 'string') return engine.everyString(room, i, isText) ? null : 'text'
    let fault: ValueFault = null
    if (dtype === 'bool' && kind === 'content') {
      const data = slots.dataAddress(i)
      const known =
        engine.countEqual('uint8', data, dataByteLength, 0) + engine.countEqual('uint8', data, dataByteLength, 1)
      if (known !== dataByteLength) fault = 'bool'
    }
    this.keep(
      new Moments(engine.layout.moments, dtype, engine.reduceSlot(room, i, KNOWN.all).slice()),
      tensor,
      slots.eventStep(i),
      record,
    )
    return fault
  }

  /** Keeps the moments of a tensor, or the number that a saved reduction is. */
  keep(moments: Moments, tensor: string, step: number, record: number): void {
    if (this.#moments.size + this.#saved.length >= MAX_KEPT) return
    const name = parseReductionName(tensor)
    if (name === null) this.#moments.set(`${step} ${tensor}`, moments)
    else if (moments.count === 1 && isDefined('min', moments.dtype)) {
      this.#saved.push({ ...name, step, value: moments.reduction('min') as number, record })
    }
  }

  /** Saved reductions that are not those of their tensors, in the order of their records. */
  *mismatches(): Generator<Mismatch> {
    for (const saved of this.#saved) {
      const moments = this.#moments.get(`${saved.step} ${saved.tensor}`)
      if (moments === undefined || moments.count === 0 || !isDefined('min', moments.dtype)) continue
      const computed = moments.reduction(saved.reduction) as number
      if (!isSame(saved, computed, moments)) yield { saved, computed }
    }
  }
}

/**
 * Whether a saved reduction may be that of a tensor. The hook computes in float32 and in an order of its own, PyTorch's
 * spreads are unbiased, and what leaves the range of float32 says nothing.
 */
function isSame({ reduction, value }: Saved, computed: number, moments: Moments): boolean {
  if (Object.is(value, computed) || value === computed) return true
  if (Number.isNaN(value) !== Number.isNaN(computed)) return isBeyond(computed, moments)
  const limit = COARSE.has(moments.dtype) ? 65504 : 3.4e38
  if (!Number.isFinite(value) || !Number.isFinite(computed))
    return !Number.isFinite(computed) ? false : isBeyond(computed, moments)
  const base = reduction.replace('abs_', '')
  const tolerance = COARSE.has(moments.dtype) ? 2e-2 : 1e-3
  const n = moments.count
  const largest = moments.slot('maxAbs')
  if (largest >= limit) return true
  if (base === 'prod') {
    const [a, b] = [Math.abs(value), Math.abs(computed)]
    // A product of many factors leaves float32's range on the way, in one order or another.
    return a < 1e-30 || b < 1e-30 || a > 1e30 || b > 1e30 || Math.abs(value / computed - 1) < tolerance * 10
  }
  const close = (expected: number, scale: number): boolean => Math.abs(value - expected) <= tolerance * scale
  if (base === 'min' || base === 'max') return close(computed, Math.abs(computed))
  if (base === 'sum') return close(computed, moments.slot('sumAbs'))
  if (base === 'mean') return close(computed, moments.slot('meanAbs'))
  if (base === 'l1' || base === 'l2') return close(computed, Math.abs(computed))
  // Of one element the unbiased spread does not exist; near-equal elements lose their digits.
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

/** Whether float32, or float16, may have overflowed on the way to a number. */
function isBeyond(computed: number, moments: Moments): boolean {
  const limit = COARSE.has(moments.dtype) ? 255 : 1e18
  return moments.count === 1 || moments.slot('maxAbs') > limit || Math.abs(computed) > limit
}
