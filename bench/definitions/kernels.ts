/** Reductions beside numpy's, those of a C compiler and tfjs': all 18, and the sets that are asked for most. */
import { REDUCTIONS, type ReductionName } from '#dist/types.js'
import { uniform } from '../../fixtures/random.js'
import { type Case, contender, type Definition, expectClose, type Options, sizeName } from '../definition.js'
import * as native from '../engines/native.js'
import * as numpy from '../engines/numpy.js'
import * as ours from '../engines/ours.js'
import * as plainJs from '../engines/plain-js.js'
import * as tfjs from '../engines/tfjs.js'
import { expectedReductions } from '../reductions.js'
import { scratchFile } from '../scratch.js'

const KIB = 1024
const MIB = KIB * KIB

/** What is asked for, and what the peers call it. */
const SETS = [
  { label: 'all 18', kernel: 'moments', names: REDUCTIONS },
  { label: 'mean and std', kernel: 'meanstd', names: ['mean', 'std'] },
  { label: 'min and max', kernel: 'minmax', names: ['min', 'max'] },
] as const satisfies readonly { label: string; kernel: string; names: readonly ReductionName[] }[]

/** Of numpy and tfjs, which add float32 in float32. */
const COARSE = 2e-3

export const kernels: Definition = {
  name: 'kernels',
  measures: 'reductions of a tensor in memory (ours: to the row of moments that they follow from)',
  async *cases({ quick }: Options): AsyncGenerator<Case> {
    for (const byteLength of quick ? [64 * KIB, MIB] : [4 * KIB, 64 * KIB, MIB, 64 * MIB]) {
      yield* dtypeCases('float32', byteLength, SETS)
    }
    for (const byteLength of quick ? [MIB] : [MIB, 64 * MIB]) yield* dtypeCases('float64', byteLength, [SETS[0]])
  },
}

type Dtype = 'float32' | 'float64'

async function* dtypeCases(
  dtype: Dtype,
  byteLength: number,
  sets: readonly (typeof SETS)[number][],
): AsyncGenerator<Case> {
  const data = makeElements(dtype, byteLength)
  const bytes = new Uint8Array(data.buffer)
  const file = scratchFile(bytes)
  const all = expectedReductions(Float64Array.from(data))
  for (const { label, kernel, names } of sets) {
    const expected = Float64Array.from(names, name => all[REDUCTIONS.indexOf(name)]!)
    const judge = (tolerance: number) => expectClose(expected, i => names[i]!, tolerance)
    const wrong = judge(1e-9)
    const request = [kernel, file, dtype]
    const isAll = kernel === 'moments'
    yield {
      size: `${label}, ${dtype} ${sizeName(byteLength)}`,
      byteLength,
      contenders: [
        contender(ours.NAME, ours.setRow(dtype, bytes, names), row => wrong(ours.reductionsOf(dtype, row, names))),
        contender(plainJs.NAME, plainJs[kernel](dtype, bytes), wrong),
        ...numpy.contenders(isAll ? 'a call each' : '', request, judge(COARSE)),
        ...(isAll ? numpy.contenders('leanest', ['lean', file, dtype], judge(COARSE)) : []),
        ...native.contenders('', request, wrong),
        ...(isAll && data instanceof Float32Array
          ? [contender(tfjs.NAME, await tfjs.moments(data), judge(COARSE))]
          : []),
      ],
    }
  }
}

/** Numbers near 1 and −1, whose product stays where float32 can follow. */
function makeElements(dtype: Dtype, byteLength: number): Float32Array<ArrayBuffer> | Float64Array<ArrayBuffer> {
  const random = uniform(5)
  const value = () => (0.99 + 0.02 * random()) * (random() < 0.25 ? -1 : 1)
  return dtype === 'float32'
    ? Float32Array.from({ length: byteLength / 4 }, value)
    : Float64Array.from({ length: byteLength / 8 }, value)
}
