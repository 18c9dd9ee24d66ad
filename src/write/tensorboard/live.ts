/**
 * TensorBoard runs that grow during a training: a run for each mode, with each step as soon as it has ended. On disk the event file
 * grows; objects on S3 can't, so each flush makes a further event file.
 */

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
import { Destination } from '../../storage/destination.js'
import { appendToFile, makeWritable } from '../../storage/local/output.js'
import { storeSpec } from '../../storage/open.js'
import type { S3Options } from '../../storage/s3/spec.js'
import type { TakenValue } from '../values.js'
import { histogramOf } from './histogram.js'
import { imagesOf, imageTag, layoutOf, MAX_IMAGES } from './image.js'
import { expectNoRun, runDirectory } from './run.js'
import { type Summary, type SummaryPlace, summaryRecord, versionRecord } from './summary.js'

/** The largest picture, in elements: it takes about 30 ms, during which the training waits. Larger ones are left to `exportTensorBoard`. */
const MAX_ELEMENTS = 1 << 20

interface LiveRun {
  readonly directory: string
  /** The event file on disk, relative to the log directory; null before it is begun. */
  path: string | null
  /** The number of event files. */
  files: number
  /** Records of the current step. */
  waiting: Uint8Array[]
}

export interface LiveRunsOptions {
  /** The worker of these runs; null if there is only one. */
  readonly worker: Worker | null
  readonly images: boolean
  readonly s3?: S3Options | undefined
}

export class LiveRuns {
  readonly #destination: Destination
  /** The log directory on disk; null on S3. */
  readonly #root: string | null
  /** A mark in the names of this training's event files. */
  readonly #mark = `${hostname()}.${randomBytes(4).toString('hex')}`
  readonly #worker: Worker | null
  readonly #images: boolean
  readonly #runs = new Map<Mode, LiveRun>()

  private constructor(destination: Destination, root: string | null, { worker, images }: LiveRunsOptions) {
    this.#destination = destination
    this.#root = root
    this.#worker = worker
    this.#images = images
  }

  /** @param place the log directory, on disk or on S3 @throws StoreError if it can't be written; UsageError if the worker has runs there */
  static async begin(place: string, options: LiveRunsOptions): Promise<LiveRuns> {
    const spec = storeSpec(place)
    const root = spec.kind === 'local' ? spec.root : null
    if (root !== null) await makeWritable(root)
    const destination = Destination.at(place, root === null ? options.s3 : undefined)
    for (const mode of MODES) await expectNoRun(destination.store, runDirectory(options.worker, mode))
    return new LiveRuns(destination, root, options)
  }

  addScalar(mode: Mode, place: SummaryPlace, scalar: number): void {
    this.#add(mode, place, { scalar })
  }

  /** Adds a tensor of one element. @returns false if it is not a single number */
  addElement(mode: Mode, place: SummaryPlace, taken: TakenValue): boolean {
    if (!isOrdered(taken) || taken.count !== 1) return false
    this.addScalar(mode, place, Number(moments(arrayOf(taken), ['max']).reduction('max')))
    return true
  }

  /** Adds a histogram of a tensor, unless it has texts, complex numbers, booleans or no elements. */
  addHistogram(mode: Mode, place: SummaryPlace, taken: TakenValue): void {
    if (!isOrdered(taken) || taken.dtype === 'bool' || taken.count === 0) return
    const array = arrayOf(taken)
    const histogram = histogramOf(moments(array, ['sum', 'l2']), distribution(array))
    if (histogram !== null) this.#add(mode, place, { histogram })
  }

  /** Adds the first pictures of a tensor, if images are wanted and its shape is that of pictures. */
  addImages(mode: Mode, place: SummaryPlace, taken: TakenValue): void {
    const layout = this.#images && isOrdered(taken) ? layoutOf(taken.shape) : null
    if (layout === null || !isOrdered(taken)) return
    const { dtype, bytes } = taken
    const perImage = layout.height * layout.width * layout.channels
    const most = Math.min(MAX_IMAGES, layout.count, Math.floor(MAX_ELEMENTS / perImage))
    const drawn = bytes.slice(0, byteLengthOf(dtype, most * perImage))
    const raw = withEngineSync(engine => rawValue({ dtype, shape: [most * perImage] }, drawn, null, engine))
    for (const [i, image] of imagesOf({ ...layout, count: most }, tensorData(raw)).entries()) {
      this.#add(mode, { ...place, tag: imageTag(place.tag, i) }, { image })
    }
  }

  /** Writes what was added. @throws StoreError; UsageError for a run that another training has begun meanwhile */
  async flush(): Promise<void> {
    for (const run of this.#runs.values()) {
      if (run.waiting.length === 0) continue
      const bytes = Buffer.concat(run.waiting)
      run.waiting = []
      if (run.path === null) {
        await expectNoRun(await this.#destination.look(), run.directory)
        run.path = `${run.directory}/events.out.tfevents.${String(Math.floor(Date.now() / 1000)).padStart(10, '0')}.${this.#mark}`
      }
      if (this.#root !== null) await appendToFile(join(this.#root, run.path), bytes)
      else await this.#writeNext(run, run.path, bytes)
    }
  }

  #add(mode: Mode, place: SummaryPlace, summary: Summary): void {
    let run = this.#runs.get(mode)
    if (run === undefined) {
      const directory = runDirectory(this.#worker, mode)
      run = { directory, path: null, files: 0, waiting: [versionRecord(Date.now() / 1000)] }
      this.#runs.set(mode, run)
    }
    run.waiting.push(summaryRecord(place, summary))
  }

  /** Writes records as a further event file: TensorBoard reads the files of a run in the order of their names. */
  async #writeNext(run: LiveRun, path: string, bytes: Uint8Array): Promise<void> {
    const version = run.files === 0 ? [] : [versionRecord(Date.now() / 1000)]
    const number = String(run.files++).padStart(9, '0')
    await this.#destination.create(`${path}.${number}`, [...version, bytes])
  }
}

type Elements = Extract<TakenValue, { readonly bytes: Uint8Array }>

function isOrdered(taken: TakenValue): taken is Elements {
  return 'bytes' in taken && !taken.dtype.startsWith('complex')
}

function arrayOf({ dtype, shape, bytes }: Elements) {
  return { dtype, shape, data: bytes }
}
