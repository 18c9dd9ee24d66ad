/** What a verification goes through: event files, what index files say of them, and the jobs that check them. */

import { normalize } from 'node:path/posix'
import { quote } from '../errors.js'
import type { IndexFile, TensorLocation } from '../format/index-file.js'
import type { EventFileName } from '../format/paths.js'
import type { VerifiedRange, VerifyJob, VerifyRange } from '../job/verify.js'
import type { GlobalStep, Worker } from '../types.js'

/** Bytes of event files a job checks, and how many files at most. */
const JOB_BYTES = 8 << 20
const JOB_RANGES = 256
/** A file longer than this is cut at records that the index names, so that threads share it. */
export const CUT_BYTES = 16 << 20

/** What an index file says, and where it lies. */
export interface ReadIndex {
  readonly path: string
  readonly step: GlobalStep
  readonly worker: Worker
  /** Null where it can't be read. Tornasole's tell no mode. */
  readonly content: IndexContent | null
}

export type IndexContent = Pick<IndexFile, 'tensors' | 'eventFile' | 'shapes'> &
  Partial<Pick<IndexFile, 'mode' | 'modeStep'>>

/** An entry of an index file. */
export interface Entry {
  readonly location: TensorLocation
  readonly index: ReadIndex
}

/** An event file, and what index files say of it. */
export interface EventFile {
  readonly path: string
  /** In the order of the file. */
  readonly entries: readonly Entry[]
  readonly isListed: boolean
}

/** An event file that is to be checked, before its entries are brought into order: all of a trial's would be many. */
export interface NamedFile {
  readonly path: string
  readonly indexes: readonly ReadIndex[]
  readonly isListed: boolean
}

/** A range that was checked, and the tags of its reply. */
export interface Checked {
  readonly range: VerifiedRange
  readonly tags: readonly string[]
}

export function endOf({ startByte, byteLength }: TensorLocation): number {
  return startByte + byteLength
}

const NOTHING: IndexContent = { eventFile: null, tensors: [], shapes: [] }

/** Which steps of which workers have an index file. */
export class IndexState {
  readonly isThere: boolean
  readonly #ended: boolean
  readonly #readable = new Set<string>()
  readonly #all = new Set<string>()
  readonly #last = new Map<Worker, number>()

  /** @param events that were listed before the indexes were: the last of a worker has perhaps no index file yet */
  constructor(indexes: readonly ReadIndex[], events: readonly EventFileName[], ended: boolean) {
    this.isThere = indexes.length > 0
    this.#ended = ended
    for (const { step, worker, content } of indexes) {
      this.#all.add(`${step} ${worker}`)
      if (content !== null) this.#readable.add(`${step} ${worker}`)
    }
    for (const { step, worker } of [...indexes, ...events]) {
      this.#last.set(worker, Math.max(step, this.#last.get(worker) ?? 0))
    }
  }

  has({ step, worker }: EventFileName): boolean {
    return this.#all.has(`${step} ${worker}`)
  }

  isReadable({ step, worker }: EventFileName): boolean {
    return this.#readable.has(`${step} ${worker}`)
  }

  /** Whether an index file that is not there will not come: of a running job, that of a worker's last step still may. */
  isLate({ step, worker }: EventFileName): boolean {
    return this.#ended || step < (this.#last.get(worker) ?? -1)
  }
}

/** Event files that are there and those that index files name, in the order of their paths. */
export function eventFilesOf(paths: readonly string[], indexes: readonly ReadIndex[]): NamedFile[] {
  const byPath = new Map<string, ReadIndex[]>(paths.map(path => [path, []]))
  for (const index of indexes) {
    const { eventFile, tensors } = index.content ?? NOTHING
    if (eventFile === null || tensors.length === 0) continue
    // One that goes round about (`./events/…`) leads there as well.
    const path = normalize(eventFile)
    const ofFile = byPath.get(path)
    if (ofFile) ofFile.push(index)
    else byPath.set(path, [index])
  }
  const listed = new Set(paths)
  return [...byPath]
    .map(([path, ofFile]) => ({ path, indexes: ofFile, isListed: listed.has(path) }))
    .sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
}

export function entriesOf(indexes: readonly ReadIndex[]): Entry[] {
  return indexes
    .flatMap(index => (index.content?.tensors ?? []).map((location): Entry => ({ location, index })))
    .sort((a, b) => a.location.startByte - b.location.startByte)
}

/** A file in one range; one that is longer than CUT_BYTES in several, from one record that the index names to another. */
export function rangesOf({ path, entries }: EventFile, byteLength: number): VerifyRange[] {
  const anchors = Float64Array.from(new Set(entries.map(({ location }) => location.startByte)))
  const ranges: VerifyRange[] = []
  let first = 0
  let startByte = 0
  if (byteLength > CUT_BYTES) {
    for (const [i, anchor] of anchors.entries()) {
      if (anchor >= byteLength) break
      if (anchor - startByte < JOB_BYTES) continue
      ranges.push({ path, startByte, endByte: anchor, anchors: anchors.slice(first, i + 1) })
      startByte = anchor
      first = i
    }
  }
  return [...ranges, { path, startByte, endByte: null, anchors: anchors.slice(first) }]
}

export function* jobsOf(
  files: Iterable<{ readonly ranges: readonly VerifyRange[]; readonly byteLength: number }>,
  job: (ranges: readonly VerifyRange[]) => VerifyJob,
): Generator<VerifyJob> {
  let some: VerifyRange[] = []
  let bytes = 0
  for (const { ranges, byteLength } of files) {
    for (const range of ranges) {
      some.push(range)
      bytes += (range.endByte ?? byteLength) - range.startByte
      if (bytes < JOB_BYTES && some.length < JOB_RANGES) continue
      yield job(some)
      some = []
      bytes = 0
    }
  }
  if (some.length > 0) yield job(some)
}

/** What can't be had any more because of damage to a range of bytes; '' where nobody knows. */
export function lostBetween(
  entries: readonly Entry[],
  startByte: number,
  endByte: number,
  tag: string | null,
  step: number,
): string {
  if (tag !== null) return `tensor ${quote(tag)}${Number.isNaN(step) ? '' : ` at step ${step}`}`
  const inside = entries.filter(({ location }) => location.startByte >= startByte && location.startByte < endByte)
  const names = inside.map(({ location }) => location.name)
  return inside.length === 0 ? '' : lostTensors(names, inside[0]!.index.step)
}

export function lostTensors(names: readonly string[], step: number): string {
  const noun = names.length === 1 ? 'tensor' : 'tensors'
  return `${noun} ${listOf(names, quote)} at step ${step}`
}

/** Names that are told of many. */
export const MAX_LISTED = 5

/** The first of them, and how many others there are. */
export function listOf(names: readonly string[], show = quote, count = names.length): string {
  const some = names.slice(0, MAX_LISTED).map(show).join(', ')
  return count > MAX_LISTED ? `${some} and ${count - MAX_LISTED} others` : some
}
