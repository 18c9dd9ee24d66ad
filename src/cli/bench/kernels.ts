/** The kernels beside plain JavaScript, numpy and tfjs: what is measured, and what the answers must be. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { REDUCTIONS, type ReductionName } from '../../base/types.js'
import { along } from '../../kernels/along.js'
import { crc32c } from '../../kernels/checksum.js'
import { allclose } from '../../kernels/compare.js'
import { moments } from '../../kernels/moments.js'
import { measure, stopwatch, type Timed } from './measure.js'
import { Numpy } from './numpy.js'
import * as plainJs from './plain-js.js'
import { expectedReductions, makeElements } from './reference.js'
import { Tfjs, type TfjsKernel } from './tfjs.js'

export const OURS = 'trialscan'

const KIB = 1024
const MIB = KIB * KIB
/** The limit of bytes for tfjs, whose float32 sums are too inexact beyond. */
const MAX_TFJS_BYTES = MIB

export interface KernelResult {
  readonly kernel: string
  readonly dtype: string
  readonly bytes: number
  readonly contenders: readonly {
    readonly engine: string
    /** The time of one run. */
    readonly ms: number
    readonly gbPerSecond: number
    /** The time as a multiple of trialscan's. */
    readonly ratio: number
  }[]
}

/** The contenders besides trialscan and plain JS; null if not found. */
export interface Peers {
  readonly numpy: Numpy | null
  readonly tfjs: Tfjs | null
}

/** An engine has given another answer than expected: its time would mean nothing. */
export class WrongAnswer extends Error {
  override readonly name = 'WrongAnswer'
}

export async function startPeers(): Promise<Peers> {
  const [numpy, tfjs] = await Promise.all([Numpy.start(), Tfjs.start()])
  return { numpy, tfjs }
}

interface Contender extends Timed {
  readonly answer: () => Promise<ArrayLike<number>>
  /** The tolerance of the answer, relative to the sum of the added magnitudes. */
  readonly tolerance: number
}

interface Case {
  readonly kernel: string
  readonly dtype: string
  readonly bytes: number
  readonly expected: Float64Array
  readonly names: readonly string[]
  readonly contenders: readonly Contender[]
}

/** In float32, sums of a million numbers are that far off. */
const FLOAT32_TOLERANCE = 2e-3
const FLOAT64_TOLERANCE = 1e-9

/** Measures one case after the other. @throws WrongAnswer */
export async function* measureKernels(
  { numpy, tfjs }: Peers,
  isQuick: boolean,
  signal: AbortSignal,
): AsyncGenerator<KernelResult> {
  const directory = mkdtempSync(join(tmpdir(), 'trialscan-bench-'))
  const effort = isQuick ? { rounds: 3, turnMs: 40 } : { rounds: 5, turnMs: 200 }
  try {
    for (const make of casesOf(isQuick)) {
      const { contenders, expected, names, ...about } = make({ numpy, tfjs }, directory)
      for (const contender of contenders) expectAnswer(contender, await contender.answer(), expected, names, about)
      const measured = await measure(
        contenders.map(contender => heeding(contender, signal)),
        effort,
      )
      yield {
        ...about,
        contenders: measured.map(({ engine, median, ratio }) => {
          return { engine, ms: median, gbPerSecond: Number((about.bytes / median / 1e6).toPrecision(4)), ratio }
        }),
      }
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

function heeding({ engine, turn }: Timed, signal: AbortSignal): Timed {
  return {
    engine,
    turn: ms => {
      signal.throwIfAborted()
      return turn(ms)
    },
  }
}

/** The number of cases. */
export function caseCount(isQuick: boolean): number {
  return casesOf(isQuick).length
}

type MakeCase = (peers: Peers, directory: string) => Case

/** The cases. Each is made when its turn comes, so that no two inputs are in memory together. */
function casesOf(isQuick: boolean): readonly MakeCase[] {
  const sizes = isQuick ? [64 * KIB, MIB] : [64 * KIB, MIB, 64 * MIB]
  return [
    ...sizes.map(
      (bytes): MakeCase =>
        (...where) =>
          reductions('moments', 'float32', bytes, ...where),
    ),
    (...where) => reductions('moments', 'float64', MIB, ...where),
    (...where) => reductions('mean and std', 'float32', MIB, ...where),
    (...where) => reductions('min and max', 'float32', MIB, ...where),
    alongCase,
    allcloseCase,
    ...sizes.map(
      (bytes): MakeCase =>
        () =>
          checksumCase(bytes),
    ),
  ]
}

const SETS = {
  moments: { names: REDUCTIONS, inPlainJs: plainJs.moments, inNumpy: 'lean' },
  'mean and std': { names: ['mean', 'std'], inPlainJs: plainJs.meanStd, inNumpy: 'meanstd' },
  'min and max': { names: ['min', 'max'], inPlainJs: plainJs.minMax, inNumpy: 'minmax' },
} as const satisfies Record<
  TfjsKernel,
  { names: readonly ReductionName[]; inPlainJs: (data: plainJs.Floats) => unknown; inNumpy: string }
>

function reductions(
  kernel: TfjsKernel,
  dtype: 'float32' | 'float64',
  bytes: number,
  { numpy, tfjs }: Peers,
  directory: string,
): Case {
  const { inPlainJs, inNumpy: numpyKernel } = SETS[kernel]
  const names: readonly ReductionName[] = SETS[kernel].names
  const data = makeElements(dtype, bytes)
  const all = expectedReductions(Float64Array.from(data))
  const expected = Float64Array.from(names, name => all[REDUCTIONS.indexOf(name)]!)
  const isFloat32 = data instanceof Float32Array
  const tolerance = isFloat32 ? FLOAT32_TOLERANCE : FLOAT64_TOLERANCE
  const ours = (): Float64Array => {
    const row = moments(data, names)
    return Float64Array.from(names, name => Number(row.reduction(name)))
  }
  return {
    kernel: kernel === 'moments' ? 'all 18 reductions' : kernel,
    dtype,
    bytes,
    expected,
    names,
    contenders: [
      local(OURS, ours, FLOAT64_TOLERANCE),
      local(plainJs.NAME, () => inPlainJs(data), FLOAT64_TOLERANCE),
      ...(numpy ? [inNumpy(numpy, numpyKernel, [fileOf(directory, data), dtype], tolerance)] : []),
      ...(tfjs && isFloat32 && bytes <= MAX_TFJS_BYTES
        ? [local('tfjs', tfjs.prepare(kernel, data), FLOAT32_TOLERANCE)]
        : []),
    ],
  }
}

function alongCase({ numpy, tfjs }: Peers, directory: string): Case {
  const data = makeElements('float32', MIB) as Float32Array<ArrayBuffer>
  const [kernel, columns] = ['sum along axis 0', 512]
  const shape = [data.length / columns, columns]
  const expected = plainJs.sumColumns(data, columns)
  return {
    kernel,
    dtype: 'float32',
    bytes: MIB,
    expected,
    names: Array.from(expected, (_, i) => `column ${i}`),
    contenders: [
      local(OURS, () => along({ data, shape }, 'sum', 0).data, FLOAT64_TOLERANCE),
      local(plainJs.NAME, () => plainJs.sumColumns(data, columns), FLOAT64_TOLERANCE),
      ...(numpy
        ? [inNumpy(numpy, 'reduce', [fileOf(directory, data), 'float32', shape.join(), 'sum', 0], FLOAT32_TOLERANCE)]
        : []),
      ...(tfjs ? [local('tfjs', tfjs.prepareSum(data, shape), FLOAT32_TOLERANCE)] : []),
    ],
  }
}

function allcloseCase({ numpy }: Peers, directory: string): Case {
  const pair = makeElements('float32', 2 * MIB)
  const half = pair.length / 2
  const [a, b] = [pair.subarray(0, half) as Float32Array<ArrayBuffer>, pair.subarray(half) as Float32Array<ArrayBuffer>]
  for (let i = 0; i < half; i++) b[i] = a[i]! * (1 + 1e-6)
  const [rtol, atol] = [1e-5, 1e-8]
  return {
    kernel: 'allclose',
    dtype: 'float32',
    bytes: 2 * MIB,
    expected: Float64Array.of(1),
    names: ['allclose'],
    contenders: [
      local(OURS, () => [Number(allclose(a, b, { rtol, atol }))]),
      local(plainJs.NAME, () => [plainJs.allclose(a, b, rtol, atol)]),
      ...(numpy ? [inNumpy(numpy, 'allclose', [fileOf(directory, a), fileOf(directory, b, 'b'), rtol, atol], 0)] : []),
    ],
  }
}

function checksumCase(bytes: number): Case {
  const { buffer } = makeElements('float32', bytes)
  const data = new Uint8Array(buffer)
  return {
    kernel: 'CRC-32C',
    dtype: 'bytes',
    bytes,
    expected: Float64Array.of(plainJs.crc32c(data)),
    names: ['checksum'],
    contenders: [local(OURS, () => [crc32c(data)]), local(plainJs.NAME, () => [plainJs.crc32c(data)])],
  }
}

function local(engine: string, run: () => ArrayLike<number>, tolerance = 0): Contender {
  return { engine, tolerance, turn: stopwatch(run), answer: async () => run() }
}

function inNumpy(numpy: Numpy, kernel: string, words: readonly (string | number)[], tolerance: number): Contender {
  return {
    engine: 'numpy',
    tolerance,
    turn: async ms => (await numpy.ask(kernel, ms, words)).ms,
    answer: async () => (await numpy.ask(kernel, 0, words)).numbers,
  }
}

function fileOf(directory: string, data: plainJs.Floats, suffix = ''): string {
  const path = join(directory, `${data.BYTES_PER_ELEMENT}-${data.length}${suffix}`)
  writeFileSync(path, new Uint8Array(data.buffer, data.byteOffset, data.byteLength))
  return path
}

/**
 * Checks an answer. The tolerance of sums that cancel is relative to their summands. Products are checked only in float64: one of a
 * million float32 has no exact value to compare with.
 * @throws WrongAnswer
 */
function expectAnswer(
  { engine, tolerance }: Contender,
  answer: ArrayLike<number>,
  expected: Float64Array,
  names: readonly string[],
  { kernel, dtype, bytes }: Pick<Case, 'kernel' | 'dtype' | 'bytes'>,
): void {
  const place = `${engine}, ${kernel} of ${bytes} bytes of ${dtype}`
  if (answer.length !== expected.length) {
    throw new WrongAnswer(`${place}: expected ${expected.length} numbers, got ${answer.length}`)
  }
  for (const [i, value] of expected.entries()) {
    const name = names[i]!
    if (tolerance > FLOAT64_TOLERANCE && name.endsWith('prod')) continue
    const scale = names.indexOf({ sum: 'abs_sum', mean: 'abs_mean' }[name] ?? name)
    const size = Math.max(Math.abs(value), Math.abs(expected[scale] ?? 1))
    if (!(Math.abs(answer[i]! - value) <= tolerance * size)) {
      throw new WrongAnswer(`${place}: ${name}: expected ${value}, got ${answer[i]}`)
    }
  }
}
