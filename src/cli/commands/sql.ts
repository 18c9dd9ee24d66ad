/** `trialscan sql`: a query over what trials hold, or over tables that scans have written. */

import { type CheckLevel, createTrial, type Scan, UsageError } from '../../index.js'
import { EXIT } from '../exit.js'
import type { FormatOf } from '../format/formats.js'
import { csvLine } from '../format/lines.js'
import { counted, countText } from '../format/number.js'
import { settle } from '../options/given.js'
import { type S3Flags, s3OptionsFor } from '../options/s3.js'
import { type Output, writeTo } from '../output.js'
import { Progress } from '../progress.js'
import { expectReplaceable } from '../real-path.js'
import { type Answer, Database } from '../sql/database.js'
import { expectOneKind, filesOfTable, makeTables, type NamedTrial, viewOfFiles } from '../sql/tables.js'
import { jsonOf, plainValue, shortText, textOf } from '../sql/values.js'
import { colorsFor, columnLines, note, safe, safeJson, safeName } from '../terminal.js'

export interface SqlFlags extends S3Flags {
  readonly checkLevel?: CheckLevel
  readonly threads?: number
  readonly format?: FormatOf<'sql'>
  readonly out?: string
}

/** Rows of a table for people; of more, the widths of the columns could not be known before the first is shown. */
const MAX_TABLE_ROWS = 10_000

/** @param given trials or tables, then the query @returns the exit code */
export async function sql(given: readonly string[], givenFlags: SqlFlags, signal: AbortSignal): Promise<number> {
  const places = given.slice(0, -1)
  const query = given.at(-1)!.trim()
  const [first] = places
  if (first === undefined) {
    throw new UsageError('expected a trial or a table before the query: trialscan sql ./my-training "select …"')
  }
  const flags = settle('sql', first, givenFlags)
  const { out, threads } = flags
  if (out !== undefined) for (const place of places) await expectReplaceable(place, out)
  const tables = (await Promise.all(places.map(filesOfTable))).flatMap((files, i) => ({ files, place: places[i]! }))
  const files = tables.flatMap(({ files }) => files ?? [])
  const trials = tables.filter(({ files }) => files === null).map(({ place }) => place)
  if (files.length > 0 && trials.length > 0) {
    throw new UsageError(`expected either trials or tables, got the table ${files[0]} and the trial ${trials[0]}`)
  }
  expectOneKind(files)
  const database = await Database.open(threads, signal)
  const opened: NamedTrial[] = []
  const progress = new Progress(false)
  try {
    const named = await database.named(query)
    for (const path of trials) opened.push({ path, trial: await openTrial(path, flags) })
    if (files.length > 0) await viewOfFiles(database, files)
    const { checkLevel } = flags
    const request = { database, trials: opened, named, checkLevel, threads, signal, onProgress: progress.update }
    const scans = files.length > 0 ? [] : await makeTables(request)
    progress.stop()
    const answer = await database.ask(query)
    await writeTo(out, output => writeAnswer(answer, flags, output))
    return reportErrors(scans, opened)
  } finally {
    progress.stop()
    for (const { trial } of opened) await trial.close()
    await database.close()
  }
}

async function openTrial(path: string, flags: SqlFlags) {
  const { threads } = flags
  return createTrial(path, {
    requireCollections: false,
    refresh: 'manual',
    ...s3OptionsFor(path, flags),
    ...(threads !== undefined && { threads }),
  })
}

async function writeAnswer(
  { names, rows }: Answer,
  { format, onTerminal }: ReturnType<typeof settle<'sql', SqlFlags>>,
  output: Output,
): Promise<void> {
  if (format === 'table') {
    await writeTable(names, rows(), onTerminal, output)
    return
  }
  if (format === 'csv') await output.write(csvLine(names, onTerminal))
  const keys = names.map(name => JSON.stringify(name))
  for await (const row of rows()) {
    const values = row.map(plainValue)
    const line =
      format === 'csv'
        ? csvLine(values.map(textOf), onTerminal)
        : `{${values.map((value, i) => `${keys[i]}:${jsonOf(value)}`).join(',')}}\n`
    const written = output.write(format === 'jsonl' && onTerminal ? `${safeJson(line.slice(0, -1))}\n` : line)
    if (written) await written
  }
}

async function writeTable(
  names: readonly string[],
  rows: AsyncIterable<readonly unknown[]>,
  onTerminal: boolean,
  output: Output,
): Promise<void> {
  const colors = colorsFor(onTerminal ? process.stdout : null)
  const shown: string[][] = []
  const numeric = new Set(names.keys())
  let count = 0
  for await (const row of rows) {
    count++
    if (count > MAX_TABLE_ROWS) continue
    const values = row.map(plainValue)
    for (const [i, value] of values.entries()) {
      if (value !== null && typeof value !== 'number' && typeof value !== 'bigint') numeric.delete(i)
    }
    shown.push(values.map(value => safeName(shortText(value))))
  }
  const head = names.map(name => colors.bold(safe(name)))
  await output.writeAll(columnLines([head, ...shown], [...numeric]))
  if (count > MAX_TABLE_ROWS) {
    note(
      `these are the first ${countText(MAX_TABLE_ROWS)} of ${counted(count, 'row')}: --format csv and jsonl have all`,
    )
  }
}

/** Notes on what could not be read. @returns the exit code */
function reportErrors(scans: readonly Scan[], trials: readonly NamedTrial[]): number {
  let isWhole = true
  for (const { firstError, stats, problems } of scans) {
    if (firstError !== null) {
      isWhole = false
      const { failedRows, rows } = stats
      note(`${countText(failedRows)} of ${counted(rows, 'row')} could not be had; the first: ${firstError.message}`)
    }
    for (const { message } of problems) if (message !== firstError?.message) note(message)
    isWhole &&= problems.length === 0
  }
  if (scans.length === 0) {
    for (const { trial } of trials) for (const { message } of trial.problems) note(message)
    isWhole &&= trials.every(({ trial }) => trial.problems.length === 0)
  }
  return isWhole ? EXIT.ok : EXIT.format
}
