/**
 * The tables that a query can name. Those of trials are made as the query needs them, and written to files for DuckDB
 * to read.
 */

import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { TrialscanError, UsageError } from '../../base/errors.js'
import { entryOf } from '../../base/maps.js'
import { problemLines } from '../../base/problem-lines.js'
import { type CheckLevel, REDUCTIONS, type StatisticName } from '../../base/types.js'
import { Diagnosis } from '../../rules/diagnosis.js'
import { evaluate } from '../../rules/evaluate.js'
import type { Finding } from '../../rules/finding.js'
import { RuleRegistry } from '../../rules/registry.js'
import type { ScanProgress } from '../../scan/rows/scan.js'
import { tableBytes } from '../../table/table.js'
import { parseReductions } from '../../trial/reduction.js'
import type { Trial } from '../../trial/trial.js'
import { jsonOf } from '../format/lines.js'
import { plainNumber, shortNumber } from '../format/number.js'
import { defined, readingOptions } from '../options/given.js'
import type { S3Flags } from '../options/s3.js'
import { writeFile } from '../output.js'
import { WHOLE } from '../scan/partitions.js'
import { Losses, opened } from '../scan/trials.js'
import { type Database, literal, type Named, TABLES } from './database.js'

/** The columns of the tables besides `scan`, with DuckDB's types. */
const COLUMNS: Readonly<Record<TableName, string>> = {
  tensors: `trial varchar, tensor varchar, dtype varchar, shape bigint[], last_shape bigint[], steps bigint,
    first_step bigint, last_step bigint, bytes bigint, saved_reductions varchar[]`,
  steps: 'trial varchar, step bigint, worker varchar, mode varchar, mode_step bigint, complete boolean',
  workers: 'trial varchar, worker varchar, has_data boolean',
  collections: 'trial varchar, collection varchar, tensor varchar',
  findings: `trial varchar, finding bigint, rule varchar, name varchar, step bigint, mode varchar, mode_step bigint,
    tensor varchar, worker varchar, value double, threshold double, message varchar, cause bigint`,
}

type TableName = Exclude<(typeof TABLES)[number], 'scan'>

type Row = Readonly<Record<string, unknown>>

/** The statistics in the columns that are structs. */
const OF_STRUCTS: Readonly<Record<string, readonly StatisticName[]>> = {
  exact: ['min', 'max', 'sum', 'prod', 'abs_min', 'abs_max'],
  complex: ['mean', 'sum'],
}

/** The number of rows of JSON in one write. */
const ROWS_AT_ONCE = 1000

export interface TableRequest {
  readonly database: Database
  readonly named: Named
  /** The paths of the trials. */
  readonly paths: readonly string[]
  readonly flags: S3Flags & { readonly threads?: number; readonly checkLevel?: CheckLevel }
  /** The errors of trials. */
  readonly losses: Losses
  readonly signal: AbortSignal
  readonly onProgress: (progress: ScanProgress) => void
}

/** Makes the tables that a query names. */
export async function makeTables(request: TableRequest): Promise<void> {
  const { database, named, paths, losses } = request
  let isFirst = true
  for (const name of TABLES) {
    if (!named.tables.has(name)) continue
    // What can't be opened is told once.
    const tableLosses = isFirst ? losses : new Losses(paths)
    isFirst = false
    if (name === 'scan') await makeScan(request, tableLosses)
    else await makeTable(database, name, rowsOf(ROWS[name], request, tableLosses))
  }
  // A query without tables still needs its trials to be there.
  if (isFirst) for await (const _ of opened(paths, request.flags, losses));
}

async function* rowsOf(rows: RowsOf, { paths, flags, signal }: TableRequest, losses: Losses): AsyncGenerator<Row> {
  for await (const { path, trial } of opened(paths, flags, losses)) {
    const problems: Error[] = []
    yield* rows({ path, trial }, { threads: flags.threads, signal, problems })
    losses.add(path, { problems: [...trial.problems, ...problemLines(problems)] })
  }
}

/** Makes the table `scan` of all trials, in one file. */
async function makeScan(request: TableRequest, losses: Losses): Promise<void> {
  const { database, named, paths, flags, signal, onProgress } = request
  const { threads, checkLevel } = flags
  const reductions = statisticsOf(named)
  const path = join(database.directory, 'scan.parquet')
  const scans = async function* () {
    for await (const { path, trial } of opened(paths, flags, losses)) {
      const scan = trial.scan({ reductions, ...readingOptions({ checkLevel, threads }), signal, onProgress })
      yield { trial: path, scan }
      losses.addScan(path, scan)
    }
  }
  await writeFile(path, tableBytes(scans(), 'parquet'))
  await viewOfFiles(database, [path])
}

/**
 * Makes the view `scan` of files.
 * @param paths files of Parquet, CSV or JSON Lines, all of one kind
 */
export async function viewOfFiles(database: Database, paths: readonly string[]): Promise<void> {
  const list = `[${paths.map(literal).join(', ')}]`
  const read = { parquet: 'read_parquet', csv: 'read_csv', jsonl: 'read_json' }[kindOf(paths[0]!) ?? 'parquet']
  // A partition's name repeats the column that is in the file.
  const hive = read === 'read_parquet' ? ', hive_partitioning = false' : ''
  await database.run(`create view scan as select * from ${read}(${list}, union_by_name = true${hive})`)
}

type TableKind = 'parquet' | 'csv' | 'jsonl'

function kindOf(path: string): TableKind | null {
  const [, ending] = /\.(parquet|csv|jsonl|ndjson)$/i.exec(path) ?? []
  return ending === undefined ? null : ending.toLowerCase() === 'ndjson' ? 'jsonl' : (ending.toLowerCase() as TableKind)
}

/**
 * The files of a table that a scan has written: a single file, or those of a directory; null for something else, such
 * as a trial.
 */
export async function filesOfTable(place: string): Promise<readonly string[] | null> {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(place)) return null
  const stats = await stat(place).catch(() => null)
  if (stats === null || !stats.isDirectory()) return kindOf(place) === null ? null : [place]
  const entries = await readdir(place, { withFileTypes: true })
  const parts: string[] = []
  for (const entry of entries) {
    if (entry.isFile() && entry.name.endsWith('.parquet')) parts.push(join(place, entry.name))
    if (!entry.isDirectory() || !entry.name.startsWith('trial=')) continue
    const names = (await readdir(join(place, entry.name))).filter(name => name.endsWith('.parquet'))
    parts.push(...names.map(name => join(place, entry.name, name)))
  }
  if (parts.length === 0) return null
  if (entries.some(({ name }) => name.startsWith('trial=')) && !entries.some(({ name }) => name === WHOLE)) {
    throw new UsageError(`${place}: the table is not whole: go on with trialscan scan … --out ${place} --resume`)
  }
  return parts.sort()
}

/** @throws UsageError for tables of several kinds */
export function expectOneKind(paths: readonly string[]): void {
  const kinds = new Set(paths.map(kindOf))
  if (kinds.size > 1) {
    throw new UsageError(`expected tables of one kind, got ${[...kinds].join(' and ')}`)
  }
}

/** The statistics that a query needs. */
function statisticsOf({ columns, hasStar }: Named): readonly StatisticName[] {
  const names = [...columns].flatMap(column => OF_STRUCTS[column] ?? [column as StatisticName])
  const known = names.filter(isStatistic)
  const all = new Set([...(hasStar ? REDUCTIONS : []), ...known])
  return all.size > 0 ? [...all] : ['count']
}

function isStatistic(name: string): boolean {
  try {
    return name !== 'all' && parseReductions([name as StatisticName]).length === 1
  } catch (error) {
    if (error instanceof TrialscanError) return false
    throw error
  }
}

/** Makes a table other than `scan`, through a file of JSON Lines. */
async function makeTable(database: Database, name: TableName, rows: AsyncIterable<Row>): Promise<void> {
  const path = join(database.directory, `${name}.jsonl`)
  await writeFile(path, lines())
  const columns = COLUMNS[name].replace(/(\w+) ([\w[\]]+)/g, (_, column, type) => `${column}: ${literal(type)}`)
  const read = `read_json(${literal(path)}, format = 'newline_delimited', columns = {${columns}})`
  await database.run(`create view ${name} as select * from ${read}`)

  async function* lines(): AsyncGenerator<string> {
    let open: string[] = []
    for await (const row of rows) {
      open.push(`${jsonOf(row)}\n`)
      if (open.length < ROWS_AT_ONCE) continue
      yield open.join('')
      open = []
    }
    yield open.join('')
  }
}

type RowsOf = (
  place: { readonly path: string; readonly trial: Trial },
  options: {
    readonly threads: number | undefined
    readonly signal: AbortSignal
    /** Gets what could not be read. */
    readonly problems: Error[]
  },
) => AsyncIterable<Row> | Iterable<Row>

const ROWS: Readonly<Record<TableName, RowsOf>> = {
  async *tensors({ path, trial }, { problems }) {
    const { tensors } = await trial.summary()
    for (const { name, dtype, shape, lastShape, byteLength, savedReductions, error, ...span } of tensors) {
      if (error) problems.push(error)
      yield {
        trial: path,
        tensor: name,
        dtype,
        shape,
        last_shape: lastShape,
        steps: span.stepCount,
        first_step: span.firstStep,
        last_step: span.lastStep,
        bytes: byteLength,
        saved_reductions: savedReductions,
      }
    }
  },
  *steps({ path, trial }) {
    const complete = new Set(trial.steps())
    for (const step of trial.steps({ showIncompleteSteps: true })) {
      for (const worker of trial.workersWithData()) {
        const place = placeOf(trial, step, worker)
        if (place !== null) yield { trial: path, step, worker, ...place, complete: complete.has(step) }
      }
    }
  },
  *workers({ path, trial }) {
    const withData = new Set<string>(trial.workersWithData())
    for (const worker of trial.workers()) yield { trial: path, worker, has_data: withData.has(worker) }
  },
  *collections({ path, trial }) {
    for (const { name, members } of trial.collections().values()) {
      for (const tensor of members) yield { trial: path, collection: name, tensor }
    }
  },
  async *findings({ path, trial }, { threads, signal, problems }) {
    const diagnosis = new Diagnosis(trial)
    const byStep = new Map<number, Finding[]>()
    const { rules } = new RuleRegistry().all(trial)
    const judged = await evaluate(rules, {
      ...defined({ threads }),
      signal,
      keepFindings: false,
      onFinding: finding => {
        entryOf(byStep, finding.step, () => []).push(finding)
      },
    })
    for (const { error } of judged.problems) problems.push(error)
    let number = 0
    for (const [, findings] of [...byStep].sort(([a], [b]) => a - b)) {
      for (const { modeStep, ...finding } of diagnosis.add(findings)) {
        yield { ...finding, trial: path, finding: number++, mode_step: modeStep }
      }
    }
  },
}

/** The mode and mode step of a worker at a step; null if it saved nothing there. */
function placeOf(trial: Trial, step: number, worker: string): Row | null {
  try {
    return { mode: trial.mode(step, { worker }), mode_step: trial.modeStep(step, { worker }) }
  } catch (error) {
    if (error instanceof TrialscanError) return null
    throw error
  }
}

/** A value as a cell of a CSV file: empty for null. */
export function textOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'number' || typeof value === 'bigint') return plainNumber(value)
  return typeof value === 'object' ? jsonOf(value) : String(value)
}

/** A value for people: numbers are short. */
export function shortText(value: unknown): string {
  return typeof value === 'number' ? shortNumber(value) : textOf(value)
}
