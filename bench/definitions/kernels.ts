/** Reductions beside numpy's, those of a C compiler and tfjs': all 18, and the sets that are asked for most. */

import { REDUCTIONS, type ReductionName } from '#dist/base/types.js'
import { expectedReductions, makeElements } from '#dist/cli/bench/reference.js'
import { Tfjs } from '#dist/cli/bench/tfjs.js'
import { type Case, contender, type Definition, type Options, sizeName } from '../definition.js'
import * as native from '../engines/native.js'
import * as numpy from '../engines/numpy.js'
import * as ours from '../engines/ours.js'
import * as plainJs from '../engines/plain-js.js'
import { expectReductions, expectReductionsOfFloat32 } from '../reductions.js'
import { scratchFile } from '../scratch.js'

const KIB = 1024
const MIB = KIB * KIB

/** Sets of reductions, and their names in the peers. */
const SETS: readonly ReductionSet[] = [
  { label: 'all 18', kernel: 'moments', names: REDUCTIONS, inPlainJs: plainJs.moments },
  { label: 'mean and std', kernel: 'meanstd', names: ['mean', 'std'], inPlainJs: plainJs.meanStd },
  { label: 'min and max', kernel: 'minmax', names: ['min', 'max'], inPlainJs: plainJs.minMax },
]

interface ReductionSet {
  readonly label: string
  readonly kernel: 'moments' | 'meanstd' | 'minmax'
  readonly names: readonly ReductionName[]
  readonly inPlainJs: (dtype: Dtype, bytes: Uint8Array) => () => Float64Array
}

export const kernels: Definition = {
  name: 'kernels',
  measures: 'reductions of a tensor in memory (ours: to the row of moments that they follow from)',
  async *cases({ quick }: Options): AsyncGenerator<Case> {
    for (const byteLength of quick ? [64 * KIB, MIB] : [4 * KIB, 64 * KIB, MIB, 64 * MIB]) {
      yield* dtypeCases('float32', byteLength, SETS)
    }
    for (const byteLength of quick ? [MIB] : [MIB, 64 * MIB]) yield* dtypeCases('float64', byteLength, SETS.slice(0, 1))
  },
}

type Dtype = 'float32' | 'float64'

async function* dtypeCases(dtype: Dtype, byteLength: number, sets: readonly ReductionSet[]): AsyncGenerator<Case> {
  const data = makeElements(dtype, byteLength)
  const bytes = new Uint8Array(data.buffer)
  const file = scratchFile(bytes)
  const all = expectedReductions(Float64Array.from(data))
  const tfjs = await Tfjs.start()
  for (const { label, kernel, names, inPlainJs } of sets) {
    const expected = Float64Array.from(names, name => all[REDUCTIONS.indexOf(name)]!)
    const wrong = expectReductions(expected, names)
    const wrongFloat32 = expectReductionsOfFloat32(expected, names)
    const request = [kernel, file, dtype]
    const isAll = kernel === 'moments'
    yield {
      size: `${label}, ${dtype} ${sizeName(byteLength)}`,
      byteLength,
      contenders: [
        contender(ours.NAME, ours.setRow(dtype, bytes, names), row => wrong(ours.reductionsOf(dtype, row, names))),
        contender(plainJs.NAME, inPlainJs(dtype, bytes), wrong),
        ...numpy.contenders(isAll ? 'a call each' : '', request, wrongFloat32),
        ...(isAll ? numpy.contenders('leanest', ['lean', file, dtype], wrongFloat32) : []),
        ...native.contenders('', request, wrong),
        // Of more its sums are off by more than anyone would forgive.
        ...(tfjs && isAll && data instanceof Float32Array && byteLength <= MIB
          ? [contender('tfjs-backend-wasm', tfjs.prepare('moments', data), wrongFloat32)]
          : []),
      ],
    }
  }
}
