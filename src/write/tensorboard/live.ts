/** Runs of TensorBoard that grow while a model is trained: a run for each mode, and each step in it as soon as it has ended. */

import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { distribution } from '../../kernels/distribution.js'
import { moments } from '../../kernels/moments.js'
import { appendToFile } from '../../store/local/output.js'
import { MODES, type Mode, type Worker } from '../../types.js'
import type { TakenValue } from '../values.js'
import { histogramOf } from './histogram.js'
import { runDirectory } from './run.js'
import { type Summary, type SummaryPlace, summaryRecord, versionRecord } from './summary.js'

interface LiveRun {
  readonly path: string
  /** Records of the step under way. */
  waiting: Uint8Array[]
}

export class LiveRuns {
  readonly #directory: string
  readonly #worker: Worker | null
  readonly #runs = new Map<Mode, LiveRun>()

  /** @param worker whose runs these are; null: there is only one */
  constructor(directory: string, worker: Worker | null) {
    this.#directory = directory
    this.#worker = worker
  }

  addScalar(mode: Mode, place: SummaryPlace, scalar: number): void {
    this.#add(mode, place, { scalar })
  }

  /** Takes a tensor of one element. @returns whether it is one, and a number */
  addElement(mode: Mode, place: SummaryPlace, taken: TakenValue): boolean {
    if (!isOrdered(taken) || taken.count !== 1) return false
    this.addScalar(mode, place, Number(moments(arrayOf(taken), ['max']).reduction('max')))
    return true
  }

  /** Takes a tensor as a histogram, unless there is none: of texts, complex numbers, booleans and no elements. */
  addHistogram(mode: Mode, place: SummaryPlace, taken: TakenValue): void {
    if (!isOrdered(taken) || taken.dtype === 'bool' || taken.count === 0) return
    const array = arrayOf(taken)
    const histogram = histogramOf(moments(array, ['sum', 'l2']), distribution(array))
    if (histogram !== null) this.#add(mode, place, { histogram })
  }

  /** Writes what was taken. @throws StoreError */
  async flush(): Promise<void> {
    for (const mode of MODES) {
      const run = this.#runs.get(mode)
      if (run === undefined || run.waiting.length === 0) continue
      const bytes = Buffer.concat(run.waiting)
      run.waiting = []
      await appendToFile(run.path, bytes)
    }
  }

  #add(mode: Mode, place: SummaryPlace, summary: Summary): void {
    let run = this.#runs.get(mode)
    if (run === undefined) {
      run = { path: this.#pathOf(mode), waiting: [versionRecord(Date.now() / 1000)] }
      this.#runs.set(mode, run)
    }
    run.waiting.push(summaryRecord(place, summary))
  }

  /** A name that no other writer has: TensorBoard reads all files of a run, in the order of their names. */
  #pathOf(mode: Mode): string {
    const seconds = String(Math.floor(Date.now() / 1000)).padStart(10, '0')
    const name = `events.out.tfevents.${seconds}.${hostname()}.${randomBytes(4).toString('hex')}`
    return join(this.#directory, runDirectory(this.#worker, mode), name)
  }
}

type Elements = Extract<TakenValue, { readonly bytes: Uint8Array }>

function isOrdered(taken: TakenValue): taken is Elements {
  return 'bytes' in taken && !taken.dtype.startsWith('complex')
}

function arrayOf({ dtype, shape, bytes }: Elements) {
  return { dtype, shape, data: bytes }
}
