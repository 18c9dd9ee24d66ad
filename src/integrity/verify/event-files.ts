/** The event files of a trial, and the jobs that read them, followed from record to record. */

import { normalize } from 'node:path/posix'
import { type ErrorData, StoreError, type TrialscanError } from '../../base/errors.js'
import { entryOf } from '../../base/maps.js'
import {
  CUT_BYTES,
  rangesOfFile,
  type VerifiedRange,
  type VerifyJob,
  type VerifyRange,
  verifyJobs,
} from '../../scan/job/verify-job.js'
import type { Access } from '../../scan/runner/access.js'
import { runOnFiles } from '../../scan/runner/failed-job.js'
import { pumpAll } from '../../scan/runner/pump.js'
import { type Runner, runTwice } from '../../scan/runner/runner.js'
import { Entries, endOfIndexes, type ReadIndex } from './entries.js'

/** An event file and its index entries. */
export interface EventFile {
  readonly path: string
  readonly entries: Entries
  readonly isListed: boolean
}

/** An event file to check. Its entries are sorted later: those of a whole trial would take much memory. */
export interface NamedFile {
  readonly path: string
  readonly indexes: readonly ReadIndex[]
  readonly isListed: boolean
}

/** A checked range, and the tags of its reply. */
export interface Checked {
  readonly range: VerifiedRange
  readonly tags: readonly string[]
}

export interface FileReading {
  readonly access: Access
  /** @param bytes the size of all work */
  readonly runner: (bytes: number) => Promise<Runner>
  readonly signal: AbortSignal | undefined
  /** The checks of each range. */
  readonly job: Omit<VerifyJob, 'kind' | 'store' | 'ranges'>
}

/** The event files that exist and those that index files name, in the order of their paths. */
export function eventFilesOf(paths: readonly string[], indexes: readonly ReadIndex[]): NamedFile[] {
  const byPath = new Map<string, ReadIndex[]>(paths.map(path => [path, []]))
  for (const index of indexes) {
    if (index.content === null) continue
    const { eventFile, tensors } = index.content
    if (eventFile === null || tensors.length === 0) continue
    // A path with detours (`./events/…`) is the same file.
    const path = normalize(eventFile)
    entryOf(byPath, path, () => []).push(index)
  }
  const listed = new Set(paths)
  return [...byPath]
    .map(([path, ofFile]) => ({ path, indexes: ofFile, isListed: listed.has(path) }))
    .sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
}

/** Reads event files from end to end. */
export class EventFileReader {
  /** The bytes read of event files. */
  readBytes = 0
  /** The number of threads; known once the first file is read. */
  threads = 0
  readonly #reading: FileReading
  readonly #job: Omit<VerifyJob, 'ranges'>

  constructor(reading: FileReading) {
    this.#reading = reading
    this.#job = { kind: 'verify', store: reading.access.spec, ...reading.job }
  }

  /** The content of each file, or the error that prevents reading it, in order. */
  async *read(
    files: readonly NamedFile[],
  ): AsyncGenerator<{ readonly file: EventFile; readonly found: readonly Checked[] | ErrorData }> {
    const { deep } = this.#job
    const byteLengths: number[] = []
    for (const file of files) byteLengths.push(await this.#byteLength(file))
    const runner = await this.#reading.runner(byteLengths.reduce((sum, byteLength) => sum + byteLength, 0))
    this.threads = runner.threads
    // Files whose jobs are running.
    const pending: { readonly file: EventFile; readonly ranges: readonly VerifyRange[] }[] = []
    const planned = function* (): Generator<{ ranges: readonly VerifyRange[]; byteLength: number }> {
      for (const [i, { path, indexes, isListed }] of files.entries()) {
        const entries = new Entries(indexes)
        const byteLength = byteLengths[i]!
        const ranges = rangesOfFile(path, deep ? 0 : byteLength, entries.anchors)
        pending.push({ file: { path, isListed, entries }, ranges })
        yield { ranges, byteLength }
      }
    }
    const results = this.#checked(runner, verifyJobs(planned(), this.#job))
    for (let next = await results.next(); !next.done; ) {
      const { file, ranges } = pending.shift()!
      const checked: Checked[] = []
      let error: ErrorData | null = null
      for (const range of ranges) {
        const { value } = next
        if (value === undefined) break
        if ('code' in value) error ??= value
        else error ??= await this.#follow(checked, range, value, runner)
        next = await results.next()
      }
      yield { file, found: error ?? checked }
    }
  }

  /** The length of a file according to its index, without a request; from the store if no index names it, or if it is long. */
  async #byteLength({ path, indexes }: NamedFile): Promise<number> {
    const end = endOfIndexes(indexes)
    if (end > 0 && end <= CUT_BYTES) return end
    try {
      return await this.#reading.access.store.byteLength(path)
    } catch (error) {
      if (error instanceof StoreError) return 0
      throw error
    }
  }

  /** Runs a job and returns the reply for each of its ranges. A range that kills its thread doesn't affect the others. */
  #rangesOf(runner: Runner, ranges: readonly VerifyRange[]): Promise<(Checked | TrialscanError)[]> {
    const { access, signal } = this.#reading
    const check = async (some: readonly VerifyRange[]) => {
      const { ranges, tags, readBytes } = await runTwice(runner, { ...this.#job, ranges: some }, signal)
      this.readBytes += readBytes
      return { files: ranges.map(range => ('recordStart' in range ? { range, tags } : range)) }
    }
    return runOnFiles(ranges, check, ({ path }) => access.store.url(path))
  }

  /** The ranges of all jobs, in order. */
  async *#checked(
    runner: Runner,
    jobs: Iterable<VerifyJob>,
  ): AsyncGenerator<Checked | ErrorData, undefined, undefined> {
    const { signal } = this.#reading
    const work = ({ ranges }: VerifyJob) => this.#rangesOf(runner, ranges)
    for await (const ranges of pumpAll(jobs, work, { ahead: runner.ahead, signal, settles: true })) yield* ranges
    return undefined
  }

  /**
   * Appends a range to those before it. It is valid only if the preceding records lead to its start: otherwise the index was wrong, and
   * the range is read again from there.
   * @returns the error if it can't be read
   */
  async #follow(
    checked: Checked[],
    { endByte, path, anchors }: VerifyRange,
    next: Checked,
    runner: Runner,
  ): Promise<ErrorData | null> {
    let at = checked.at(-1)?.range.endByte ?? 0
    let part: Checked | null = next
    for (;;) {
      const fileLength = checked.at(-1)?.range.byteLength ?? Number.POSITIVE_INFINITY
      const end = Math.min(endByte ?? fileLength, fileLength)
      if (checked.length > 0 && at >= end) return null
      if (part === null || part.range.startByte !== at) {
        this.#reading.signal?.throwIfAborted()
        const [again] = await this.#rangesOf(runner, [{ path, anchors, startByte: at, endByte }])
        if (again === undefined || 'code' in again) return again ?? null
        part = again
      }
      checked.push(part)
      if (part.range.endByte <= at) return null
      at = part.range.endByte
      part = null
    }
  }
}
