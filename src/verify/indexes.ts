/** Index files, as they are verified: whether they can be read, are the worker's whose name they have, and are all there. */

import { StoreError } from '../errors.js'
import type { Collections } from '../format/collections.js'
import { describeOther, othersAmong, otherWorkerError } from '../format/index-owner.js'
import { type EventFileName, indexFilePath, parseIndexFileName } from '../format/paths.js'
import type { TrialFiles } from '../format/trial-files.js'
import type { Access } from '../runner/access.js'
import { type IndexReading, readIndexFiles } from '../runner/index-files.js'
import type { Store } from '../store/store.js'
import type { Worker } from '../types.js'
import type { ReadIndex } from './entries.js'
import type { Findings } from './findings.js'
import { checkDuplicates } from './listing.js'
import { listNames, MAX_LISTED } from './lost.js'

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

/**
 * Reads the index files that count, and tells what is wrong with each of them by itself.
 * @returns one for each, in their order
 */
export async function readIndexes(
  { index: paths, duplicates }: TrialFiles,
  findings: Findings,
  access: Access,
  reading: IndexReading,
): Promise<ReadIndex[]> {
  checkDuplicates(duplicates, findings)
  const indexes: ReadIndex[] = []
  for await (const contents of readIndexFiles(paths, access, reading)) {
    for (const content of contents) {
      const path = paths[indexes.length]!
      const { step, worker, kind } = parseIndexFileName(path)!
      const isRead = !(content instanceof Error)
      // One that can't be read says nothing, but its event file has not been forgotten.
      indexes.push({ path, step, worker, content: isRead ? content : null, tellsMode: kind === 'json' })
      if (isRead) continue
      const { code } = content
      const problemCode = code === 'UnsafePath' ? code : content instanceof StoreError ? 'Unreadable' : 'BadIndexFile'
      findings.problemOf(content.toJSON(), path, problemCode, `what ${worker} saved at step ${step} is not found`)
    }
  }
  return indexes
}

/** Tells of index files that name another worker's event file. @returns the indexes; what is surely wrong says nothing any more */
export function checkOwners(indexes: readonly ReadIndex[], store: Store, findings: Findings): readonly ReadIndex[] {
  const others = othersAmong(indexes)
  if (others.size === 0) return indexes
  return indexes.map(index => {
    const other = others.get(index)
    if (other === undefined) return index
    const { path: file, step, worker } = index
    if (!other.isFault) {
      const { expected, got } = describeOther(worker, other)
      findings.note({ code: 'OtherWorker', file, step, expected, found: got })
      return index
    }
    const error = otherWorkerError(store.url(file), index, other)
    findings.problemOf(error.toJSON(), file, 'BadIndexFile', `what ${worker} saved at step ${step} is not found`)
    return { ...index, content: null }
  })
}

/** Steps that some workers wrote and others did not. */
export function checkWorkers(indexes: readonly ReadIndex[], collections: Collections | null, findings: Findings): void {
  const known = [...new Set(indexes.map(({ worker }) => worker))].sort()
  const wanted = Math.max(known.length, collections?.numWorkers ?? 0)
  const byStep = new Map<number, Worker[]>()
  for (const { step, worker } of indexes) {
    const workers = byStep.get(step)
    if (workers) workers.push(worker)
    else byStep.set(step, [worker])
  }
  for (const [step, workers] of [...byStep].sort(([a], [b]) => a - b)) {
    if (workers.length >= wanted) continue
    const present = new Set(workers)
    // Some of them: there can be as many workers as steps, of one step each.
    const missing: Worker[] = []
    for (const worker of known) {
      if (missing.length === MAX_LISTED) break
      if (!present.has(worker)) missing.push(worker)
    }
    const missingCount = known.length - present.size
    const strangers = wanted - workers.length - missingCount
    const names = [...missing, ...(strangers > 0 ? [`${strangers} that wrote nothing`] : [])]
    const nameCount = missingCount + (strangers > 0 ? 1 : 0)
    findings.note({
      code: 'StepIncomplete',
      file: indexFilePath(step, missing[0] ?? workers[0]!).replace(/\/[^/]*$/, ''),
      step,
      expected: `step ${step} of ${wanted} workers`,
      found: `that of ${workers.length}, without ${listNames(names, String, nameCount)}`,
    })
  }
}
