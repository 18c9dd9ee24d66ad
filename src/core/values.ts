/** Copies values out of the core: elements and strings, with a limit for those that are stored in short form. */

import { QueryError } from '../base/errors.js'
import { BLOCK_ELEMENTS, RecordSlot } from './border/abi.js'
import type { CoreMemory } from './border/memory.js'
import type { Core } from './border/module.js'
import { byteLengthOf, dtypeNumber, elementByteLength, type NarrowFloat } from './dtype.js'
import { type Batch, type RecordContents, SlotReader, utf8Decoder } from './slots.js'

/** The default limit for values that are stored in short form, in bytes. */
export const UNFOLD_LIMIT = 256 << 20
/** Approximate bytes of a string besides its characters. */
const STRING_BYTES = 32

/**
 * A limit for values that are stored in short form: a record of a hundred bytes can stand for any number of elements, since its last
 * value is repeated for all that are missing.
 */
export class UnfoldBudget {
  readonly #byteLength: number
  #remaining: number

  /** @param byteLength the limit for all values together */
  constructor(byteLength = UNFOLD_LIMIT) {
    this.#byteLength = byteLength
    this.#remaining = byteLength
  }

  /** @throws QueryError `ValueTooLarge` if less is left */
  take(byteLength: number): void {
    if (byteLength > this.#remaining) {
      throw new QueryError(
        'ValueTooLarge',
        `expected values that unfold to at most ${this.#byteLength} bytes in all, got one of ${byteLength} bytes, most of ` +
          'them copies of its last saved value; its reductions can still be scanned',
        { byteLength, unfoldLimit: this.#byteLength },
      )
    }
    this.#remaining -= byteLength
  }

  give(byteLength: number): void {
    this.#remaining += byteLength
  }
}

export class ValueReader {
  readonly #core: Core
  readonly #memory: CoreMemory

  constructor(core: Core, memory: CoreMemory) {
    this.#core = core
    this.#memory = memory
  }

  /** The little-endian bytes of the elements of a record in memory, in C order; `found` is the content of its slot. */
  copyElements(
    batch: Batch,
    i: number,
    contents: RecordContents,
    budget = new UnfoldBudget(),
  ): Uint8Array<ArrayBuffer> {
    const size = elementByteLength(contents.dtype)
    if (contents.kind === 'none' || contents.elementCount === 0) return new Uint8Array(0)
    if (contents.kind === 'content') {
      const data = new SlotReader(this.#memory, batch, batch.capacity).dataAddress(i)
      return this.#memory.view(data, contents.dataByteLength).slice()
    }
    if (contents.valueCount < contents.elementCount) budget.take(contents.elementCount * size)
    const out = allocate(contents.elementCount * size)
    return this.#memory.scoped(() => {
      const chunk = this.#memory.reserveBytes(BLOCK_ELEMENTS * size)
      let at = 0
      for (;;) {
        const count = this.#core.readValues(batch.slots + i * RecordSlot.size, chunk, BLOCK_ELEMENTS)
        if (count === 0) break
        out.set(this.#memory.view(chunk, count * size), at)
        at += count * size
      }
      // TensorFlow's rule: the last value is repeated to fill the shape. Each copy doubles what is filled.
      let filled = at
      const last = at - size
      while (filled < out.length) {
        const copied = Math.min(filled - last, out.length - filled)
        out.copyWithin(filled, last, last + copied)
        filled += copied
      }
      return out
    })
  }

  /** The strings of a record in memory; the last one is repeated as often as the shape requires. */
  copyStrings(batch: Batch, i: number, contents: RecordContents, budget = new UnfoldBudget()): string[] {
    const strings: string[] = []
    this.everyString(batch, i, bytes => strings.push(utf8Decoder.decode(bytes)) > 0)
    const last = strings.at(-1) ?? ''
    // Each repetition becomes a separate string when it crosses a thread.
    if (strings.length < contents.elementCount) budget.take(contents.elementCount * (STRING_BYTES + 2 * last.length))
    while (strings.length < contents.elementCount) strings.push(last)
    return strings
  }

  /** True if all strings of a record in memory pass a test; `i` is its slot. Each stored string is tested once, whatever the shape. */
  everyString(batch: Batch, i: number, test: (bytes: Uint8Array) => boolean): boolean {
    const slots = new SlotReader(this.#memory, batch, batch.capacity)
    while (this.#core.readString(batch.slots + i * RecordSlot.size) !== 0) {
      if (!test(this.#memory.view(slots.dataAddress(i), slots.dataByteLength(i)))) return false
    }
    return true
  }

  /** Elements of a narrow float as float32. */
  widenToFloat32(dtype: NarrowFloat, elements: Uint8Array, elementCount: number): Float32Array<ArrayBuffer> {
    const out = new Float32Array(allocate(elementCount * 4).buffer)
    const step = 1 << 16
    const size = elementByteLength(dtype)
    return this.#memory.scoped(() => {
      const from = this.#memory.reserveBytes(step * size)
      const to = this.#memory.reserveBytes(step * 4)
      for (let at = 0; at < elementCount; at += step) {
        const count = Math.min(step, elementCount - at)
        const byteLength = byteLengthOf(dtype, count)
        this.#memory.view(from, byteLength).set(elements.subarray(at * size, at * size + byteLength))
        this.#core.widenToFloat32(dtypeNumber(dtype), from, count, to)
        new Uint8Array(out.buffer, at * 4, count * 4).set(this.#memory.view(to, count * 4))
      }
      return out
    })
  }
}

/**
 * Allocates bytes outside of the core's memory.
 * @throws QueryError `ValueTooLarge` if there is not enough memory, and from 4 GiB on: when a longer array crosses a thread, its length
 *   is truncated modulo 2^32
 */
export function allocate(byteLength: number): Uint8Array<ArrayBuffer> {
  if (byteLength >= 2 ** 32) throw tooLarge(byteLength, 'bytes')
  try {
    return new Uint8Array(byteLength)
  } catch {
    throw tooLarge(byteLength, 'bytes')
  }
}

export function tooLarge(amount: number, unit: string): QueryError {
  return new QueryError(
    'ValueTooLarge',
    `expected a value that fits into memory, got one of ${amount} ${unit}; its reductions can still be scanned`,
    { amount, unit },
  )
}
