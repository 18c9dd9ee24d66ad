/** Mutations of bytes that know nothing of what they mean. All chance comes from one seeded source. */

import { uniform } from '../../fixtures/random.js'

/** Seeded choices. */
export class Chance {
  readonly #next: () => number

  constructor(seed: number) {
    this.#next = uniform(seed)
  }

  /** A whole number from 0 to `limit` - 1. */
  below(limit: number): number {
    return Math.floor(this.#next() * limit)
  }

  /** True once in `times`. */
  once(times: number): boolean {
    return this.#next() * times < 1
  }

  pick<T>(list: ArrayLike<T>): T {
    return list[this.below(list.length)]!
  }
}

/** Numbers at which something changes: signs, widths of integers, lengths of varints, what a double holds exactly. */
export const EDGES: readonly bigint[] = [
  0n,
  1n,
  2n,
  7n,
  127n,
  128n,
  254n,
  255n,
  256n,
  16383n,
  65535n,
  65536n,
  2n ** 31n - 1n,
  2n ** 31n,
  2n ** 32n - 16n,
  2n ** 32n - 1n,
  2n ** 32n,
  2n ** 53n,
  2n ** 53n + 1n,
  2n ** 63n - 1n,
  2n ** 63n,
  2n ** 64n - 1n,
]

const EDGE_BYTES = [0, 1, 0x0a, 0x20, 0x7f, 0x80, 0xff]

/**
 * One to four mutations: bits, edge values, cuts, insertions, repetitions, and pieces of other inputs.
 * @param words byte strings that mean something to the reader
 * @param other gives another input to take pieces from
 */
export function mutateBytes(
  bytes: Uint8Array,
  chance: Chance,
  words: readonly Uint8Array[] = [],
  other: () => Uint8Array = () => bytes,
): Uint8Array {
  let out = Uint8Array.from(bytes)
  for (let left = 1 + chance.below(chance.below(4) + 1); left > 0; left--) out = mutateOnce(out, chance, words, other)
  return out
}

/** Changes one byte, or cuts one out. */
export function mutateByte(bytes: Uint8Array, chance: Chance): Uint8Array {
  const at = chance.below(bytes.length)
  if (bytes.length === 0 || chance.once(8)) return bytes.slice(0, at)
  if (chance.once(8)) return splice(bytes, at, 1)
  const out = bytes.slice()
  out[at] = chance.once(2) ? out[at]! ^ (1 << chance.below(8)) : chance.pick(EDGE_BYTES)
  return out
}

function mutateOnce(
  bytes: Uint8Array<ArrayBuffer>,
  chance: Chance,
  words: readonly Uint8Array[],
  other: () => Uint8Array,
): Uint8Array<ArrayBuffer> {
  const at = chance.below(bytes.length + 1)
  const some = Math.min(bytes.length - at, 1 + chance.below(1 << chance.below(8)))
  switch (chance.below(12)) {
    case 0:
    case 1:
      if (at < bytes.length) bytes[at]! ^= 1 << chance.below(8)
      return bytes
    case 2:
      if (at < bytes.length) bytes[at] = chance.pick(EDGE_BYTES)
      return bytes
    case 3:
      if (at < bytes.length) bytes[at] = chance.below(256)
      return bytes
    case 4:
      return splice(
        bytes,
        at,
        0,
        Uint8Array.from({ length: 1 + chance.below(8) }, () => chance.below(256)),
      )
    case 5:
      return splice(bytes, at, some)
    case 6:
      return splice(bytes, at, 0, bytes.subarray(at, at + some))
    case 7:
      return chance.once(4) ? bytes.slice(0, at) : splice(bytes, at, some)
    case 8: {
      const width = chance.pick([2, 4, 8])
      if (at + width <= bytes.length) bytes.set(littleEndian(chance.pick(EDGES), width), at)
      return bytes
    }
    case 9: {
      const source = other()
      const from = chance.below(source.length + 1)
      return splice(bytes, at, chance.once(2) ? some : 0, source.subarray(from, from + 1 + chance.below(64)))
    }
    default:
      if (words.length === 0) return splice(bytes, at, 0, Uint8Array.of(chance.pick(EDGE_BYTES)))
      return splice(bytes, at, chance.once(2) ? some : 0, chance.pick(words))
  }
}

/** The bytes with `count` of them at `at` replaced. */
export function splice(
  bytes: Uint8Array,
  at: number,
  count: number,
  put: Uint8Array = new Uint8Array(0),
): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(bytes.length - count + put.length)
  out.set(bytes.subarray(0, at))
  out.set(put, at)
  out.set(bytes.subarray(at + count), at + put.length)
  return out
}

export function littleEndian(value: bigint, width: number): Uint8Array {
  return Uint8Array.from({ length: width }, (_, i) => Number((value >> BigInt(8 * i)) & 255n))
}

export function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

export function concat(parts: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    out.set(part, at)
    at += part.length
  }
  return out
}
