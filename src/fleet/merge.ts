/** The tables of all shards as one. */

import { createHash } from 'node:crypto'
import { expectArgument } from '../base/arguments.js'
import { FormatError, QueryError } from '../base/errors.js'
import type { PlanPlace, ShardFailure, ShardReport } from './place.js'
import { type PlannedSize, total } from './plan.js'

/** The progress of a plan. */
export interface FleetStatus {
  readonly shards: readonly ShardStatus[]
  readonly done: number
  readonly rows: number
  readonly doneRows: number
  readonly bytes: number
  readonly doneBytes: number
}

export interface ShardStatus extends PlannedSize {
  readonly shard: number
  /** Paths of the trials it reads. */
  readonly trials: readonly string[]
  readonly report: ShardReport | null
  /** The last failure of a shard that is not done; null if there was none. */
  readonly failure: ShardFailure | null
}

/** The state of a plan's shards. @throws StoreError, FormatError (`BadPlan`) */
export async function fleetStatus(place: PlanPlace): Promise<FleetStatus> {
  expectArgument('fleetStatus', 'place', 'a PlanPlace', place, typeof place?.reports === 'function')
  const { plan } = place
  const reports = await place.reports()
  const failures = await place.failures(reports)
  const shards = plan.shards.map(({ pieces, ...size }, shard): ShardStatus => {
    const trials = pieces.map(({ trial }) => plan.trials[trial]!.path)
    return { shard, ...size, trials, report: reports.get(shard) ?? null, failure: failures.get(shard) ?? null }
  })
  const done = shards.filter(({ report }) => report !== null)
  const [all, ready] = [total(shards), total(done)]
  return {
    shards,
    done: done.length,
    rows: all.rows,
    doneRows: ready.rows,
    bytes: all.bytes,
    doneBytes: ready.bytes,
  }
}

/** The size of a copied piece, in bytes. */
const COPIED_BYTES = 8 << 20

/**
 * Yields the rows of all shards as the bytes of one table, in the order of the plan. CSV and JSON Lines equal the output of a single scan
 * of all trials; Parquet has the same rows in other row groups.
 * @throws QueryError (`ShardsMissing`), before the first byte, if a shard is not done; FormatError (`BadTable`) if a table differs from
 *   its report
 */
export async function* mergedTable(place: PlanPlace, status: FleetStatus): AsyncGenerator<Uint8Array> {
  expectArgument('mergedTable', 'place', 'a PlanPlace', place, typeof place?.reports === 'function')
  expectArgument('mergedTable', 'status', 'what fleetStatus returns', status, Array.isArray(status?.shards))
  const { plan } = place
  const missing = status.shards.filter(({ report }) => report === null)
  if (missing.length > 0 || status.shards.length === 0) throw missingShards(missing, status.shards.length)
  if (plan.format === 'parquet') {
    const { mergedFile } = await import('../table/parquet/parquet.js')
    const metadata = { 'trialscan.version': plan.version, 'trialscan.plan': plan.id }
    yield* mergedFile(tables(place, status), metadata)
    return
  }
  let isFirst = true
  for await (const { byteLength, read } of tables(place, status)) {
    // Only the first shard's header is kept.
    const begin = isFirst || plan.format !== 'csv' ? 0 : await headOf(byteLength, read)
    isFirst = false
    yield* pieces(begin, byteLength, read)
  }
}

type Read = (begin: number, end: number) => Promise<Uint8Array>

async function* tables(place: PlanPlace, { shards }: FleetStatus) {
  for (const { shard, report } of shards) {
    const { store } = place.destination
    const path = place.tablePath(shard)
    const url = store.url(path)
    const byteLength = report!.bytes
    const read: Read = async (begin, end) => {
      const bytes = new Uint8Array(end - begin)
      const length = await store.readInto(path, begin, bytes)
      if (length === bytes.length) return bytes
      throw badTable(url, `${byteLength} bytes`, String(begin + length))
    }
    // One byte more, to find out if the table is longer than its report says.
    const beyond = await store.readInto(path, byteLength, new Uint8Array(1))
    if (beyond > 0) throw badTable(url, `${byteLength} bytes`, 'more')
    // The digest is checked before any of the table is passed on.
    const hash = createHash('sha256')
    for await (const bytes of pieces(0, byteLength, read)) hash.update(bytes)
    const got = hash.digest('hex')
    if (got !== report!.sha256) throw badTable(url, `the bytes of SHA-256 ${report!.sha256}`, `those of ${got}`)
    yield { url, byteLength, read }
  }
}

/** The error for a table that differs from its report. */
function badTable(url: string, expected: string, got: string): FormatError {
  return new FormatError('BadTable', `${url}: expected ${expected}, got ${got}`, { url, expected, got })
}

/** Yields a table in pieces of `COPIED_BYTES`. */
async function* pieces(begin: number, end: number, read: Read): AsyncGenerator<Uint8Array> {
  for (let at = begin; at < end; at += COPIED_BYTES) yield await read(at, Math.min(end, at + COPIED_BYTES))
}

/** The length of a table's first line, in bytes. */
async function headOf(byteLength: number, read: Read): Promise<number> {
  for (let length = 1 << 16; ; length *= 2) {
    const start = await read(0, Math.min(length, byteLength))
    const end = start.indexOf(0x0a)
    if (end >= 0 || length >= byteLength) return end + 1
  }
}

const MAX_NAMED = 5

function missingShards(missing: readonly ShardStatus[], count: number): QueryError {
  const named = missing.slice(0, MAX_NAMED).map(({ shard, failure }) => {
    return failure === null ? String(shard) : `${shard} (failed ${failure.times} times: ${failure.message})`
  })
  const more = missing.length > MAX_NAMED ? ` and ${missing.length - MAX_NAMED} more` : ''
  const got =
    count === 0 ? 'a plan without any' : `${count - missing.length}; these are missing: ${named.join(', ')}${more}`
  return new QueryError('ShardsMissing', `expected all ${count} shards, got ${got}`, {
    missing: missing.map(({ shard }) => shard),
  })
}
