/** All 18 reductions of a tensor, and some of them alone. */

import { REDUCTIONS, type ReductionName } from '#dist/base/types.js'
import { meanStd } from '#dist/cli/bench/plain-js.js'
import { expectedReductions } from '#dist/cli/bench/reference.js'
import { Engine } from '#dist/core/engine.js'
import { Moments, setFor } from '#dist/core/moments.js'
import { bfloat16Bits, float16Bits } from '../../fixtures/event-writer.js'
import { uniform } from '../../fixtures/random.js'
import { type Case, contender, type Definition, expectClose, type Options, sizeName } from '../definition.js'
import * as ours from '../engines/ours.js'
import * as plainJs from '../engines/plain-js.js'

const MIB = 1 << 20

const INPUTS: readonly (readonly [plainJs.ReducibleDType, number])[] = [
  ['float32', 4096],
  ['float32', MIB],
  ['float32', 64 * MIB],
  ['float64', MIB],
  ['float16', MIB],
  ['bfloat16', MIB],
  ['int8', MIB],
  ['int16', MIB],
  ['int32', MIB],
  ['int64', MIB],
  ['uint8', MIB],
  ['uint16', MIB],
  ['uint32', MIB],
  ['uint64', MIB],
  ['bool', MIB],
]

export const moments: Definition = {
  name: 'moments',
  measures:
    'all 18 reductions of a tensor in memory (row: to the row of moments that they follow from), or those that are named',
  *cases({ quick }: Options): Generator<Case> {
    for (const [dtype, byteLength] of INPUTS) {
      if (quick && byteLength > MIB) continue
      const { bytes, values } = makeElements(dtype, byteLength)
      const wrong = expectClose(expectedReductions(values), i => REDUCTIONS[i]!)
      const wrongRow = (row: Float64Array) => wrong(ours.reductionsOf(dtype, row))
      yield {
        size: `${dtype} ${sizeName(byteLength)}`,
        byteLength,
        contenders: [
          contender(ours.NAME, ours.moments(dtype, bytes), wrong),
          contender(`${ours.NAME}, row`, ours.momentsRow(dtype, bytes), wrongRow),
          contender(plainJs.NAME, plainJs.moments(dtype, bytes), wrong),
          ...(dtype === 'int64' || dtype === 'uint64'
            ? [contender(`${plainJs.NAME}, bigints`, plainJs.momentsOfBigInts(dtype, bytes), wrong)]
            : []),
        ],
      }
    }
    for (const byteLength of quick ? [MIB] : [4096, MIB, 64 * MIB]) {
      const { bytes, values } = makeElements('float32', byteLength)
      const data = new Float32Array(bytes.buffer)
      const expected = expectedReductions(values)
      for (const [names, loop] of LOOPS) {
        const wanted = Float64Array.from(names, name => expected[REDUCTIONS.indexOf(name)]!)
        const wrong = expectClose(wanted, i => names[i]!)
        yield {
          size: `float32 ${sizeName(byteLength)} ${names.join(', ')}`,
          byteLength,
          contenders: [
            contender(ours.NAME, reduce(names, bytes), wrong),
            contender(plainJs.NAME, () => loop(data), wrong),
          ],
        }
      }
    }
  },
}

/** Some reductions of float32, by a scan for no more than these. */
function reduce(names: readonly ReductionName[], bytes: Uint8Array): () => Float64Array {
  const engine = new Engine()
  engine.reset()
  const start = engine.reserveBytes(bytes.length)
  engine.view(start, bytes.length).set(bytes)
  const batch = engine.reserveBatch(1)
  const known = setFor(names)
  return () => {
    engine.resetRow(batch)
    engine.addToRow(batch, 'float32', start, bytes.length / 4, 0, known)
    const moments = new Moments('float32', engine.rows(batch, 1))
    return Float64Array.from(names, name => moments.reduction(name) as number)
  }
}

/** Loops for some reductions alone. Each detects NaN, as ours does. */
const LOOPS: readonly (readonly [readonly ReductionName[], (data: Float32Array<ArrayBuffer>) => Float64Array])[] = [
  [
    ['min', 'max'],
    data => {
      let min = Number.POSITIVE_INFINITY
      let max = Number.NEGATIVE_INFINITY
      let nans = 0
      for (let i = 0; i < data.length; i++) {
        const x = data[i]!
        if (x < min) min = x
        if (x > max) max = x
        if (Number.isNaN(x)) nans++
      }
      return nans > 0 ? Float64Array.of(Number.NaN, Number.NaN) : Float64Array.of(min, max)
    },
  ],
  [
    ['abs_mean'],
    data => {
      let sum = 0
      for (let i = 0; i < data.length; i++) sum += Math.abs(data[i]!)
      return Float64Array.of(sum / data.length)
    },
  ],
  [['mean', 'std'], meanStd],
]

interface Elements {
  readonly bytes: Uint8Array<ArrayBuffer>
  /** The elements as numbers. */
  readonly values: Float64Array
}

/** Numbers of a dtype that have telling reductions: sums that don't cancel, products that aren't lost on the way. */
function makeElements(dtype: plainJs.ReducibleDType, byteLength: number): Elements {
  const random = uniform(3)
  // Around 1 and in pairs of about x and 1 / x, a quarter of them negative.
  let log = 0
  const float = (_: unknown, i: number) => {
    log = i % 2 === 0 ? random() * 2 - 1 : -log
    return Math.exp(log) * (random() < 0.25 ? -1 : 1)
  }
  const integer = (bits: number, signed: boolean) => () =>
    Math.floor(random() * 2 ** bits) - (signed ? 2 ** (bits - 1) : 0) || 1
  const typed = (data: ArrayBufferView<ArrayBuffer> & ArrayLike<number | bigint>): Elements => ({
    bytes: new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
    values: Float64Array.from(data, Number),
  })
  const half = (encode: (value: number) => number, table: Float32Array): Elements => {
    const data = Uint16Array.from({ length: byteLength / 2 }, (_, i) => encode(float(_, i)))
    return { bytes: new Uint8Array(data.buffer), values: Float64Array.from(data, bits => table[bits]!) }
  }
  const length = { 1: byteLength, 2: byteLength / 2, 4: byteLength / 4, 8: byteLength / 8 }
  switch (dtype) {
    case 'float32':
      return typed(Float32Array.from({ length: length[4] }, float))
    case 'float64':
      return typed(Float64Array.from({ length: length[8] }, float))
    case 'float16':
      return half(float16Bits, plainJs.FLOAT16)
    case 'bfloat16':
      return half(bfloat16Bits, plainJs.BFLOAT16)
    case 'int8':
      return typed(Int8Array.from({ length: length[1] }, integer(8, true)))
    case 'int16':
      return typed(Int16Array.from({ length: length[2] }, integer(16, true)))
    case 'int32':
      return typed(Int32Array.from({ length: length[4] }, integer(32, true)))
    case 'uint8':
      return typed(Uint8Array.from({ length: length[1] }, integer(8, false)))
    case 'uint16':
      return typed(Uint16Array.from({ length: length[2] }, integer(16, false)))
    case 'uint32':
      return typed(Uint32Array.from({ length: length[4] }, integer(32, false)))
    // Within 2^53, where JavaScript's numbers are exact.
    case 'int64': {
      const next = integer(52, true)
      return typed(BigInt64Array.from({ length: length[8] }, () => BigInt(next())))
    }
    case 'uint64': {
      const next = integer(52, false)
      return typed(BigUint64Array.from({ length: length[8] }, () => BigInt(next())))
    }
    case 'bool':
      return typed(Uint8Array.from({ length: length[1] }, () => (random() < 0.5 ? 1 : 0)))
  }
}
