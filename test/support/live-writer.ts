/**
 * A training job in a process of its own, as far as its files go: `LiveWriter` starts it and tells it what to write, line
 * by line; a line is answered when it is done. Run as a program, this file is that process.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import {
  eventFilePath,
  indexFilePath,
  type ModeName,
  type StepSpec,
  type StepTensor,
  TrialWriter,
} from '../../fixtures/event-writer.js'

/** What a job can be told; a worker is a number. */
export type Command =
  /** Publishes event file and index file of a step, for each worker in turn. */
  | {
      readonly do: 'step'
      readonly step: number
      readonly workers: readonly number[]
      readonly mode?: ModeName
      readonly modeStep?: number
      /** Default: a loss of two numbers, step and worker. */
      readonly tensors?: readonly StepTensor[]
    }
  /** Publishes one of the two files, or a part: `half` of the bytes under the true name, or all under `….tmp`. */
  | {
      readonly do: 'put'
      readonly file: 'event' | 'index'
      readonly step: number
      readonly worker: number
      readonly as?: 'whole' | 'half' | 'tmp'
    }
  /** Renames an index file's `….tmp`. */
  | { readonly do: 'rename'; readonly step: number; readonly worker: number }
  | { readonly do: 'end' }
  /** Dies without a word. */
  | { readonly do: 'crash' }

/** This file, as test/programs.ts has compiled it. */
const PROGRAM = join(import.meta.dirname, '../../dist/programs/live-writer.js')

export class LiveWriter {
  readonly #process: ChildProcess
  readonly #answers: AsyncIterator<string>

  private constructor(directory: string, numWorkers: number) {
    this.#process = spawn(process.execPath, [PROGRAM, directory, String(numWorkers)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.#answers = createInterface({ input: this.#process.stdout! })[Symbol.asyncIterator]()
  }

  /** Starts a job; when it is there, so are its collections files. */
  static async start(directory: string, numWorkers = 1): Promise<LiveWriter> {
    const writer = new LiveWriter(directory, numWorkers)
    await writer.#answers.next()
    return writer
  }

  /** Has commands carried out, in order. */
  async do(...commands: Command[]): Promise<void> {
    for (const command of commands) {
      this.#process.stdin!.write(`${JSON.stringify(command)}\n`)
      await this.#answers.next()
    }
  }

  step(step: number, ...workers: number[]): Promise<void> {
    return this.do({ do: 'step', step, workers: workers.length === 0 ? [0] : workers })
  }

  end(): Promise<void> {
    return this.do({ do: 'end' })
  }

  stop(): void {
    this.#process.kill('SIGKILL')
  }
}

async function serve(directory: string, numWorkers: number): Promise<void> {
  const staged = `${directory}.staged`
  const writer = new TrialWriter(staged, { numWorkers })
  cpSync(join(staged, 'collections'), join(directory, 'collections'), { recursive: true })
  const stage = (step: number, worker: number, as: Partial<StepSpec> = {}): void => {
    const tensors = [{ name: 'loss', dtype: 'float32' as const, shape: [2], values: [step, worker] }]
    writer.step({ tensors, ...as, step, worker })
  }
  const put = (path: string, as: 'whole' | 'half' | 'tmp'): void => {
    const bytes = readFileSync(join(staged, path))
    const target = join(directory, path)
    mkdirSync(dirname(target), { recursive: true })
    const written = as === 'half' ? bytes.subarray(0, bytes.length >> 1) : bytes
    writeFileSync(as === 'half' ? target : `${target}.tmp`, written)
    if (as === 'whole') renameSync(`${target}.tmp`, target)
  }
  const carryOut = (command: Command): void => {
    switch (command.do) {
      case 'step':
        for (const worker of command.workers) {
          const { mode, modeStep, tensors } = command
          stage(command.step, worker, {
            ...(mode && { mode }),
            ...(modeStep !== undefined && { modeStep }),
            ...(tensors && { tensors }),
          })
          put(eventFilePath(command.step, `worker_${worker}`), 'whole')
          put(indexFilePath(command.step, `worker_${worker}`), 'whole')
        }
        break
      case 'put': {
        const pathOf = command.file === 'event' ? eventFilePath : indexFilePath
        stage(command.step, command.worker)
        put(pathOf(command.step, `worker_${command.worker}`), command.as ?? 'whole')
        break
      }
      case 'rename': {
        const path = join(directory, indexFilePath(command.step, `worker_${command.worker}`))
        renameSync(`${path}.tmp`, path)
        break
      }
      case 'end':
        writeFileSync(join(directory, 'training_job_end.ts'), '')
        break
      case 'crash':
        process.kill(process.pid, 'SIGKILL')
    }
  }
  console.log('ready')
  for await (const line of createInterface({ input: process.stdin })) {
    carryOut(JSON.parse(line) as Command)
    console.log('done')
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await serve(process.argv[2]!, Number(process.argv[3]))
