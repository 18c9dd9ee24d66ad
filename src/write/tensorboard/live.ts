/** Runs of TensorBoard that grow while a model is trained: a run for each mode, and each step in it as soon as it has ended. */

import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { MODES, type Mode, type Worker } from '../../base/types.js'
import { byteLengthOf } from '../../core/dtype.js'
import { withEngineSync } from '../../core/engines.js'
import { distribution } from '../../kernels/distribution.js'
import { moments } from '../../kernels/moments.js'
import { tensorData } from '../../scan/job/tensor/data.js'
import { rawValue } from '../../scan/worker/raw-value.js'
import { LocalStore } from '../../storage/local/local-store.js'
import { appendToFile, makeWritable } from '../../storage/local/output.js'
import type { TakenValue } from '../values.js'
import { histogramOf } from './histogram.js'
import { imagesOf, imageTag, layoutOf, MAX_IMAGES } from './image.js'
import { expectNoRun, runDirectory } from './run.js'
import { type Summary, type SummaryPlace, summaryRecord, versionRecord } from './summary.js'

/**
 * Elements in the pictures of one tensor, which take some 30 ms: the training waits for them. A picture of more than these is left to
 * `exportTensorBoard`.
 */
const MOST_ELEMENTS = 1 << 20

interface LiveRun {
  readonly directory: string
  /** Null: nothing of it is written yet. */
  path: string | null
  /** Records of the step under way. */
  waiting: Uint8Array[]
}

export interface LiveRunsOptions {
  /** The worker of these runs; null if there is only one. */
  readonly worker: Worker | null
  readonly images: boolean
}

export class LiveRuns {
  readonly #store: LocalStore
  readonly #worker: Worker | null
  readonly #images: boolean
  readonly #runs = new Map<Mode, LiveRun>()

  private constructor(store: LocalStore, { worker, images }: LiveRunsOptions) {
    this.#store = store
    this.#worker = worker
    this.#images = images
  }

  /**
   * @param root the log directory
   * @throws StoreError if it can't be written; UsageError if runs of the worker are there
   */
  static async begin(root: string, options: LiveRunsOptions): Promise<LiveRuns> {
    await makeWritable(root)
    const store = new LocalStore({ kind: 'local', root })
    for (const mode of MODES) await expectNoRun(store, runDirectory(options.worker, mode))
    return new LiveRuns(store, options)
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

  /** Takes the first pictures that a tensor holds, if its shape is one of pictures and they are wanted. */
  addImages(mode: Mode, place: SummaryPlace, taken: TakenValue): void {
    const layout = this.#images && isOrdered(taken) ? layoutOf(taken.shape) : null
    if (layout === null || !isOrdered(taken)) return
    const { dtype, bytes } = taken
    const perImage = layout.height * layout.width * layout.channels
    const most = Math.min(MAX_IMAGES, layout.count, Math.floor(MOST_ELEMENTS / perImage))
    const drawn = bytes.slice(0, byteLengthOf(dtype, most * perImage))
    const raw = withEngineSync(engine => rawValue({ dtype, shape: [most * perImage] }, drawn, null, engine))
    for (const [i, image] of imagesOf({ ...layout, count: most }, tensorData(raw)).entries()) {
      this.#add(mode, { ...place, tag: imageTag(place.tag, i) }, { image })
    }
  }

  /** Writes what was taken. @throws StoreError; UsageError for a run that another training has begun meanwhile */
  async flush(): Promise<void> {
    for (const run of this.#runs.values()) {
      if (run.waiting.length === 0) continue
      const bytes = Buffer.concat(run.waiting)
      run.waiting = []
      if (run.path === null) {
        await expectNoRun(this.#store, run.directory)
        run.path = this.#newPath(run.directory)
      }
      await appendToFile(run.path, bytes)
    }
  }

  #add(mode: Mode, place: SummaryPlace, summary: Summary): void {
    let run = this.#runs.get(mode)
    if (run === undefined) {
      const directory = runDirectory(this.#worker, mode)
      run = { directory, path: null, waiting: [versionRecord(Date.now() / 1000)] }
      this.#runs.set(mode, run)
    }
    run.waiting.push(summaryRecord(place, summary))
  }

  #newPath(directory: string): string {
    const seconds = String(Math.floor(Date.now() / 1000)).padStart(10, '0')
    const name = `events.out.tfevents.${seconds}.${hostname()}.${randomBytes(4).toString('hex')}`
    return join(this.#store.spec.root, directory, name)
  }
}

type Elements = Extract<TakenValue, { readonly bytes: Uint8Array }>

function isOrdered(taken: TakenValue): taken is Elements {
  return 'bytes' in taken && !taken.dtype.startsWith('complex')
}

function arrayOf({ dtype, shape, bytes }: Elements) {
  return { dtype, shape, data: bytes }
}
