/**
 * A long haul: uses a generated trial in every way, round after round, and holds that every round answers as the first did
 * and leaves nothing behind: memory, open files, threads and handles stay flat.
 *
 *   npm run soak -- --seconds N            for as long as asked (default 60); at least twelve rounds
 *   --wrong file,heap,buffer,timer,answer  does these things wrong in each round, to see that they are found
 *
 * Prints a line every ten seconds, and a report; the exit code is 1 where something grew or an answer changed.
 */
import { createHash } from 'node:crypto'
import { cpSync, mkdtempSync, openSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import {
  closePools,
  createTrial,
  ExplodingTensor,
  evaluate,
  LossNotDecreasing,
  PoorWeightInitialization,
  repairTrial,
  type ScanOptions,
  SimilarAcrossRuns,
  TensorUnavailable,
  TensorVariance,
  type Trial,
  UnchangedTensor,
  VanishingGradient,
  verifyTrial,
} from '#dist/index.js'
import { editEventFile, locate, setFramedLength } from '../fixtures/corrupt.js'
import { type PayloadChecksum, type StepTensor, TrialWriter } from '../fixtures/event-writer.js'
import { normals } from '../fixtures/random.js'

const STEPS = 12
const SMALL_TENSORS = 40
/** Of float32; 17 MB are two parts. */
const LARGE_ELEMENTS = 4_300_000
const COLLECTIONS = {
  all: { includeRegex: ['.*'] },
  weights: { includeRegex: ['^layer'] },
  gradients: { includeRegex: ['^gradient'] },
  losses: { includeRegex: ['loss'] },
}

/** Small tensors and one that is read in parts, of two workers, and four records that can't be read. */
function makeTrial(dir: string, checksum: PayloadChecksum): void {
  const writer = new TrialWriter(dir, { numWorkers: 2, checksum, collections: COLLECTIONS })
  const block = Float32Array.from(normals(1 << 16, 7))
  const large = new Uint8Array(Float32Array.from({ length: LARGE_ELEMENTS }, (_, i) => block[i & 0xffff]! * i).buffer)
  for (let step = 0; step < STEPS; step++) {
    for (const worker of [0, 1]) {
      const hasLarge = worker === 0 && step % 8 === 0
      writer.step({
        step,
        mode: step % 4 === 3 ? 'EVAL' : 'TRAIN',
        worker,
        tensors: tensorsOf(step, block, hasLarge && large),
      })
    }
  }
  writer.end()
  setFramedLength(dir, 1, 'layer1.weight', 1_000_000n)
  for (const [step, tensor, at] of [
    [2, 'gradient/layer3.weight', 8], // the checksum of the length
    [4, 'layer5.weight', 30], // the Event
    [5, 'loss', 16],
  ] as const) {
    const { start_idx } = locate(dir, step, tensor)
    editEventFile(dir, step, bytes => bytes.writeUInt8(bytes.readUInt8(start_idx + at) ^ 0xff, start_idx + at))
  }
}

function* tensorsOf(step: number, block: Float32Array, large: Uint8Array | false): Generator<StepTensor> {
  for (let i = 0; i < SMALL_TENSORS; i++) {
    const name = `${i % 2 === 0 ? '' : 'gradient/'}layer${i}.weight`
    const count = 64 + 97 * i
    const start = (step * 4096 + i * 131) & 0x7fff
    yield { name, dtype: 'float32', shape: [count], values: [...block.subarray(start, start + count)] }
  }
  yield { name: 'layer1.weight', dtype: 'float64', shape: [2, 3], values: [step, 1, 2, Number.NaN, -0, 1e300] }
  yield { name: 'layer5.weight', dtype: 'int64', shape: [3], values: [BigInt(step), 2n, -3n] }
  yield { name: 'gradient/layer3.weight.0', dtype: 'float16', shape: [5], values: [1, 2, 3, 4, step] }
  yield { name: 'words', dtype: 'string', shape: [2], strings: ['one', 'two'] }
  if (large !== false) yield { name: 'embedding', dtype: 'float32', shape: [LARGE_ELEMENTS], data: large }
  yield { name: 'loss', dtype: 'float32', shape: [], values: [1 / (step + 1)] }
}

// ------------------------------------------------------------------------------------------------------------- a round

/** Bytes read by scans and evaluations, of all rounds. */
let readBytes = 0

type Answers = Map<string, string>

/** Notes an answer; the same question has had the same answer before. */
class Notebook {
  readonly #first: Answers = new Map()
  questions = 0

  note(question: string, answer: string | Uint8Array | readonly unknown[]): void {
    this.questions++
    const bytes = typeof answer === 'string' || answer instanceof Uint8Array ? answer : JSON.stringify(answer)
    const digest = createHash('sha256').update(bytes).digest('hex')
    const first = this.#first.get(question)
    if (first === undefined) this.#first.set(question, digest)
    else if (first !== digest) throw new Error(`${question}: the answer is not what it was in the first round`)
  }
}

/** A scan's rows as text, one digest; errors are a column of it. */
async function scanned(trial: Trial, options: ScanOptions, format: 'csv' | 'jsonl'): Promise<string> {
  const hash = createHash('sha256')
  const scan = trial.scan(options)
  for await (const text of scan.lines(format)) hash.update(text)
  readBytes += scan.stats.readBytes
  return hash.digest('hex')
}

async function useTrial(notebook: Notebook, dir: string, round: number): Promise<void> {
  const trial = await createTrial(dir)
  const all = 'min max mean std variance sum prod l1 l2'.split(' ') as NonNullable<ScanOptions['reductions']>
  // Whatever the number of threads, the answer is one: the question does not name them.
  for (const threads of [0, 1, 2]) {
    const format = (round + threads) % 2 === 0 ? 'csv' : 'jsonl'
    const text = await scanned(trial, { threads, checkLevel: 'full', reductions: all }, format)
    notebook.note(`${basename(dir)} ${format}`, text)
    const some = { threads, collection: 'gradients', steps: { from: 2, to: 9 } as const, workers: ['worker_1'] }
    notebook.note(`${basename(dir)} gradients`, await scanned(trial, some, 'csv'))
  }
  // Rows: left early, and ended by a signal.
  for (const threads of [0, 2]) {
    const rows: unknown[] = []
    for await (const row of trial.scan({ threads, reductions: ['abs_mean'] })) {
      rows.push([row.tensor, row.step, row.worker, row.error?.code ?? row.reductions])
      if (rows.length === 60) break
    }
    notebook.note(`${basename(dir)} rows`, rows)
    const controller = new AbortController()
    let count = 0
    try {
      for await (const _ of trial.scan({ threads, signal: controller.signal }))
        if (++count === 5) controller.abort(new Error('enough'))
      throw new Error(`${basename(dir)}: a scan went on after its signal`)
    } catch (error) {
      if ((error as Error).message !== 'enough') throw error
    }
  }
  // Values, some of which can't be had.
  const tensor = trial.tensor('layer1.weight')
  const values = await Promise.allSettled(tensor.steps().map(step => tensor.value(step)))
  notebook.note(
    `${basename(dir)} values`,
    values.map(found => (found.status === 'fulfilled' ? [...found.value.data].map(String) : found.reason.code)),
  )
  const { data } = await trial.tensor('embedding').value(0, { threads: 1 + (round % 2) })
  if (!ArrayBuffer.isView(data)) throw new Error(`${basename(dir)}: embedding has no numbers`)
  notebook.note(`${basename(dir)} embedding`, new Uint8Array(data.buffer, data.byteOffset, data.byteLength))
  const loss = trial.tensor('loss')
  const means = await Promise.allSettled(loss.steps().map(step => loss.reductionValue(step, 'mean')))
  notebook.note(
    `${basename(dir)} means`,
    means.map(found => (found.status === 'fulfilled' ? found.value : found.reason.code)),
  )
  notebook.note(
    `${basename(dir)} summary`,
    (await trial.summary()).tensors.map(({ name, byteLength }) => [name, byteLength]),
  )
  try {
    trial.tensor('nobody')
  } catch (error) {
    if (!(error instanceof TensorUnavailable)) throw error
  }
  await trial.close()
}

async function useRules(notebook: Notebook, dir: string, threads: number): Promise<void> {
  const trial = await createTrial(dir)
  const rules = [
    new VanishingGradient(trial, { threshold: 0.7 }),
    new ExplodingTensor(trial),
    new PoorWeightInitialization(trial),
    new UnchangedTensor(trial, { collection_names: 'weights' }),
    new TensorVariance(trial, { collection_names: 'gradients', max_threshold: 0.9 }),
    new LossNotDecreasing(trial),
  ]
  const { findings, missing, problems, stats } = await evaluate(rules, { threads })
  readBytes += stats.readBytes
  const told = findings.map(({ rule, step, tensor, message }) => [rule, step, tensor, message])
  notebook.note(`${basename(dir)} rules`, [told, missing.length, problems.map(({ error }) => error.code)])
  await trial.close()
}

/** The cache of index files, made and then believed. */
async function useCache(notebook: Notebook, dir: string, scratch: string): Promise<void> {
  const cache = join(scratch, 'cache')
  for (let opening = 0; opening < 2; opening++) {
    const trial = await createTrial(dir, { indexCache: cache })
    notebook.note(`${basename(dir)} catalog`, [trial.tensorNames(), trial.steps(), trial.workers()])
    await trial.close()
  }
  rmSync(cache)
}

/** What is wrong with it, and a copy without that. */
async function useCare(notebook: Notebook, dir: string, scratch: string, round: number): Promise<void> {
  const found = await verifyTrial(dir, { threads: round % 3 })
  notebook.note(
    `${basename(dir)} verified`,
    found.problems.map(({ code, file, offset }) => [code, file, offset]),
  )
  readBytes += found.stats.readBytes
  const out = join(scratch, 'repaired')
  const { records } = await repairTrial(dir, out, { threads: round % 3 })
  const { problems } = await verifyTrial(out, { threads: round % 3 })
  notebook.note(`${basename(dir)} repaired`, [records, problems.length])
  rmSync(out, { recursive: true })
}

/** A trial of its own in each round: one that nobody asks for again. */
async function useNew(notebook: Notebook, dir: string, scratch: string, round: number): Promise<void> {
  const copies = ['', '-other'].map(name => join(scratch, `new-${round}${name}`))
  for (const to of copies) {
    for (const part of ['collections', 'index/000000000/000000000001_worker_0.json', 'events/000000000001'])
      cpSync(join(dir, part), join(to, part), { recursive: true })
  }
  const [trial, other] = await Promise.all(copies.map(path => createTrial(path, { requireCollections: false })))
  for (const threads of [0, 1, 2]) {
    notebook.note(`${basename(dir)} new`, await counted(trial!, threads))
    await evaluate([new SimilarAcrossRuns(trial!, { otherTrials: [other!] })], { threads, follow: false })
  }
  await trial!.close()
  await other!.close()
  for (const path of copies) rmSync(path, { recursive: true })
}

/** How many rows there are, and how many of them are errors. */
async function counted(trial: Trial, threads: number): Promise<number[]> {
  let rows = 0
  let errors = 0
  for await (const { error } of trial.scan({ threads })) {
    rows++
    if (error) errors++
  }
  return [rows, errors]
}

/** A job that writes while it is followed, refreshed and given up on. */
async function useLive(notebook: Notebook, scratch: string): Promise<void> {
  const dir = join(scratch, 'live')
  const writer = new TrialWriter(dir, { collections: COLLECTIONS })
  const write = (step: number) =>
    writer.step({ step, mode: 'TRAIN', tensors: [{ name: 'loss', dtype: 'float32', shape: [], values: [step] }] })
  write(0)
  const trial = await createTrial(dir)
  write(1)
  notebook.note('live refresh', [await trial.refresh(), trial.steps()])
  const steps: number[] = []
  for await (const step of trial.follow({ timeoutMs: 30_000, pollMs: 20 })) {
    steps.push(step)
    if (step < 4) write(step + 1)
    else if (steps.at(-1) === 4) break
  }
  notebook.note('live steps', steps)
  const controller = new AbortController()
  setTimeout(() => controller.abort(new Error('enough')), 5)
  try {
    await trial.waitForSteps([99], { timeoutMs: 30_000, signal: controller.signal })
  } catch (error) {
    if ((error as Error).message !== 'enough') throw error
  }
  await trial.close()
  rmSync(dir, { recursive: true })
}

// -------------------------------------------------------------------------------------------------------- what is left

interface Quantity {
  readonly name: string
  readonly unit: 'MB' | ''
  measure(): number
  /** How far it may grow from the first rounds, the warm-up aside, to the last. */
  tolerance(first: number, rounds: number): number
}

const MB = 1e6
const listed = (path: string) => readdirSync(path).length
const onLinux = process.platform === 'linux'

const QUANTITIES: readonly Quantity[] = [
  {
    name: 'resident memory',
    unit: 'MB',
    measure: process.memoryUsage.rss,
    // malloc keeps what each thread has freed: a dozen rounds are still its warm-up, and grow by up to 80 MB.
    tolerance: (rss, rounds) => (rounds < 60 ? 128 : 64) * MB + rss / 10,
  },
  { name: 'heap', unit: 'MB', measure: () => process.memoryUsage().heapUsed, tolerance: heap => 2 * MB + heap / 20 },
  { name: 'buffers', unit: 'MB', measure: () => process.memoryUsage().external, tolerance: size => 2 * MB + size / 20 },
  { name: 'handles', unit: '', measure: () => process.getActiveResourcesInfo().length, tolerance: () => 0 },
  { name: 'listeners', unit: '', measure: listeners, tolerance: () => 0 },
  // Threads keep event files open, up to a limit, and one that was aborted is replaced while this is measured.
  ...(onLinux
    ? ([
        { name: 'open files', unit: '', measure: () => listed('/proc/self/fd'), tolerance: () => 16 },
        { name: 'threads', unit: '', measure: () => listed('/proc/self/task'), tolerance: () => 2 },
      ] as const)
    : []),
]

/** V8 frees buffers that one collection found unused with the next: collects until no more is freed. */
async function collectGarbage(): Promise<void> {
  let before = Infinity
  for (let i = 0; i < 10; i++) {
    await new Promise(resolve => setImmediate(resolve))
    globalThis.gc!()
    const { external } = process.memoryUsage()
    if (i > 1 && external >= before) return
    before = external
  }
}

function listeners(): number {
  return process.eventNames().reduce((count, name) => count + process.listenerCount(name), 0)
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!
}

interface Course {
  readonly first: number
  readonly last: number
  readonly isFlat: boolean
}

/**
 * Compares the first third of the rounds, the warm-up aside, with the last: memory by its median, and counts, which what
 * is under way only adds to, by their least.
 */
function course({ unit, tolerance }: Quantity, samples: readonly number[]): Course {
  const warm = samples.slice(Math.max(3, Math.min(20, samples.length >> 2)))
  const third = Math.floor(warm.length / 3)
  const told = unit === 'MB' ? median : (values: readonly number[]) => Math.min(...values)
  const first = told(warm.slice(0, third))
  const last = told(warm.slice(-third))
  return { first, last, isFlat: last - first <= tolerance(first, samples.length) }
}

/** What can be done wrong in each round, to see that it is found. */
const WRONGS: Readonly<Record<string, (trial: string) => unknown>> = {
  file: () => [1, 2, 3].map(() => openSync(import.meta.filename, 'r')),
  heap: () => Array.from({ length: 60_000 }, (_, i) => ({ i })),
  buffer: () => Buffer.alloc(3_000_000, 1),
  timer: () => setInterval(() => {}, 1e9),
  answer: trial => editEventFile(trial, 6, bytes => bytes.writeUInt8(bytes.readUInt8(200) ^ 1, 200)),
}

/** @returns what grew */
async function soak(seconds: number, wrongs: readonly ((trial: string) => unknown)[]): Promise<string[]> {
  if (globalThis.gc === undefined) throw new Error('needs node --expose-gc')
  const scratch = mkdtempSync(join(tmpdir(), 'trialscan-soak-'))
  process.on('exit', () => rmSync(scratch, { recursive: true, force: true }))
  const trials = [join(scratch, 'constant'), join(scratch, 'true')]
  makeTrial(trials[0]!, 'constant')
  makeTrial(trials[1]!, 'true')

  const notebook = new Notebook()
  const samples = QUANTITIES.map(() => [] as number[])
  const leaked: unknown[] = []
  const started = performance.now()
  const elapsed = () => (performance.now() - started) / 1000
  let round = 0
  let told = 0
  for (; round < 12 || elapsed() < seconds; round++) {
    const dir = trials[round % 2]!
    await useTrial(notebook, dir, round)
    await useRules(notebook, dir, round % 3)
    await useCache(notebook, dir, scratch)
    await useCare(notebook, dir, scratch, round)
    await useNew(notebook, dir, scratch, round)
    await useLive(notebook, scratch)
    if (round % 5 === 4) {
      await closePools()
      // The next samples shall find threads running, as the others did.
      await useRules(notebook, dir, 1)
      await useRules(notebook, dir, 2)
    }
    leaked.push(...wrongs.map(doWrong => doWrong(dir)))
    await collectGarbage()
    for (const [i, { measure }] of QUANTITIES.entries()) samples[i]!.push(measure())
    if (elapsed() - told >= 10) {
      told = elapsed()
      const now = QUANTITIES.map(({ name, unit }, i) => `${name} ${written(samples[i]!.at(-1)!, unit)}`)
      console.log(`${told.toFixed(0)} s, ${round + 1} rounds: ${now.join(', ')}`)
    }
  }
  await closePools()

  console.log(
    `${round} rounds in ${elapsed().toFixed(0)} s: ${notebook.questions} answers as in the first round, ${(readBytes / 1e9).toFixed(1)} GB read`,
  )
  return QUANTITIES.flatMap((quantity, i) => {
    const { name, unit } = quantity
    const { first, last, isFlat } = course(quantity, samples[i]!)
    console.log(`${name}: ${written(first, unit)}, at the end ${written(last, unit)}${isFlat ? '' : ' GREW'}`)
    return isFlat ? [] : [name]
  })
}

function written(value: number, unit: Quantity['unit']): string {
  return unit === 'MB' ? `${(value / MB).toFixed(1)} MB` : String(value)
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { seconds: { type: 'string', default: '60' }, wrong: { type: 'string' } } })
  const seconds = Number(values.seconds)
  if (!(seconds >= 0)) throw new Error(`--seconds: expected a number, got ${values.seconds}`)
  const wrongs = (values.wrong?.split(',') ?? []).map(name => {
    const doWrong = WRONGS[name]
    if (doWrong === undefined) throw new Error(`--wrong: expected some of ${Object.keys(WRONGS)}, got ${name}`)
    return doWrong
  })
  const grown = await soak(seconds, wrongs)
  if (grown.length > 0) console.error(`not flat: ${grown.join(', ')}`)
  process.exit(grown.length > 0 ? 1 : 0)
}

await main()
