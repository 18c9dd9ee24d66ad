/** The worker of an index file: according to its name, and according to its event file. Pure. */

import { normalize } from 'node:path/posix'
import { FormatError, quote, shortPath } from '../base/errors.js'
import { entryOf } from '../base/maps.js'
import type { GlobalStep, Worker } from '../base/types.js'
import type { IndexFile } from './index-file.js'
import { parseEventFileName } from './paths.js'

/** An index file with its name; content is null if it can't be read. */
export interface OwnedIndex {
  readonly step: GlobalStep
  readonly worker: Worker
  readonly content: Pick<IndexFile, 'eventFile' | 'tensors'> | null
}

/** The worker of an event file that another worker's index file names. */
export interface OtherWorker {
  readonly worker: Worker
  readonly eventFile: string
  /** True if the numbers certainly belong to the other worker. Several workers may share a file, and a device is not a worker. */
  readonly isFault: boolean
}

/** The worker of an event file that an index file names, if it is of the same step and another worker; otherwise null. */
export function otherWorkerOf({ step, worker, content }: OwnedIndex): Worker | null {
  const name = content?.eventFile ? parseEventFileName(content.eventFile) : null
  return name !== null && name.step === step && name.worker !== worker ? name.worker : null
}

/**
 * The index files that name another worker's event file. The numbers certainly belong to that worker if it has an index file for the step
 * that names another event file or lists some of the same records.
 * @param indexes all index files of a trial
 */
export function othersAmong<T extends OwnedIndex>(indexes: readonly T[]): ReadonlyMap<T, OtherWorker> {
  const others = new Map<T, OtherWorker>()
  const strangers = indexes.filter(index => otherWorkerOf(index) !== null)
  if (strangers.length === 0) return others
  const steps = new Set(strangers.map(({ step }) => step))
  const byOwner = new Map(
    indexes.filter(({ step }) => steps.has(step)).map(({ step, worker, content }) => [`${step} ${worker}`, content]),
  )
  const tellsSame = sameStarts()
  for (const index of strangers) {
    const { eventFile, tensors } = index.content!
    const worker = otherWorkerOf(index)!
    const owner = byOwner.get(`${index.step} ${worker}`)
    const isFault =
      isDevice(worker) === isDevice(index.worker) &&
      owner != null &&
      owner.eventFile !== null &&
      (normalize(owner.eventFile) !== normalize(eventFile!) || tellsSame(owner.tensors, tensors))
    others.set(index, { worker, eventFile: eventFile!, isFault })
  }
  return others
}

/** Tests if two lists have a record at the same place. Many index files may name one event file, and share lists. */
function sameStarts(): (entries: IndexFile['tensors'], other: IndexFile['tensors']) => boolean {
  const known = new Map<object, { readonly starts: ReadonlySet<number>; readonly answers: Map<object, boolean> }>()
  return (entries, other) => {
    const { starts, answers } = entryOf(known, entries, () => ({
      starts: new Set(entries.map(({ startByte }) => startByte)),
      answers: new Map<object, boolean>(),
    }))
    return entryOf(answers, other, () => other.some(({ startByte }) => starts.has(startByte)))
  }
}

/** The error for an index file with another worker's numbers. */
export function otherWorkerError(url: string, { worker }: OwnedIndex, other: OtherWorker): FormatError {
  const { expected, got } = describeOther(worker, other)
  return new FormatError('BadIndexFile', `${url}: event_file_name: expected ${expected}, got ${got}`, {
    url,
    expected,
    got,
  })
}

export function describeOther(worker: Worker, other: OtherWorker): { readonly expected: string; readonly got: string } {
  return {
    expected: `an event file of worker ${quote(worker)}, whose index file this is by its name`,
    got: `that of worker ${quote(other.worker)}, ${shortPath(other.eventFile)}`,
  }
}

/** True for a device: TensorFlow names workers after devices, and one process may write the files of several. */
function isDevice(worker: Worker): boolean {
  return worker.startsWith('/')
}
