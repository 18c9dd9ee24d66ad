/** The worker of an index file: its name says one, and its event file may say another. Pure. */

import { normalize } from 'node:path/posix'
import { FormatError, quote, shortPath } from '../base/errors.js'
import type { GlobalStep, Worker } from '../base/types.js'
import type { IndexFile } from './index-file.js'
import { parseEventFileName } from './paths.js'

/** An index file, by its name and what it says; null if that can't be read. */
export interface OwnedIndex {
  readonly step: GlobalStep
  readonly worker: Worker
  readonly content: Pick<IndexFile, 'eventFile' | 'tensors'> | null
}

/** The worker of the event file that an index file of another worker names. */
export interface OtherWorker {
  readonly worker: Worker
  readonly eventFile: string
  /** True if the numbers are certainly the other worker's. Several workers may share a file, and a device is not a worker. */
  readonly isFault: boolean
}

/**
 * The worker of the event file that an index file names, if it is a file of the same step and of another worker; else
 * null.
 */
export function otherWorkerOf({ step, worker, content }: OwnedIndex): Worker | null {
  const name = content?.eventFile ? parseEventFileName(content.eventFile) : null
  return name !== null && name.step === step && name.worker !== worker ? name.worker : null
}

/**
 * The index files that name another worker's event file. The numbers are certainly that worker's if it has an index
 * file of its own for the step, which names another event file or lists some of the same records.
 * @param indexes all of a trial's
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

/** Finds out if two lists have a record at the same place. Many index files may name one event file, and share lists. */
function sameStarts(): (own: IndexFile['tensors'], other: IndexFile['tensors']) => boolean {
  const known = new Map<object, { readonly starts: ReadonlySet<number>; readonly answers: Map<object, boolean> }>()
  return (own, other) => {
    const { starts, answers } = known.get(own) ?? {
      starts: new Set(own.map(({ startByte }) => startByte)),
      answers: new Map<object, boolean>(),
    }
    known.set(own, { starts, answers })
    const answer = answers.get(other) ?? other.some(({ startByte }) => starts.has(startByte))
    answers.set(other, answer)
    return answer
  }
}

/** The error for an index file whose numbers are another worker's. */
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

/** TensorFlow names workers after their devices: one process may write the files of several such names. */
function isDevice(worker: Worker): boolean {
  return worker.startsWith('/')
}
