/** Verifies checkpoints: the headers, that index and shards agree, and that all bytes can be read. */

import { type FormatError, pathOfUrl, quote, type TrialscanError } from '../../../base/errors.js'
import { turnsWhenDue } from '../../../base/turns.js'
import { checkpointFilesAmong, formatOf } from '../../../format/checkpoint/formats.js'
import { LENGTH_BYTES, MAX_HEADER_BYTES } from '../../../format/checkpoint/safetensors/dtypes.js'
import { jsonKeys } from '../../../format/checkpoint/safetensors/json-keys.js'
import { HEAD_BYTES, type RangedFile } from '../../../format/checkpoint/stored-tensor.js'
import { rangedFile } from '../../../scan/catalog/checkpoint/ranged-file.js'
import { type TrialContents, TrialLoader } from '../../../scan/catalog/load/load.js'
import { listPlain } from '../../../scan/catalog/load/no-trial.js'
import { TrialState } from '../../../scan/catalog/state.js'
import { faultOf } from '../../../scan/job/row.js'
import type { Access, WorkOptions } from '../../../scan/runner/access.js'
import { type Store, storeName } from '../../../storage/store.js'
import { Trial } from '../../../trial/trial.js'
import type { Findings } from '../findings.js'
import { VERIFY_CODES, type VerifyCode } from '../problem.js'
import { type DigestCounts, RowChecks, type RowOptions } from '../row-checks.js'
import type { ValueCounts } from '../tensor-values.js'
import { checkArchives } from './archives.js'
import { StatisticsCheck } from './statistics.js'
import { checkTotalSize } from './total-size.js'

/** The length up to which headers are searched for duplicate keys. */
const MAX_SEARCHED_BYTES = 16 << 20

/** The counts of a verification that apply to checkpoints. */
export interface CheckpointStats {
  readonly records: number
  readonly recordsWithoutChecksum: number
  readonly tensors: number
  readonly readBytes: number
  readonly values: ValueCounts | null
  readonly digests: DigestCounts | null
}

export interface CheckpointOptions extends WorkOptions, RowOptions {
  readonly signal?: AbortSignal
}

/**
 * Verifies the checkpoints at a place.
 * @param file the file that was named; undefined for the whole directory
 * @throws what `createTrial` throws
 */
export async function verifyCheckpoints(
  access: Access,
  file: string | undefined,
  findings: Findings,
  options: CheckpointOptions,
): Promise<CheckpointStats> {
  const { signal } = options
  const loader = loaderOf(access, file, options)
  let contents: TrialContents
  try {
    contents = await loader.load()
  } catch (error) {
    // If nothing can be read, the problem is reported like one of a part.
    if (!isOfCheckpoint(error)) throw error
    tell(access.store, error, findings)
    const paths = file === undefined ? checkpointFilesAmong(await listPlain(access.store)) : [file]
    for (const path of paths) await checkFile(access.store, path, findings, new Map(), signal)
    const values = options.values ? { read: 0, of: 0 } : null
    return { records: 0, recordsWithoutChecksum: 0, tensors: 0, readBytes: 0, values, digests: null }
  }
  const { store } = access
  for (const problem of contents.problems) tell(store, problem, findings)
  for (const note of contents.notes) {
    findings.note({ code: 'NotRead', file: '', expected: 'a checkpoint to read', found: note })
  }
  // True for files in which all that was looked at has checksums.
  const archives = new Map<string, boolean>()
  for (const path of contents.checkpointFiles) {
    signal?.throwIfAborted()
    await checkFile(store, path, findings, archives, signal)
  }
  const trial = new Trial('', storeName(access.spec), new TrialState(access, null, loader, contents))
  const saved = new StatisticsCheck(contents.savedStatistics, findings)
  const checks = await RowChecks.open(trial, findings, options, [saved])
  const { reductions } = checks
  const scan = trial.scan({ reductions: reductions.length > 0 ? reductions : ['count'], ...workOf(options) })
  const names = new Set<string>()
  let records = 0
  for await (const row of scan) {
    const { tensor, step } = row
    const error = reductions.length > 0 ? faultOf(row) : row.error
    records++
    if (tensor !== null) names.add(tensor)
    checks.check(row)
    if (error) tell(store, error, findings, { tensor, step })
  }
  checks.finish()
  const { readBytes } = scan.stats
  const recordsWithoutChecksum = records - loader.recordsIn(path => archives.get(path) === true)
  return { records, recordsWithoutChecksum, tensors: names.size, readBytes, ...checks.counts }
}

/** Reads the tensors of a verified trial. Unreadable ones have been reported. */
export async function verifyRows(
  access: Access,
  findings: Findings,
  options: CheckpointOptions,
): Promise<RowChecks['counts']> {
  const loader = loaderOf(access, undefined, options)
  let contents: TrialContents
  try {
    contents = await loader.load()
  } catch (error) {
    if (!(error instanceof Error) || (error.name !== 'StoreError' && error.name !== 'FormatError')) throw error
    findings.note({ code: 'NotRead', file: '', expected: 'values to read', found: error.message })
    return { values: options.values ? { read: 0, of: 0 } : null, digests: null }
  }
  const trial = new Trial('', storeName(access.spec), new TrialState(access, null, loader, contents))
  const checks = await RowChecks.open(trial, findings, options)
  for await (const row of trial.scan({ reductions: checks.reductions, ...workOf(options) })) checks.check(row)
  checks.finish()
  return checks.counts
}

function loaderOf(access: Access, file: string | undefined, { threads }: WorkOptions): TrialLoader {
  return new TrialLoader(access, {
    rangeSteps: null,
    threads,
    incompleteStepWindow: 1000,
    requireCollections: false,
    abandonedSteps: false,
    indexCache: null,
    file,
    // What is missing is told, whoever may still bring it.
    readsAll: true,
  })
}

function workOf({ threads, memory, signal }: CheckpointOptions) {
  return {
    threads,
    memory,
    signal,
  }
}

function isOfCheckpoint(error: unknown): error is FormatError {
  return error instanceof Error && error.name === 'FormatError' && (error as FormatError).code !== 'AmbiguousSteps'
}

function tell(
  store: Store,
  error: TrialscanError,
  findings: Findings,
  { tensor = null, step = null }: { readonly tensor?: string | null; readonly step?: number | null } = {},
): void {
  const { url, offset, expected, got, lost, tensor: tensorOfError, count } = error.fields
  const file = typeof url === 'string' ? relativeTo(store, url) : ''
  const code = (VERIFY_CODES as readonly string[]).includes(error.code)
    ? (error.code as VerifyCode)
    : error.name === 'StoreError'
      ? 'Unreadable'
      : 'BadCheckpointFile'
  // An error of several tensors counts as often.
  if (typeof count === 'number') findings.count('problem', code, count - 1)
  const name = tensor ?? (typeof tensorOfError === 'string' ? tensorOfError : null)
  findings.problem({
    code,
    file,
    offset: typeof offset === 'number' ? offset : null,
    tensor: name,
    step,
    expected: typeof expected === 'string' ? expected : 'a file that can be read',
    found: typeof got === 'string' ? got : error.message.replace(`${pathOfUrl(String(url))}: `, ''),
    lost: typeof lost === 'string' ? lost : name === null ? '' : `tensor ${JSON.stringify(name.slice(0, 200))}`,
  })
}

/** Checks of a file what its format has: archives, JSON, a pickle. What keeps it from being read was reported when it was opened. */
async function checkFile(
  store: Store,
  path: string,
  findings: Findings,
  archives: Map<string, boolean>,
  signal: AbortSignal | undefined,
): Promise<void> {
  try {
    const file = await rangedFile(store, path)
    const format = formatOf(path, await file.read(0, Math.min(HEAD_BYTES, file.byteLength)))
    if (format?.header === 'json') await findDuplicates(file, findings)
    await checkArchives(
      store,
      (await format?.archives?.(file, directory => store.list(directory))) ?? [],
      archives,
      findings,
      signal,
    )
    if (format?.header === 'pickle') await findCode(file, findings)
    await checkTotalSize(store, path, findings)
  } catch (error) {
    const isTold = error instanceof Error && ['StoreError', 'FormatError', 'SyntaxError'].includes(error.name)
    if (!isTold) throw error
  } finally {
    store.release?.()
  }
}

/** Finds names in a pickle that run code when torch loads it. */
async function findCode(file: RangedFile, findings: Findings): Promise<void> {
  const { dangerousIn } = await import('../../../format/checkpoint/torch/read-structure.js')
  const dangerous = await dangerousIn(file)
  if (dangerous.length === 0) return
  const found = dangerous.slice(0, 5).join(', ').slice(0, 200)
  findings.note({ code: 'RunsCode', file: file.path, expected: 'names of what a checkpoint needs', found })
}

function relativeTo(store: Store, url: string): string {
  const root = store.url('')
  return url.startsWith(root) ? url.slice(root.length).replace(/^\//, '') : url
}

/** Finds tensor names that a header has twice, and keys that an entry has twice. A JSON parser keeps only the last. */
async function findDuplicates(file: RangedFile, findings: Findings): Promise<void> {
  const prefix = await file.read(0, LENGTH_BYTES)
  if (prefix.length < LENGTH_BYTES) return
  const length = Number(new DataView(prefix.buffer, prefix.byteOffset).getBigUint64(0, true))
  if (length > Math.min(MAX_HEADER_BYTES, MAX_SEARCHED_BYTES)) return
  const json = await file.read(LENGTH_BYTES, length)
  if (json.length < length) return
  const text = new TextDecoder().decode(json)
  JSON.parse(text)
  const turnWhenDue = turnsWhenDue()
  for (const { key, at, within, isAgain } of jsonKeys(text)) {
    await turnWhenDue()
    if (!isAgain) continue
    const found = `${JSON.stringify(key.slice(0, 200))} again`
    const expected = within === null ? 'each name once in the header' : `each key of ${quote(within)} once`
    const [offset, tensor] = [LENGTH_BYTES + at, within ?? key]
    findings.problem({ code: 'DuplicateTensor', file: file.path, offset, tensor, expected, found })
  }
}
