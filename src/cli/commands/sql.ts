/** `trialscan sql`: runs a query over trials, or over tables that scans have written. */

import { UsageError } from '../../base/errors.js'
import type { CheckLevel } from '../../base/types.js'
import { csvLine, jsonOf } from '../format/lines.js'
import { counted, countText } from '../format/number.js'
import { noteInput } from '../input-file.js'
import { type OutputFlags, settle } from '../options/given.js'
import { expectS3, type S3Flags } from '../options/s3.js'
import { type Output, writeTo } from '../output.js'
import { Progress } from '../progress.js'
import { expectReplaceableIn } from '../real-path.js'
import { Losses, trialsAt } from '../scan/trials.js'
import { type Answer, Database } from '../sql/database.js'
import { expectOneKind, filesOfTable, makeTables, shortText, textOf, viewOfFiles } from '../sql/tables.js'
import { colorsFor, columnLines, note, safe, safeJson, safeName, tableWidth } from '../terminal.js'

export interface SqlFlags extends S3Flags, OutputFlags<'sql'> {
  readonly checkLevel?: CheckLevel
  readonly threads?: number
  readonly failFast?: boolean
  /** MiB. */
  readonly memory?: number
  /** Seconds. */
  readonly timeout?: number
  readonly allowFiles?: boolean
}

/** The number of rows of a table for people: the widths of columns must be known before the first row is shown. */
const MAX_TABLE_ROWS = 10_000

/**
 * @param given the trials or tables, then the query
 * @returns the exit code
 */
export async function sql(given: readonly string[], givenFlags: SqlFlags, signal: AbortSignal): Promise<number> {
  const places = given.slice(0, -1)
  const query = given.at(-1)!.trim()
  const [first] = places
  if (first === undefined) {
    throw new UsageError('expected a trial or a table before the query: trialscan sql ./my-training "select …"')
  }
  const flags = settle('sql', first, givenFlags)
  const { out, threads, memory, timeout, allowFiles } = flags
  if (out !== undefined) await expectReplaceableIn(places, out)
  const tables = (await Promise.all(places.map(filesOfTable))).flatMap((files, i) => ({ files, place: places[i]! }))
  const files = tables.flatMap(({ files }) => files ?? [])
  const trials = tables.filter(({ files }) => files === null).map(({ place }) => place)
  if (files.length > 0 && trials.length > 0) {
    throw new UsageError(`expected either trials or tables, got the table ${files[0]} and the trial ${trials[0]}`)
  }
  expectOneKind(files)
  for (const file of files) await noteInput(file)
  expectS3(flags, trials)
  const database = await Database.open({ threads, memory, seconds: timeout, allowFiles, signal })
  const progress = new Progress(false)
  try {
    const named = await database.named(query)
    const paths = await trialsAt(trials, flags)
    const losses = new Losses(paths, flags.failFast)
    if (files.length > 0) await viewOfFiles(database, files)
    else await makeTables({ database, named, paths, flags, losses, signal, onProgress: progress.update })
    progress.stop()
    const answer = await database.ask(query, files)
    await writeTo(out, output => writeAnswer(answer, flags, output))
    return losses.tell()
  } finally {
    await database.close()
  }
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
    const line =
      format === 'csv'
        ? csvLine(row.map(textOf), onTerminal)
        : `{${row.map((value, i) => `${keys[i]}:${jsonOf(value)}`).join(',')}}\n`
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
    for (const [i, value] of row.entries()) {
      if (value !== null && typeof value !== 'number' && typeof value !== 'bigint') numeric.delete(i)
    }
    shown.push(row.map(value => safeName(shortText(value))))
  }
  const head = names.map(name => colors.bold(safe(name)))
  await output.writeAll(columnLines([head, ...shown], [...numeric], tableWidth(onTerminal)))
  if (count > MAX_TABLE_ROWS) {
    note(
      `these are the first ${countText(MAX_TABLE_ROWS)} of ${counted(count, 'row')}: --format csv and jsonl have all`,
    )
  }
}
