/**
 * A process that changes a trial while others read it, as fast as they like it least. Run as a program, this file is that
 * process. Each number in the trial tells which tensor, worker, step and version it belongs to: `expectRight` knows.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { eventFilePath, indexFilePath, type StepTensor, TrialWriter } from '../../fixtures/event-writer.js'
import { uniform } from '../../fixtures/random.js'

/** What can happen to a trial. */
export type Disturbance =
  /** The job goes on: event file and index file of worker after worker, each under its name when it is whole. */
  | 'grows'
  /** Files are replaced by others of the same length, each as a whole. */
  | 'is replaced'
  /** Files are written over where they are, piece by piece. */
  | 'is rewritten'
  /** Files lose their ends and get them back. */
  | 'shrinks and grows again'
  /** Files and directories go and come back. */
  | 'vanishes and comes back'

export const VALUES = ['a', 'b', 'c']
/** Of this one only reductions are saved. */
export const REDUCED = 'd'
export const NAMES = [...VALUES, REDUCED]
export const WORKERS = 2
/** Steps that are there from the beginning, and steps that may come. */
export const STEPS = 6
export const MAX_STEPS = 200
const VERSIONS = 3
/** Elements of a tensor: so many zeros as its number says, and then that number. */
export const COUNT = 1 << 14

/** The numbers that a tensor may say. */
export function numbersOf(name: string, step: number, worker: string): number[] {
  const first = 1 + VERSIONS * (NAMES.indexOf(name) + NAMES.length * (Number(worker.slice(-1)) + WORKERS * step))
  return Array.from({ length: VERSIONS }, (_, version) => first + version)
}

/** All versions hold the same number of bytes; where a tensor lies in its file is another in each. */
function tensorsOf(step: number, worker: number, version: number): StepTensor[] {
  const tensors = NAMES.map((name): StepTensor => {
    const number = numbersOf(name, step, `worker_${worker}`)[version]!
    if (name === REDUCED) return { name, reductions: { mean: number } }
    const data = new Uint8Array(new Float32Array(COUNT).fill(number, number).buffer)
    return { name, dtype: 'float32', shape: [COUNT], data }
  })
  return [...tensors.slice(version), ...tensors.slice(0, version)]
}

/** Writes the trial as it is at first. */
export function writeTrial(directory: string, version = 0): void {
  const writer = new TrialWriter(directory, {
    numWorkers: WORKERS,
    checksum: 'true',
    collections: { all: { includeRegex: ['.*'] } },
  })
  for (let step = 0; step < STEPS; step++) writeStep(writer, step, version)
}

function writeStep(writer: TrialWriter, step: number, version: number): void {
  for (let worker = 0; worker < WORKERS; worker++) {
    writer.step({ step, mode: 'TRAIN', worker, tensors: tensorsOf(step, worker, version) })
  }
}

/** This file, as test/programs.ts has compiled it. */
const PROGRAM = join(import.meta.dirname, '../../dist/programs/disturber.js')

export class Disturber {
  readonly #process: ChildProcess
  readonly #lines: AsyncIterator<string>

  private constructor(what: Disturbance, directory: string, seed: number) {
    const args = [PROGRAM, what, directory, String(seed)]
    this.#process = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#lines = createInterface({ input: this.#process.stdout! })[Symbol.asyncIterator]()
  }

  /** Begins to disturb a trial that `writeTrial` has written. */
  static async start(what: Disturbance, directory: string, seed: number): Promise<Disturber> {
    const disturber = new Disturber(what, directory, seed)
    await disturber.#lines.next()
    return disturber
  }

  /** Ends it; the trial is whole then. @returns how many changes were made */
  async stop(): Promise<number> {
    this.#process.stdin!.end()
    const { value } = await this.#lines.next()
    return Number(value)
  }

  kill(): void {
    this.#process.kill('SIGKILL')
  }
}

/** Makes one change, whole again when the promise is settled. */
type Change = () => Promise<void>

function changesOf(what: Disturbance, directory: string, seed: number): Change {
  const random = uniform(seed)
  const upTo = (count: number) => Math.floor(random() * count)
  const pause = () => sleep(upTo(4))
  const staged = Array.from({ length: VERSIONS }, (_, version) => `${directory}.staged${version}`)
  for (const [version, path] of staged.entries()) writeTrial(path, version)
  const bytesOf = (path: string, version: number) => readFileSync(join(staged[version]!, path))
  const publish = (path: string, bytes: Uint8Array): void => {
    const target = join(directory, path)
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(`${target}.tmp`, bytes)
    renameSync(`${target}.tmp`, target)
  }
  const filesOf = (step: number, worker: number) => [
    eventFilePath(step, `worker_${worker}`),
    indexFilePath(step, `worker_${worker}`),
  ]
  const someFile = () => filesOf(upTo(STEPS), upTo(WORKERS))[upTo(2)]!
  /** Puts bytes where a file is, from an offset on, in a few pieces. */
  const writeOver = async (path: string, bytes: Uint8Array, from: number, end: number): Promise<void> => {
    const file = openSync(join(directory, path), 'r+')
    ftruncateSync(file, end)
    await pause()
    const piece = Math.max(1, Math.ceil((bytes.length - from) / (1 + upTo(4))))
    for (let at = from; at < bytes.length; at += piece) {
      writeSync(file, bytes, at, Math.min(piece, bytes.length - at), at)
      if (random() < 0.5) await pause()
    }
    ftruncateSync(file, bytes.length)
    closeSync(file)
  }
  switch (what) {
    case 'grows': {
      let step = STEPS
      const writer = new TrialWriter(staged[0]!, { numWorkers: WORKERS, checksum: 'true' })
      return async () => {
        if (step === MAX_STEPS) return
        writeStep(writer, step, 0)
        for (let worker = 0; worker < WORKERS; worker++) {
          for (const path of filesOf(step, worker)) {
            publish(path, bytesOf(path, 0))
            await pause()
          }
        }
        step++
        await sleep(20)
      }
    }
    case 'is replaced':
      return async () => {
        const path = someFile()
        publish(path, bytesOf(path, upTo(VERSIONS)))
      }
    case 'is rewritten':
      return async () => {
        const path = someFile()
        const bytes = bytesOf(path, upTo(VERSIONS))
        await writeOver(path, bytes, 0, bytes.length)
      }
    case 'shrinks and grows again':
      return async () => {
        const path = someFile()
        const bytes = bytesOf(path, 0)
        const left = upTo(bytes.length)
        await writeOver(path, bytes, left, left)
      }
    case 'vanishes and comes back': {
      const all = [
        ...Array.from({ length: STEPS * WORKERS }, (_, i) => filesOf(i >> 1, i & 1)).flat(),
        ...Array.from({ length: WORKERS }, (_, i) => `collections/000000000/worker_${i}_collections.json`),
      ]
      return async () => {
        const path = random() < 0.5 ? someFile() : all[upTo(all.length)]!
        const levels = path.split('/').length
        const gone = path
          .split('/')
          .slice(0, levels - upTo(levels))
          .join('/')
        rmSync(join(directory, gone), { recursive: true })
        await pause()
        const version = upTo(VERSIONS)
        for (const file of all) if (file === gone || file.startsWith(`${gone}/`)) publish(file, bytesOf(file, version))
        await sleep(2)
      }
    }
  }
}

async function serve(what: Disturbance, directory: string, seed: number): Promise<void> {
  const change = changesOf(what, directory, seed)
  let isAsked = true
  process.stdin.resume().once('end', () => {
    isAsked = false
  })
  console.log('ready')
  let changes = 0
  for (; isAsked; changes++) {
    await change()
    await sleep(1)
  }
  console.log(changes)
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await serve(process.argv[2] as Disturbance, process.argv[3]!, Number(process.argv[4]))
