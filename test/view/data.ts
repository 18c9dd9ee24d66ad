/** What a report's file holds, read without any of its own code. */

import { inflateRawSync } from 'node:zlib'

interface Packed {
  readonly type: 'float64' | 'float32' | 'uint8'
  readonly length: number
  readonly base64: string
}

export interface ShownTrial {
  readonly name: string
  readonly checkpoint: string | null
  readonly steps: readonly number[]
  readonly mode: readonly number[]
  readonly modes: readonly string[]
  readonly workers: readonly string[]
  readonly tensors: readonly { name: string; kind: string; dtype: string | null; shape: readonly number[] | null }[]
  readonly series: readonly { tensor: number; worker: number }[]
  readonly states: Packed
  readonly columns: readonly { name: string; every: number; isExact: boolean; numbers: Packed }[]
  readonly ridges: readonly {
    series: number
    steps: number[]
    counts: number[]
    lows: number[]
    highs: number[]
    bins: number
    lost: number[][]
    most: number[]
    shares: Packed
  }[]
  readonly findings: readonly {
    rule: string
    step: number
    tensor: number | null
    cause: number | null
    message: string
  }[]
  readonly problems: readonly string[]
}

export function dataOf(html: string): { readonly title: string; readonly trials: readonly ShownTrial[] } {
  const [, json] = /<script id="data" type="application\/json">(.*?)<\/script>/s.exec(html)!
  return JSON.parse(json!) as never
}

/** The numbers, and whether each is one of a tensor: what has none is NaN, too. */
export function unpacked({ type, length, base64 }: Packed): { numbers: number[]; isThere: boolean[] } {
  const bytes = inflateRawSync(Buffer.from(base64, 'base64'))
  const width = { float64: 8, float32: 4, uint8: 1 }[type]
  const joined = Buffer.alloc(bytes.length)
  for (let i = 0; i < length; i++) for (let b = 0; b < width; b++) joined[i * width + b] = bytes[b * length + i]!
  const numbers = Array.from({ length }, (_, i) =>
    type === 'uint8' ? joined[i]! : type === 'float32' ? joined.readFloatLE(4 * i) : joined.readDoubleLE(8 * i),
  )
  const isThere = numbers.map((x, i) => !Number.isNaN(x) || (joined[i * width]! & 1) === 1)
  return { numbers, isThere }
}
