/** Reads the values of many tensors in order, several at a time. */

import { TrialscanError } from '../base/errors.js'
import { checkOptions } from '../base/options.js'
import type { GlobalStep, Mode, ModeStep, Worker } from '../base/types.js'
import { UNFOLD_LIMIT } from '../core/values.js'
import { recordPlace } from '../scan/catalog/worker-steps.js'
import type { RecordPlace } from '../scan/job/plan/coalesce.js'
import type { TensorValue } from '../scan/job/tensor-value.js'
import { readRecordValues } from '../scan/rows/record-values.js'
import type { ScanItem } from '../scan/rows/row-groups.js'
import { SCAN_OPTIONS, type ScanOptions, selectItems } from './scan-selection.js'
import { expectTrial, stateOf, type Trial } from './trial.js'

export type ReadValuesOptions = Omit<ScanOptions, 'reductions' | 'timed' | 'onProgress'>

/** The value of a tensor of a worker at a step. */
export interface SavedValue {
  /** The name; null if the index file of the step can't be read. */
  readonly tensor: string | null
  readonly step: GlobalStep
  readonly mode: Mode
  readonly modeStep: ModeStep
  readonly worker: Worker
  /** The value; null if it can't be read, or if only reductions were saved. */
  readonly value: TensorValue | null
  /** The reason why it can't be read. */
  readonly error?: TrialscanError
}

/** The number of batches in progress: the next are read while one is used. */
const AT_ONCE = { remote: 8, local: 2 }
/** The limits of a batch: records, and their bytes unless one is larger. */
const BATCH_RECORDS = 512
const BATCH_BYTES = 8 << 20
/** The limit of bytes in a batch for values that their records store in short form. */
const BATCH_UNFOLDED = 32 << 20

/**
 * Yields the selected values in the order of a scan's rows. Holds a few batches of them, or a larger value.
 * @param options as for `trial.scan`
 * @throws what `trial.scan` throws; the signal's reason
 */
export async function* readValues(trial: Trial, options?: ReadValuesOptions): AsyncGenerator<SavedValue> {
  expectTrial('readValues', trial)
  const settings = checkOptions('readValues', SCAN_OPTIONS, options)
  const state = stateOf(trial)
  const batches = batchesOf(selectItems(state, trial.name, settings))
  const ahead: Promise<readonly SavedValue[]>[] = []
  const most = state.access.isRemote ? AT_ONCE.remote : AT_ONCE.local
  for (let next = batches.next(); ahead.length > 0 || !next.done; ) {
    settings.signal?.throwIfAborted()
    while (!next.done && ahead.length < most) {
      const values = readBatch(trial, next.value, settings)
      // A caller who leaves the loop does not wait for them.
      values.catch(() => {})
      ahead.push(values)
      next = batches.next()
    }
    yield* await ahead.shift()!
  }
}

function* batchesOf(items: Iterable<ScanItem>): Generator<readonly ScanItem[]> {
  let open: ScanItem[] = []
  let bytes = 0
  for (const item of items) {
    const byteLength = item.saved?.value?.byteLength ?? 0
    if (open.length === BATCH_RECORDS || (open.length > 0 && bytes + byteLength > BATCH_BYTES)) {
      yield open
      open = []
      bytes = 0
    }
    open.push(item)
    bytes += byteLength
  }
  if (open.length > 0) yield open
}

async function readBatch(trial: Trial, items: readonly ScanItem[], options: ReadValuesOptions): Promise<SavedValue[]> {
  const places = items.flatMap(({ workerStep, saved }) => {
    return saved?.value == null ? [] : [recordPlace(workerStep, saved.value)]
  })
  const read = await readPlaces(trial, places, options)
  let at = 0
  return Promise.all(
    items.map(async ({ workerStep, saved }): Promise<SavedValue> => {
      const { step, mode, modeStep, worker } = workerStep
      const place = { step, mode, modeStep, worker }
      if (saved === null) return { tensor: null, ...place, value: null, error: workerStep.error! }
      const { tensor } = saved
      if (saved.value === null) return { tensor, ...place, value: null }
      const value = read[at++]!
      if (!(value instanceof TrialscanError)) return { tensor, ...place, value: value }
      // Together they exceed the limit for values; each alone may not.
      if (value.code !== 'ValueTooLarge' || items.length === 1) return { tensor, ...place, value: null, error: value }
      const [alone] = await readPlaces(trial, [recordPlace(workerStep, saved.value)], options)
      return alone instanceof TrialscanError
        ? { tensor, ...place, value: null, error: alone }
        : { tensor, ...place, value: alone! }
    }),
  )
}

/** The value of each record, or the reason why it is missing. */
async function readPlaces(
  trial: Trial,
  places: readonly RecordPlace[],
  options: ReadValuesOptions,
): Promise<(TensorValue | TrialscanError)[]> {
  const { threads = 0, memory, checkLevel } = options
  const unfoldLimit = places.length === 1 ? UNFOLD_LIMIT : BATCH_UNFOLDED
  const read = readRecordValues(stateOf(trial), places, {
    threads,
    unfoldLimit,
    memory,
    checkLevel,
  })
  const results: (TensorValue | TrialscanError)[] = []
  for await (const values of read) results.push(...values)
  return results
}
