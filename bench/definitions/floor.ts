/** Beside the floor: what nobody who runs on Node.js, reads these bytes and has these kernels can do without. */

import { openSync, readSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { DType } from '#dist/base/types.js'
import type { Address } from '#dist/core/border/memory.js'
import { ElementKernels } from '#dist/core/elements.js'
import { Engine } from '#dist/core/engine.js'
import { createTrial, evaluate, makeRules, RuleRegistry } from '#dist/index.js'
import { normals } from '../../fixtures/random.js'
import {
  type Case,
  type Contender,
  contender,
  type Definition,
  expectSame,
  type Options,
  selfTimed,
} from '../definition.js'
import { single } from '../engines/answers.js'
import * as native from '../engines/native.js'
import * as ours from '../engines/ours.js'
import { runProcess } from '../processes.js'
import { scratchPath } from '../scratch.js'
import { filesUnder, type Trial, type TrialName, trial } from '../trials.js'
import { processContender, scanCommand, wrongTable } from './cli.js'
import { RULES } from './rules.js'
import { wrongReductions } from './scan.js'
import { wrongFile } from './table.js'

const MIB = 1 << 20
const THREADS = 2
const SMALLEST = fileURLToPath(new URL('../children/smallest.cjs', import.meta.url))
const CORE = fileURLToPath(new URL('../../build/release.wasm', import.meta.url))

export const floor: Definition = {
  name: 'floor',
  measures:
    'what we add to `node -e 0`, reading in C and our own kernels in the cache, these two by all threads; files in the page cache',
  *cases({ quick }: Options): Generator<Case> {
    for (const name of ['large', 'eightfold', 'small'] satisfies TrialName[])
      yield processCase(name, trial(name, quick))
    yield* tableCases(trial('many', quick))
    yield threadsCase(trial('eightfold', quick))
    yield rulesCase(trial('large', quick))
  },
}

/** Whole processes: all 18 reductions of every tensor, as CSV. */
function processCase(name: TrialName, trial: Trial): Case {
  const { dir, title, byteLength } = trial
  const scanning = (label: string, ...more: string[]) => {
    const out = scratchPath(`floor-${name}.csv`)
    return processContender(`${ours.NAME}${label}`, scanCommand(dir, out, '--threads', `${THREADS}`, ...more), () =>
      wrongTable(out, trial),
    )
  }
  return {
    size: `scan of ${title}`,
    byteLength,
    rounds: 9,
    contenders: [
      scanning(''),
      ...theFloor(trial),
      smallest(name, trial),
      scanning(', check full', '--check-level', 'full'),
    ],
  }
}

/** A hundred lines that do this job and no other, with our core: what we take beyond this is ours. */
function smallest(name: string, trial: Trial): Contender {
  const out = scratchPath(`smallest-${name}.csv`)
  return processContender('the smallest program', [process.execPath, SMALLEST, CORE, trial.dir, out], () =>
    wrongTable(out, trial),
  )
}

/** Tables of very many small tensors; what writing them takes is not in the floor. */
function* tableCases(many: Trial): Generator<Case> {
  const { dir, title, byteLength } = many
  const csv = scratchPath('floor-many.csv')
  const parquet = scratchPath('floor-many.parquet')
  for (const [format, out] of [
    ['csv', csv],
    ['parquet', parquet],
  ] as const) {
    const command = scanCommand(dir, out, '--threads', `${THREADS}`, '--format', format)
    const wrong = () => wrongFile(format, many, { csv, parquet })
    yield {
      size: `${title}, to ${format}`,
      byteLength,
      rounds: 9,
      contenders: [
        processContender(ours.NAME, command, wrong),
        ...theFloor(many),
        ...(format === 'csv' ? [smallest('many', many)] : []),
      ],
    }
  }
}

/** Nothing, reading, and the kernels, one after the other. */
function theFloor({ dir, byteLength }: Trial): Contender[] {
  const reading = native.reader(`${dir}/events`, THREADS)
  if (reading === undefined) return []
  const kernels = momentsMs()
  const turn = async () => {
    const bare = await runProcess([process.execPath, '-e', '0'])
    const read = await runProcess(reading)
    return { median: bare.elapsedMs + read.elapsedMs + (kernels() * byteLength) / THREADS, answer: read.stdout }
  }
  return [selfTimed('the floor', turn, expectSame(`${byteLength}\n`))]
}

/** Milliseconds that the moments of a byte take, in the cache. */
export function momentsMs(known?: number, dtype: DType = 'float32', bytes?: Uint8Array): () => number {
  const elements = bytes?.subarray(0, MIB) ?? new Uint8Array(Float32Array.from(normals(MIB / 4, 1)).buffer)
  const row = ours.momentsRow(dtype, elements, known)
  return () => elapsed(64, row) / (64 * MIB)
}

/** Milliseconds of CPU. */
function elapsed(times: number, run: () => unknown): number {
  const before = process.cpuUsage()
  for (let i = 0; i < times; i++) run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

/** The gain from a second thread, ours and that of C. */
function threadsCase(trial: Trial): Case {
  const { dir, title, byteLength } = trial
  return {
    size: `threads, ${title}`,
    byteLength,
    rounds: 9,
    contenders: [
      ...[2, 1].map(threads =>
        contender(`${ours.NAME}, threads ${threads}`, ours.scan(dir, threads, 'minimal'), wrongReductions(trial)),
      ),
      ...[2, 1].flatMap(threads =>
        native.contenders(
          `only reading, threads ${threads}`,
          ['read', `${dir}/events`, threads],
          single(expectSame(byteLength)),
        ),
      ),
    ],
  }
}

/** CPU of 20 rules, beside one reading of the bytes and the kernels that take elements, as many as the rules make them take. */
function rulesCase({ dir, title, byteLength }: Trial): Case {
  const registry = new RuleRegistry()
  const opened = createTrial(dir)
  const judged = async (threads: number): Promise<number> => {
    const baseTrial = await opened
    const chosen = RULES.map(([rule, parameters = {}], i) => ({ name: `${i}`, rule, parameters }))
    const instances = await makeRules(chosen, { baseTrial, registry, openTrial: path => createTrial(path) })
    return (await evaluate(instances, { follow: false, threads })).findings.length
  }
  let findings: number | undefined
  const rules = selfTimed(
    `${ours.NAME}, 20 rules`,
    () => cpuOf(() => judged(THREADS)),
    async answer => {
      findings ??= await judged(0)
      return expectSame(findings)(answer)
    },
  )
  let kernels: (() => number) | undefined
  const least = selfTimed(
    'the floor',
    async () => {
      kernels ??= await kernelsOf(() => judged(0))
      const reading = await cpuOf(async () => readAll(dir))
      return { median: reading.median + kernels(), answer: reading.answer }
    },
    expectSame(byteLength),
  )
  return { size: `CPU of 20 rules, ${title}`, byteLength, rounds: 9, contenders: [rules, least] }
}

async function cpuOf<A>(work: () => Promise<A>): Promise<{ readonly median: number; readonly answer: A }> {
  const before = process.cpuUsage()
  const answer = await work()
  const { user, system } = process.cpuUsage(before)
  return { median: (user + system) / 1000, answer }
}

/** The core's memory with 1 MiB of float32 twice, and room for results. */
interface Place {
  readonly elements: ElementKernels
  readonly a: Address
  readonly b: Address
  readonly results: Address
}

const COUNT = MIB / 4
/** Elements of each side where two tensors are compared, so that both lie in the cache. */
const PAIRED = COUNT / 4

/**
 * Repetitions of calls, by kernels that take elements: the number of elements in a call, and the same call on cached float32 elements,
 * with their number.
 */
const REPLAYS: { readonly [Name in keyof ElementKernels]?: Replay<ElementKernels[Name]> } = {
  countNotCloseAt: ([, , , , count, tolerance]) => ({
    count,
    again: ({ elements, a, b }) => elements.countNotCloseAt('float32', a, 'float32', b, PAIRED, tolerance),
    of: PAIRED,
  }),
  sumAbsDifference: ([, , , , count]) => ({
    count,
    again: ({ elements, a, b }) => elements.sumAbsDifference('float32', a, 'float32', b, PAIRED),
    of: PAIRED,
  }),
  percentiles: ([, , count, q]) => ({
    parameters: `${q}`,
    count,
    again: ({ elements, a }) => elements.percentiles('float32', a, COUNT, q),
  }),
  sumChannels: ([, , outer, channels, inner]) => ({
    count: outer * channels * inner,
    again: ({ elements, a, results }) => elements.sumChannels('float32', a, 1, 512, COUNT / 512, results),
  }),
  countInside: ([, , rows, columns, lo, hi]) => ({
    count: rows * columns,
    again: ({ elements, a, results }) => elements.countInside('float32', a, COUNT / 512, 512, lo, hi, results),
  }),
  countEqual: ([, , count, value]) => ({
    count,
    again: ({ elements, a }) => elements.countEqual('float32', a, COUNT, value),
  }),
}

type Replay<Call> = Call extends (...args: infer Args) => unknown
  ? (args: Args) => { parameters?: string; count: number; again: (place: Place) => unknown; of?: number }
  : never

/** The kernels that work calls on elements, to be called again on as many elements of float32 that lie in the cache. */
async function kernelsOf(work: () => Promise<unknown>): Promise<() => number> {
  const { scan } = Engine.prototype
  let known = 0
  let bytes = 0
  Engine.prototype.scan = function (batch, count, level, moments) {
    scan.call(this, batch, count, level, moments)
    known |= moments ?? 0
    const slots = this.slots(batch, count)
    for (let i = 0; i < count; i++) bytes += slots.dataByteLength(i)
  }
  const taken = new Map<string, { count: number; readonly again: (place: Place) => unknown; readonly of: number }>()
  const kernels = Object.entries(REPLAYS).map(([name, replay]) => {
    const kernel = Reflect.get(ElementKernels.prototype, name)
    Reflect.set(ElementKernels.prototype, name, function (this: ElementKernels, ...args: never) {
      const { parameters = '', count, again, of = COUNT } = Reflect.apply(replay, null, [args])
      const key = `${name} ${parameters}`
      const before = taken.get(key)
      if (before === undefined) taken.set(key, { count, again, of })
      else before.count += count
      return kernel.apply(this, args)
    })
    return [name, kernel] as const
  })
  try {
    await work()
  } finally {
    Object.assign(Engine.prototype, { scan })
    Object.assign(ElementKernels.prototype, Object.fromEntries(kernels))
  }
  const engine = new Engine()
  const numbers = new Uint8Array(Float32Array.from(normals(COUNT, 1)).buffer)
  const [a, b, results] = [MIB, MIB, MIB].map(byteLength => engine.reserveBytes(byteLength)) as [
    Address,
    Address,
    Address,
  ]
  for (const address of [a, b]) engine.view(address, numbers.length).set(numbers)
  const place = { elements: engine.elements, a, b, results }
  const moments = momentsMs(known)
  return () => {
    let ms = moments() * bytes
    for (const { count, again, of } of taken.values()) ms += (elapsed(32, () => again(place)) / 32 / of) * count
    return ms
  }
}

/** Reads the event files into memory that stays. */
function readAll(dir: string): number {
  const buffer = new Uint8Array(new WebAssembly.Memory({ initial: 16 }).buffer)
  let byteLength = 0
  for (const path of filesUnder(`${dir}/events`)) {
    const file = openSync(`${dir}/events/${path}`, 'r')
    for (let got = -1; got !== 0; byteLength += got) got = readSync(file, buffer, 0, MIB, null)
  }
  return byteLength
}
