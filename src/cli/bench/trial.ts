/** The time of a scan by activity. */

import type { ScanStats } from '../../scan/rows/costs.js'
import { createTrial } from '../../trial/open.js'
import type { Trial } from '../../trial/trial.js'
import { defined } from '../options/given.js'
import { readRates } from './read-rates.js'

/** The activities of a thread. */
export const PARTS = ['read', 'decode', 'reduce', 'text'] as const
export type Part = (typeof PARTS)[number]

export interface TrialResult {
  readonly trial: string
  readonly tensors: number
  readonly records: number
  /** Bytes read of the event files. */
  readonly bytes: number
  /** The number of threads; 0: the calling thread. */
  readonly threads: number
  readonly failedRows: number
  readonly openSeconds: number
  /** The time of a whole scan with all reductions, as text, in seconds. The faster of two. */
  readonly scanSeconds: number
  /** The time of all threads together, in seconds. */
  readonly spentSeconds: Readonly<Record<Part, number>>
  /** The time that the main thread waited for the others. */
  readonly waitSeconds: number
  /** Bytes a second, on one thread; null: not measured. */
  readonly pageCacheRate: number | null
  readonly diskRate: number | null
  /** Why a rate was not measured; null: both were. */
  readonly notMeasured: string | null
  /** The activity that bounds the scan: with the files in the page cache, and without. */
  readonly boundBy: Part
  readonly uncachedBoundBy: Part | 'disk' | null
}

export interface TrialBenchOptions {
  readonly threads?: number | undefined
  readonly signal: AbortSignal
  /** Called with the number of finished scans, of three. */
  readonly onProgress: (doneRows: number, totalRows: number) => void
}

/** Measures a trial's scan. Rates of reading are measured only on the local disk. @param open the options of `createTrial` */
export async function measureTrial(
  path: string,
  open: NonNullable<Parameters<typeof createTrial>[1]>,
  { threads, signal, onProgress }: TrialBenchOptions,
): Promise<TrialResult> {
  const openedAt = performance.now()
  const trial = await createTrial(path, { requireCollections: false, refresh: 'manual', ...open })
  const openSeconds = (performance.now() - openedAt) / 1000
  try {
    const rates = readRates(/^[a-z]\w+:\/\//i.test(path) ? null : path)
    const scan = (number: number, timed: boolean): Promise<ScanStats> =>
      scanOf(trial, threads, timed, signal, (done, total) => onProgress(number * total + done, 3 * total))
    // The first scan brings the files into the page cache and starts the threads.
    const first = await scan(0, false)
    const second = await scan(1, false)
    const timed = await scan(2, true)
    const { spent, records, readBytes, failedRows } = timed
    const spentSeconds = {
      read: (spent?.readMs ?? 0) / 1000,
      decode: (spent?.decodeMs ?? 0) / 1000,
      reduce: (spent?.reduceMs ?? 0) / 1000,
      text: (spent?.writeMs ?? 0) / 1000,
    }
    const scanSeconds = Math.min(first.elapsedMs, second.elapsedMs) / 1000
    return {
      trial: path,
      tensors: trial.tensorNames().length,
      records,
      bytes: readBytes,
      threads: timed.threads,
      failedRows,
      openSeconds,
      scanSeconds,
      spentSeconds,
      waitSeconds: (spent?.waitMs ?? 0) / 1000,
      pageCacheRate: numberOf(rates.pageCache),
      diskRate: numberOf(rates.disk),
      notMeasured: [rates.pageCache, rates.disk].find(rate => typeof rate === 'string') ?? null,
      ...boundsOf(spentSeconds, scanSeconds, readBytes, numberOf(rates.disk)),
    }
  } finally {
    await trial.close()
  }
}

async function scanOf(
  trial: Trial,
  threads: number | undefined,
  timed: boolean,
  signal: AbortSignal,
  onProgress: (done: number, total: number) => void,
): Promise<ScanStats> {
  const rows = trial.scan({
    ...defined({ threads }),
    reductions: 'all',
    timed,
    signal,
    onProgress: ({ doneRows, totalRows }) => onProgress(doneRows, totalRows),
  })
  // The text is dropped.
  for await (const _ of rows.lines('jsonl'));
  return rows.stats
}

function boundsOf(
  spent: Readonly<Record<Part, number>>,
  scanSeconds: number,
  bytes: number,
  disk: number | null,
): Pick<TrialResult, 'boundBy' | 'uncachedBoundBy'> {
  const boundBy = PARTS.reduce((most, part) => (spent[part] > spent[most] ? part : most))
  if (disk === null) return { boundBy, uncachedBoundBy: null }
  return { boundBy, uncachedBoundBy: bytes / disk > scanSeconds ? 'disk' : boundBy }
}

function numberOf(rate: number | string): number | null {
  return typeof rate === 'number' ? rate : null
}
