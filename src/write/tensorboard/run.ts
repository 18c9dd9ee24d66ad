/** The runs of a log directory of TensorBoard's: how they are named, and the event file of one, written as a whole. */

import { UsageError } from '../../base/errors.js'
import type { Mode, Worker } from '../../base/types.js'
import { escapeWorker, isTensorBoardFile } from '../../format/paths.js'
import type { Destination } from '../../storage/destination.js'
import type { Store } from '../../storage/store.js'
import { Pipe } from '../pipe.js'
import { type Summary, type SummaryPlace, summaryRecord, versionRecord } from './summary.js'

/** Bytes that may wait for the store, of each run. */
const QUEUE_BYTES = 1 << 20

/** The directory of a worker's run in a mode, below the log directory. @param worker null if there is only one */
export function runDirectory(worker: Worker | null, mode: Mode): string {
  // A run of TensorBoard's is a worker by the name of its directory, and `.` is that of the root.
  const parts = worker === null ? [] : escapeWorker(worker).split('/').map(directoryName)
  return [...parts.filter(part => part !== ''), mode].join('/')
}

/** A part of a path that leads nowhere else. */
function directoryName(part: string): string {
  if (part === '.') return ''
  if (part === '..') return '%2E%2E'
  return part.replace(/[\0\\]/g, character => encodeURIComponent(character))
}

/** @throws UsageError if there is such a run: two of one name are shown as one; StoreError */
export async function expectNoRun(store: Store, directory: string): Promise<void> {
  const paths = await store.list(directory, { recursive: false })
  const found = paths.find(isTensorBoardFile)
  if (found === undefined) return
  const url = store.url(found)
  throw new UsageError(`${url}: expected no run there yet, got one: write to another place`, { url, path: found })
}

/** The event file of a run. It appears when it is whole. */
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
    // It is told when the file is finished.
    this.#written.catch(() => {})
    this.#pipe.write([versionRecord(wallTime)])
  }

  /**
   * @param wallTime of its first event, which its name tells, so that the same events make the same file
   * @throws UsageError if there is such a run; StoreError
   */
  static async create(destination: Destination, directory: string, wallTime: number): Promise<RunFile> {
    await expectNoRun(destination.store, directory)
    const seconds = Number.isFinite(wallTime) ? Math.max(0, Math.floor(wallTime)) : 0
    const path = `${directory}/events.out.tfevents.${String(seconds).padStart(10, '0')}.trialscan`
    return new RunFile(destination, path, wallTime)
  }

  /** @returns null, or once there is room for more @throws StoreError, UsageError */
  add(place: SummaryPlace, summary: Summary): Promise<void> | null {
    return this.#pipe.write([summaryRecord(place, summary)])
  }

  /** @returns its bytes @throws StoreError */
  async finish(): Promise<number> {
    this.#pipe.end()
    return (await this.#written) ?? 0
  }

  /** Leaves nothing of it. */
  async abandon(): Promise<void> {
    this.#pipe.fail(new UsageError(`${this.path} was given up`))
    await this.#written.catch(() => {})
  }
}
