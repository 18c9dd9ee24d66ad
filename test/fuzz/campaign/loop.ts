/**
 * The loop of a campaign, on a thread: mutates what it has, keeps what takes a way that was not taken before, and writes
 * down what fails, made as small as it can be.
 */

import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { adoptModule } from '#dist/core/border/module.js'
import { Chance, mutateBytes, splice } from '../bytes.js'
import { findsOf, readCorpus, readFind, writeCorpus } from '../corpus.js'
import { TARGETS } from '../targets.js'
import { Coverage, watchInstances } from './counts.js'

export interface LoopData {
  readonly target: string
  readonly seconds: number
  /** Inputs that are tried at most. */
  readonly inputs: number
  readonly seed: number
  readonly fixtures: string
  /** Where what was kept lies, from earlier campaigns and for later ones. */
  readonly corpus: string
  /** Where finds are written. */
  readonly finds: string
  /** Whether the fixtures are to have the inputs that take ways of their own, in place of those they have. */
  readonly keeps: boolean
  readonly core: string
  readonly scriptCounters: number
  readonly coreCounters: number
  /** The number of executions, the length of the input that is tried, and the input: for whoever looks whether it hangs. */
  readonly shared: SharedArrayBuffer
}

export interface LoopReport {
  readonly executions: number
  readonly seconds: number
  readonly corpus: number
  /** Counters that counted, in src and in the core. */
  readonly counters: readonly [number, number]
  readonly finds: readonly string[]
}

/** What the fixtures keep of a target. */
const MAX_KEPT_BYTES = 32 << 10
/** Executions that making a find smaller may take. */
const MAX_SHRINKING = 3000

const data = workerData as LoopData
watchInstances()
adoptModule(new WebAssembly.Module(readFileSync(data.core)))

const target = TARGETS[data.target]!
const chance = new Chance(data.seed)
let coverage = new Coverage(data.scriptCounters, data.coreCounters)
const [executions, length] = [new Uint32Array(data.shared, 0, 1), new Uint32Array(data.shared, 4, 1)]
const current = new Uint8Array(data.shared, 8)
const corpus: Uint8Array[] = []
/** Kinds of failures that were seen, and the file of each. */
const finds = new Map<string, string>()

/** Runs the target; null, or what is wrong. */
async function execute(input: Uint8Array): Promise<unknown> {
  executions[0]!++
  length[0] = input.length
  current.set(input)
  coverage.reset()
  try {
    const pending = target.run(input)
    if (pending) await pending
    return null
  } catch (error) {
    return error ?? new Error('nothing was thrown')
  }
}

async function tryInput(input: Uint8Array): Promise<void> {
  const failure = await execute(input)
  if (failure !== null) await noteFind(input, failure)
  else if (coverage.hasNews()) {
    corpus.push(input)
    writeFileSync(join(data.corpus, nameOf(input)), input)
  }
}

/** What kind of failure it is: its words without numbers and quotes, and where it was thrown. */
function kindOf(failure: unknown): string {
  if (!(failure instanceof Error)) return String(failure)
  const place = failure.stack?.split('\n').find(line => /^ +at (?!hold )/.test(line)) ?? ''
  return `${failure.name}: ${failure.message
    .replace(/["'{[].*/s, '')
    .replace(/\d+/g, '0')
    .slice(0, 60)}${place}`
}

async function noteFind(input: Uint8Array, failure: unknown): Promise<void> {
  const kind = kindOf(failure)
  if (finds.has(kind)) return
  finds.set(kind, '')
  const small = await shrink(input, kind)
  const path = join(data.finds, `${nameOf(small)}.bin`)
  mkdirSync(data.finds, { recursive: true })
  writeFileSync(path, small)
  finds.set(kind, path)
  parentPort?.postMessage({ find: path, failure: failure instanceof Error ? (failure.stack ?? failure.message) : kind })
}

/** The smallest input of the same kind of failure that cutting pieces out and setting bytes to 0 comes to. */
async function shrink(input: Uint8Array, kind: string): Promise<Uint8Array> {
  let small = input
  let left = MAX_SHRINKING
  const fails = async (candidate: Uint8Array) => left-- > 0 && kindOf(await execute(candidate)) === kind
  for (let piece = small.length >> 1; piece > 0; piece >>= 1) {
    for (let at = 0; at < small.length && left > 0; ) {
      const candidate = splice(small, at, Math.min(piece, small.length - at))
      if (await fails(candidate)) small = candidate
      else at += piece
    }
  }
  for (let at = 0; at < small.length && left > 0; at++) {
    if (small[at] === 0) continue
    const candidate = small.slice()
    candidate[at] = 0
    if (await fails(candidate)) small = candidate
  }
  return small
}

function nameOf(input: Uint8Array): string {
  return createHash('sha256').update(input).digest('hex').slice(0, 16)
}

/** What is new leads on more often than what is old. */
function choose(): Uint8Array {
  const newest = Math.max(1, corpus.length >> 3)
  return chance.once(2) ? chance.pick(corpus) : corpus[corpus.length - 1 - chance.below(newest)]!
}

async function run(): Promise<LoopReport> {
  const start = performance.now()
  const end = start + data.seconds * 1000
  mkdirSync(data.corpus, { recursive: true })
  const known = readdirSync(data.corpus).sort()
  const earlier = known.map(name => new Uint8Array(readFileSync(join(data.corpus, name))))
  const kept = findsOf(data.fixtures, data.target).map(name => readFind(data.fixtures, data.target, name))
  kept.push(...readCorpus(data.fixtures, data.target))
  for (const input of [...target.seeds(data.fixtures), ...kept, ...earlier]) {
    if (input.length <= target.maxByteLength) await tryInput(input)
  }
  const other = () => chance.pick(corpus)
  while (performance.now() < end && executions[0]! < data.inputs && corpus.length > 0) {
    // Several of one input: what is taken apart is taken apart once.
    const parent = choose()
    for (let i = 0; i < 64; i++) {
      const isBlind = chance.once(5)
      const input = isBlind ? mutateBytes(parent, chance, [], other) : target.mutate(parent, chance, other)
      if (input.length <= target.maxByteLength) await tryInput(input)
    }
  }
  const report = {
    executions: executions[0]!,
    seconds: (performance.now() - start) / 1000,
    corpus: corpus.length,
    counters: coverage.seen,
    finds: [...finds.values()],
  }
  if (data.keeps) writeCorpus(data.fixtures, data.target, await distinct())
  return report
}

/** Of the corpus what takes ways of its own, the short ones first. */
async function distinct(): Promise<Uint8Array[]> {
  coverage = new Coverage(data.scriptCounters, data.coreCounters)
  const kept: Uint8Array[] = []
  let byteLength = 0
  for (const input of [...corpus].sort((a, b) => a.length - b.length)) {
    if (byteLength + input.length > MAX_KEPT_BYTES) break
    if ((await execute(input)) !== null || !coverage.hasNews()) continue
    kept.push(input)
    byteLength += input.length
  }
  return kept
}

if (existsSync(data.core)) parentPort?.postMessage({ report: await run() })
