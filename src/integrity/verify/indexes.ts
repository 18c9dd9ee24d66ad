/** Verifies index files: they can be read, belong to the worker in their name, and are complete. */

import { StoreError } from '../../base/errors.js'
import { entryOf } from '../../base/maps.js'
import { countBelow } from '../../base/sorted.js'
import type { GlobalStep, Worker } from '../../base/types.js'
import type { Collections } from '../../format/collections.js'
import type { IndexFile } from '../../format/index-file.js'
import { describeOther, othersAmong, otherWorkerError } from '../../format/index-owner.js'
import { type EventFileName, indexFilePath, parseEventFileName, parseIndexFileName } from '../../format/paths.js'
import type { TrialFiles } from '../../format/trial-files.js'
import { IndexColumns } from '../../scan/catalog/columns/index-columns.js'
import { NO_LIST, type TensorLists } from '../../scan/catalog/columns/tensor-lists.js'
import type { Access } from '../../scan/runner/access.js'
import { type IndexReading, readIndexFiles } from '../../scan/runner/index-reading.js'
import type { Store } from '../../storage/store.js'
import type { ReadIndex } from './entries.js'
import type { Findings } from './findings.js'
import { checkDuplicates } from './listing.js'
import { listNames, MAX_LISTED } from './lost.js'

/** An index file that was read into columns. */
class IndexRow implements ReadIndex {
  readonly path: string
  readonly #columns: IndexColumns
  readonly #row: number

  constructor(path: string, columns: IndexColumns, row: number) {
    this.path = path
    this.#columns = columns
    this.#row = row
  }

  get step(): GlobalStep {
    return this.#columns.step(this.#row)
  }

  get worker(): Worker {
    return this.#columns.worker(this.#row)
  }

  get content(): IndexFile | null {
    const content = this.#columns.content(this.#row)
    return content instanceof Error ? null : content
  }

  get list(): number {
    return this.#columns.list(this.#row)
  }

  get tellsMode(): boolean {
    return this.path.endsWith('.json')
  }
}

type StepOfWorker = Pick<ReadIndex, 'step' | 'worker'>

function compareSteps(a: StepOfWorker, b: StepOfWorker): number {
  return a.step - b.step || (a.worker < b.worker ? -1 : a.worker > b.worker ? 1 : 0)
}

/** Sorts index files by step, then worker. Most are sorted already. */
function inOrderOfSteps(indexes: readonly ReadIndex[]): readonly ReadIndex[] {
  const isInOrder = indexes.every((index, i) => i === 0 || compareSteps(indexes[i - 1]!, index) <= 0)
  return isInOrder ? indexes : [...indexes].sort(compareSteps)
}

/** The steps that have an index file, for each worker. */
export class IndexState {
  readonly #ended: boolean
  readonly #inOrder: readonly ReadIndex[]
  readonly #last = new Map<Worker, number>()
  readonly #lastWritten = new Map<Worker, number>()

  /** @param events the event files, listed before the index files: a worker's last one may not have an index file yet */
  constructor(indexes: readonly ReadIndex[], events: readonly EventFileName[], ended: boolean) {
    this.#ended = ended
    this.#inOrder = inOrderOfSteps(indexes)
    for (const some of [indexes, events]) {
      for (const { step, worker } of some) this.#last.set(worker, Math.max(step, this.#last.get(worker) ?? 0))
    }
  }

  get isThere(): boolean {
    return this.#inOrder.length > 0
  }

  has(name: EventFileName): boolean {
    return this.#find(name) !== undefined
  }

  isReadable(name: EventFileName): boolean {
    return (this.#find(name)?.content ?? null) !== null
  }

  #find(name: EventFileName): ReadIndex | undefined {
    const indexes = this.#inOrder
    const index = indexes[countBelow(indexes.length, i => compareSteps(indexes[i]!, name) < 0)]
    return index !== undefined && compareSteps(index, name) === 0 ? index : undefined
  }

  /**
   * Finds the last step of each worker that wrote its steps out of order: the one whose event file is newest. Times are not exact, but
   * only one step of a worker can be unfinished. If all files have one time, as in a copy, they say nothing.
   */
  async findLastWritten(paths: readonly string[], store: Store): Promise<void> {
    if (this.#ended) return
    const all = paths.map(path => ({ path, ...parseEventFileName(path)! }))
    const workers = new Set(all.filter(file => !this.has(file) && this.isLate(file)).map(({ worker }) => worker))
    if (workers.size === 0) return
    const files = all.filter(({ worker }) => workers.has(worker))
    const stamps = await store.stamps(files.map(({ path }) => path))
    const times = files.map((_, i) => stamps[3 * i + 1]!)
    const spans = new Map<Worker, { first: number; last: number }>()
    for (const [i, { worker }] of files.entries()) {
      const time = times[i]!
      const span = spans.get(worker)
      // The time of a deleted file is NaN.
      if (Number.isNaN(time)) continue
      if (span === undefined) spans.set(worker, { first: time, last: time })
      else {
        span.first = Math.min(span.first, time)
        span.last = Math.max(span.last, time)
      }
    }
    const unfinished = new Map<Worker, number[]>()
    for (const [i, file] of files.entries()) {
      const span = spans.get(file.worker)
      if (span === undefined || span.first === span.last || times[i] !== span.last || this.has(file)) continue
      entryOf(unfinished, file.worker, () => []).push(file.step)
    }
    for (const [worker, steps] of unfinished) if (steps.length === 1) this.#lastWritten.set(worker, steps[0]!)
  }

  /** True if a missing index file will never come. In a running job, that of a worker's last step may. */
  isLate({ step, worker }: EventFileName): boolean {
    if (this.#ended) return true
    return step < (this.#last.get(worker) ?? -1) && this.#lastWritten.get(worker) !== step
  }

  /** Reports steps that some workers wrote and others did not. */
  checkWorkers(collections: Collections | null, findings: Findings): void {
    const indexes = this.#inOrder
    const known = [...new Set(indexes.map(({ worker }) => worker))].sort()
    const wanted = Math.max(known.length, collections?.numWorkers ?? 0)
    for (let i = 0, end = 0; i < indexes.length; i = end) {
      const { step } = indexes[i]!
      for (end = i; indexes[end]?.step === step; ) end++
      if (end - i >= wanted) continue
      const present = new Set(indexes.slice(i, end).map(({ worker }) => worker))
      // At most a few: with one step per worker, there are as many workers as steps.
      const missing: Worker[] = []
      for (const worker of known) {
        if (missing.length === MAX_LISTED) break
        if (!present.has(worker)) missing.push(worker)
      }
      const missingCount = known.length - present.size
      const strangers = wanted - (end - i) - missingCount
      const names = [...missing, ...(strangers > 0 ? [`${strangers} that wrote nothing`] : [])]
      const nameCount = missingCount + (strangers > 0 ? 1 : 0)
      findings.note({
        code: 'StepIncomplete',
        file: indexFilePath(step, missing[0] ?? indexes[i]!.worker).replace(/\/[^/]*$/, ''),
        step,
        expected: `step ${step} of ${wanted} workers`,
        found: `that of ${end - i}, without ${listNames(names, String, nameCount)}`,
      })
    }
  }
}

/** Reads the index files that count, and reports the problems of each. @returns an entry for each, in order, and all their lists */
export async function readIndexes(
  { index: paths, duplicates }: TrialFiles,
  findings: Findings,
  access: Access,
  reading: IndexReading,
): Promise<{ readonly indexes: readonly ReadIndex[]; readonly lists: TensorLists }> {
  checkDuplicates(duplicates, findings)
  const indexes: ReadIndex[] = []
  const columns = new IndexColumns()
  for await (const contents of readIndexFiles(paths, access, reading)) {
    for (const content of contents) {
      const path = paths[indexes.length]!
      const { step, worker } = parseIndexFileName(path)!
      // An unreadable index file has no entries, but its event file is still checked.
      indexes.push(new IndexRow(path, columns, columns.addRead(step, worker, content)))
      if (!(content instanceof Error)) continue
      const { code } = content
      const problemCode = code === 'UnsafePath' ? code : content instanceof StoreError ? 'Unreadable' : 'BadIndexFile'
      findings.problemOf(content.toJSON(), path, problemCode, `what ${worker} saved at step ${step} is not found`)
    }
  }
  return { indexes, lists: columns.lists }
}

/** Reports index files that name another worker's event file. @returns the index files; the wrong ones lose their entries */
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
    return { path: file, step, worker, content: null, list: NO_LIST, tellsMode: index.tellsMode }
  })
}
