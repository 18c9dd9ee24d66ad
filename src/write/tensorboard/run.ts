/** The runs of a TensorBoard log directory: their names, and their event files. */

import { UsageError } from '../../base/errors.js'
import type { Mode, Worker } from '../../base/types.js'
import { escapeWorker, isTensorBoardFile } from '../../format/paths.js'
import type { Destination } from '../../storage/destination.js'
import type { Store } from '../../storage/store.js'
import { Pipe } from '../pipe.js'
import { type Summary, type SummaryPlace, summaryRecord, versionRecord } from './summary.js'

/** The number of bytes of a run that may wait for the store. */
const QUEUE_BYTES = 1 << 20

/** The directory of a worker's run in a mode, below the log directory. @param worker null if there is only one */
export function runDirectory(worker: Worker | null, mode: Mode): string {
  // A run is named after its directory; `.` is the log directory itself.
  const parts = worker === null ? [] : escapeWorker(worker).split('/').map(directoryName)
  return [...parts.filter(part => part !== ''), mode].join('/')
}

/** A safe part of a path. */
function directoryName(part: string): string {
  if (part === '.') return ''
  if (part === '..') return '%2E%2E'
  return part.replace(/[\0\\]/g, character => encodeURIComponent(character))
}

/** @throws UsageError if there is such a run, since TensorBoard shows runs of one name as one; StoreError */
export async function expectNoRun(store: Store, directory: string): Promise<void> {
  const paths = await store.list(directory, { recursive: false })
  const eventFile = paths.find(isTensorBoardFile)
  if (eventFile === undefined) return
  const url = store.url(eventFile)
  throw new UsageError(`${url}: expected no run there yet, got one: write to another place`, { url, path: eventFile })
}

/** The event file of a run. It appears when it is complete. */
export class RunFile {
  readonly path: string
  readonly #pipe = new Pipe(QUEUE_BYTES)
  readonly #written: Promise<number | null>

  private constructor(destination: Destination, path: string, wallTime: number) {
    this.path = path
    this.#written = destination.create(path, this.#pipe).catch(error => {
      this.#pipe.fail(error)
      throw error
    })
    // The error is reported when the file is finished.
    this.#written.catch(() => {})
    this.#pipe.write([versionRecord(wallTime)])
  }

  /**
   * @param wallTime the time of the first event. It is part of the file's name, so that the same events make the same file
   * @throws UsageError if there is such a run; StoreError
   */
  static async create(destination: Destination, directory: string, wallTime: number): Promise<RunFile> {
    await expectNoRun(destination.store, directory)
    const seconds = Number.isFinite(wallTime) ? Math.max(0, Math.floor(wallTime)) : 0
    const path = `${directory}/events.out.tfevents.${String(seconds).padStart(10, '0')}.trialscan`
    return new RunFile(destination, path, wallTime)
  }

  /** @returns a promise for more room; null if there is room @throws StoreError, UsageError */
  add(place: SummaryPlace, summary: Summary): Promise<void> | null {
    return this.#pipe.write([summaryRecord(place, summary)])
  }

  /** @returns the number of bytes @throws StoreError */
  async finish(): Promise<number> {
    this.#pipe.end()
    return (await this.#written) ?? 0
  }

  /** Removes the partial file. */
  async abandon(): Promise<void> {
    this.#pipe.fail(new UsageError(`${this.path} was given up`))
    await this.#written.catch(() => {})
  }
}
