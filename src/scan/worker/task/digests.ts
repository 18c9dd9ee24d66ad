/** Digests of elements: of their bytes as they lie in the core's memory, little-endian and in C order. */

import type { DigestName } from '../../../base/types.js'
import type { Address } from '../../../core/border/memory.js'
import type { Engine } from '../../../core/engine.js'
import { type ElementStatistic, isDigestName } from '../../../core/statistics/statistic.js'

/** Makes a SHA-256; null if none is requested. */
export type Sha256 = (() => { update(bytes: Uint8Array): unknown; digest(encoding: 'hex'): string }) | null

/** Loads SHA-256 only if such digests are requested. */
export async function sha256For(statistics: readonly ElementStatistic[]): Promise<Sha256> {
  if (!statistics.some(({ kind }) => kind === 'sha256')) return null
  const { createHash } = await import('node:crypto')
  return () => createHash('sha256')
}

/** The digest of bytes in the core's memory, as 32-bit words. */
export function digestOf(
  engine: Engine,
  kind: DigestName,
  address: Address,
  byteLength: number,
  sha256: Sha256,
): readonly number[] {
  if (kind === 'crc32c') return [engine.crc32c(address, byteLength)]
  const hash = sha256!()
  hash.update(engine.view(address, byteLength))
  return wordsOf(hash.digest('hex'))
}

/** The digests of neighbouring parts of a tensor, whose elements arrive piece by piece. */
export class PartDigests {
  readonly #engine: Engine
  readonly #crcs: { crc: number; byteLength: number }[]
  readonly #hash: ReturnType<NonNullable<Sha256>> | null
  readonly #isCrc: boolean

  constructor(engine: Engine, statistics: readonly ElementStatistic[], sha256: Sha256, parts: number) {
    this.#engine = engine
    this.#crcs = Array.from({ length: parts }, () => ({ crc: 0, byteLength: 0 }))
    this.#hash = sha256?.() ?? null
    this.#isCrc = statistics.some(({ kind }) => kind === 'crc32c')
  }

  /** True if pieces must come in the order of all parts, not only of each. */
  get needsOrder(): boolean {
    return this.#hash !== null
  }

  /** The number of bytes of elements so far. */
  get byteLength(): number {
    return this.#crcs.reduce((sum, { byteLength }) => sum + byteLength, 0)
  }

  add(part: number, address: Address, byteLength: number): void {
    const sum = this.#crcs[part]!
    if (this.#isCrc) sum.crc = this.#engine.crc32c(address, byteLength, sum.crc)
    sum.byteLength += byteLength
    this.#hash?.update(this.#engine.view(address, byteLength))
  }

  answer(kind: DigestName): readonly number[] {
    if (kind === 'sha256') return wordsOf(this.#hash!.digest('hex'))
    return [this.#crcs.reduce((sum, { crc, byteLength }) => this.#engine.crc32cCombine(sum, crc, byteLength), 0)]
  }
}

/** The digests among statistics. */
export function digestsAmong(statistics: readonly ElementStatistic[]): readonly ElementStatistic[] {
  return statistics.filter(({ kind }) => isDigestName(kind))
}

function wordsOf(hex: string): number[] {
  return Array.from({ length: hex.length / 8 }, (_, i) => Number.parseInt(hex.slice(8 * i, 8 * i + 8), 16))
}
