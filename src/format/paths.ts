/** The names of files in a trial: their meaning, and which of them can be trusted. */

import { createHash } from 'node:crypto'
import { FormatError, quote } from '../base/errors.js'
import type { GlobalStep, Worker } from '../base/types.js'

/** The limits of file systems: for a name, and for a path. */
const MAX_NAME_BYTES = 255
const MAX_PATH_BYTES = 4096

export const INDEX_DIRECTORY = 'index'
export const EVENTS_DIRECTORY = 'events'
export const COLLECTIONS_DIRECTORY = 'collections'

export const TORNASOLE_END_MARKER = 'END_OF_JOB.ts'

/** The end markers in the root: smdebug's, then Tornasole's. Either one means that the job has ended. */
export const END_MARKERS: readonly string[] = ['training_job_end.ts', TORNASOLE_END_MARKER]

/** The single collections file of a Tornasole trial, in the root. */
export const TORNASOLE_COLLECTIONS_FILE = 'collections.ts'

/** The facts in the name of an index file. */
export interface IndexFileName {
  readonly step: GlobalStep
  readonly worker: Worker
  /** `json` for smdebug's; `csv` for Tornasole's, with other content. */
  readonly kind: 'json' | 'csv'
}

/** The facts in the name of an event file. */
export interface EventFileName {
  readonly step: GlobalStep
  readonly worker: Worker
}

/** The path of the index file of a worker's step in an smdebug trial. */
export function indexFilePath(step: number, worker: Worker): string {
  const part = String(Math.floor(step / 1000)).padStart(9, '0')
  const name = `_${escapeWorker(worker)}.json`
  // The width is not fixed, so a name that would be too long has no padding.
  const padded = String(step).padStart(12, '0')
  const number = Buffer.byteLength(name) + padded.length <= MAX_NAME_BYTES ? padded : step
  return `${INDEX_DIRECTORY}/${part}/${number}${name}`
}

/** The path of the event file of a worker's step in an smdebug trial. */
export function eventFilePath(step: number, worker: Worker): string {
  const padded = String(step).padStart(12, '0')
  return `${EVENTS_DIRECTORY}/${padded}/${padded}_${escapeWorker(worker)}.tfevents`
}

/** The path of a worker's collections file in an smdebug trial. */
export function collectionsFilePath(worker: Worker): string {
  const name = `${escapeWorker(worker)}_collections.json`
  // Only the number of these files matters, not their names, so a digest replaces a long one.
  const digest = Buffer.byteLength(name) > MAX_NAME_BYTES && createHash('sha256').update(worker).digest('hex')
  return `${COLLECTIONS_DIRECTORY}/000000000/${digest ? `${digest}_collections.json` : name}`
}

/** Parses the name of an index file; null for other files (temporary ones, other extensions, no step). */
export function parseIndexFileName(path: string): IndexFileName | null {
  const usual = usualIndexFile(path)
  if (usual !== null) return { ...usual, kind: 'json' }
  const match = /^(\d+)_(.+)\.(json|csv)$/s.exec(baseName(path))
  const step = match && parseStep(match[1]!)
  return match && step !== null ? { step, worker: unescapeWorker(match[2]!), kind: match[3] as 'json' | 'csv' } : null
}

/** The position of step and worker in the usual path of an index file. */
const STEP_AT = `${INDEX_DIRECTORY}/000000000/`.length
const WORKER_AT = STEP_AT + '000000000000_'.length

/**
 * Parses the path of an index file if it has the hook's exact form, with a step below 10^12 and a worker whose name needs no escaping;
 * otherwise null. Since there may be a million, no pattern is matched and no path made for comparison.
 */
export function usualIndexFile(path: string): EventFileName | null {
  const end = path.length - '.json'.length
  const isUsual =
    end > WORKER_AT &&
    3 * (path.length - STEP_AT) <= MAX_NAME_BYTES &&
    path.startsWith(INDEX_DIRECTORY) &&
    path[INDEX_DIRECTORY.length] === '/' &&
    path[STEP_AT - 1] === '/' &&
    path[WORKER_AT - 1] === '_' &&
    // TensorFlow's devices are escaped.
    path[WORKER_AT] !== '_' &&
    path.indexOf('/', WORKER_AT) < 0 &&
    path.endsWith('.json')
  if (!isUsual) return null
  const part = digitsAt(path, INDEX_DIRECTORY.length + 1, STEP_AT - 1)
  const step = digitsAt(path, STEP_AT, WORKER_AT - 1)
  if (step < 0 || part !== Math.floor(step / 1000)) return null
  return { step: step as GlobalStep, worker: path.slice(WORKER_AT, end) }
}

/** The decimal number in a range of a text; -1 if there are other characters. */
function digitsAt(text: string, start: number, end: number): number {
  let number = 0
  for (let at = start; at < end; at++) {
    const digit = text.charCodeAt(at) - 0x30
    if (digit < 0 || digit > 9) return -1
    number = number * 10 + digit
  }
  return number
}

/** Parses the name of an event file; null for other files. */
export function parseEventFileName(path: string): EventFileName | null {
  const match = /^(\d+)_(.+)\.tfevents$/s.exec(baseName(path))
  const step = match && parseStep(match[1]!)
  return match && step !== null ? { step, worker: unescapeWorker(match[2]!) } : null
}

/**
 * True for the name of a TensorBoard event file: `events.out.tfevents.1700000000.host`. smdebug's event files never are, wherever they
 * lie: without an index, one would look like a run.
 */
export function isTensorBoardFile(path: string): boolean {
  return baseName(path).includes('tfevents') && parseEventFileName(path) === null && !isOfNoStep(path)
}

/** True if a file would be an index or event file but for its step: a hook that never gets a step saves scalars at step -1. */
export function isOfNoStep(path: string): boolean {
  const digits = /^(-?\d+)_.+\.(?:json|csv|tfevents)$/s.exec(baseName(path))?.[1]
  return digits !== undefined && (digits.startsWith('-') || parseStep(digits) === null)
}

/** True for the path of an index, event or collections file, or of an end marker. */
export function isPartOfTrial(path: string): boolean {
  switch (path.slice(0, Math.max(0, path.indexOf('/')))) {
    case '':
      return END_MARKERS.includes(path) || path === TORNASOLE_COLLECTIONS_FILE
    case INDEX_DIRECTORY:
      return parseIndexFileName(path) !== null
    case EVENTS_DIRECTORY:
      return parseEventFileName(path) !== null
    case COLLECTIONS_DIRECTORY:
      return parseCollectionsFileName(path) !== null
    default:
      return false
  }
}

/** The directories of smdebug trials, sorted, among the files below a directory that is not a trial itself. */
export function trialsAmong(paths: readonly string[]): string[] {
  const trials = new Set<string>()
  for (const path of paths) {
    const trial = /^(.+)\/(?:events|index)\/\d+\/\d+_[^/]+\.(?:tfevents|json|csv)$/s.exec(path)?.[1]
    if (trial !== undefined) trials.add(trial)
  }
  return [...trials].sort()
}

/** The run of a TensorBoard event file: its directory, `.` for the root. */
export function runOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/'))) || '.'
}

/** The worker of a collections file, '' if the name has none; null for other files. */
export function parseCollectionsFileName(path: string): Worker | null {
  const match = /^(.*?)_?collections\.json$/s.exec(baseName(path))
  return match && unescapeWorker(match[1]!)
}

/** True for a file that is still being written: it is renamed when it is closed. */
export function isTemporary(path: string): boolean {
  return path.endsWith('.tmp')
}

/** A worker's name in the form of file names: `/replica:0/task:0` → `_replica-0_task-0`; others are unchanged. */
export function escapeWorker(worker: Worker): string {
  return worker.startsWith('/') ? worker.replaceAll('/', '_').replaceAll(':', '-') : worker
}

/** The worker's name as it is read back from a file name: it differs if the name looks like a device and contains a `-`. */
export function workerReadBack(worker: Worker): Worker {
  return unescapeWorker(escapeWorker(worker))
}

/** True if a worker's name can be part of file names: it is no path, and short enough for an event file's name. */
export function fitsFileName(worker: Worker): boolean {
  const isPath = /[/\\\0]/.test(escapeWorker(worker))
  return !isPath && Buffer.byteLength(baseName(eventFilePath(0, worker))) <= MAX_NAME_BYTES
}

/**
 * The worker's name in a file name. Only names that begin like a TensorFlow device (`_replica-`) were escaped. A `_` stands for a `/`
 * only before a lower-case key and `-`, so that `_device-XLA_GPU-0` is `/device:XLA_GPU:0`.
 */
export function unescapeWorker(name: string): Worker {
  return /^_[a-z]+-/.test(name) ? name.replace(/_(?=[a-z]+-)/g, '/').replaceAll('-', ':') : name
}

/**
 * The event file that an index file names, if it lies in the trial.
 * @param name a path relative to the trial, as written in the index file
 * @param url the index file, for the error
 * @throws FormatError `UnsafePath`: the path is absolute or a URL, leads out (`..`), or has a NUL or a backslash; `BadIndexFile`: it is
 *   longer than a path can be
 */
export function checkEventFileName(name: string, url: string): string {
  if (!isOfPossibleLength(name)) {
    const expected = `a path of at most ${MAX_PATH_BYTES} bytes, ${MAX_NAME_BYTES} a part`
    throw badEventFileName('BadIndexFile', url, expected, `${quote(name)}, of ${Buffer.byteLength(name)} bytes`)
  }
  // Backslashes separate on Windows only, but the hook never writes one, so all are refused.
  const isSafe =
    name !== '' &&
    !name.includes('\0') &&
    !name.includes('\\') &&
    !name.startsWith('/') &&
    !/^[a-z][a-z0-9+.-]*:/i.test(name) &&
    !name.split('/').includes('..')
  if (isSafe) return name
  throw badEventFileName('UnsafePath', url, 'a path inside the trial', quote(name))
}

function badEventFileName(code: string, url: string, expected: string, got: string): FormatError {
  return new FormatError(code, `${url}: event_file_name: expected ${expected}, got ${got}`, { url, expected, got })
}

function isOfPossibleLength(path: string): boolean {
  // A character takes at most three bytes.
  if (3 * path.length <= MAX_NAME_BYTES) return true
  if (path.length > MAX_PATH_BYTES || Buffer.byteLength(path) > MAX_PATH_BYTES) return false
  return path.split('/').every(part => Buffer.byteLength(part) <= MAX_NAME_BYTES)
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

/** Parses a step. The padding may have any width. A number that a double can't represent is not a step. */
function parseStep(digits: string): GlobalStep | null {
  const step = Number(digits)
  return Number.isSafeInteger(step) ? (step as GlobalStep) : null
}
