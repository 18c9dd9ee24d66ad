/** The rows of a scan as files of each format: whole processes, and how large the files are. */

import { readFileSync, statSync } from 'node:fs'
import { tableFromIPC } from 'apache-arrow'
import { parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import { REDUCTIONS } from '#dist/base/types.js'
import { type Case, type Definition, type Options, selfTimed } from '../definition.js'
import * as ours from '../engines/ours.js'
import { COMMAND } from '../package.js'
import { runProcess } from '../processes.js'
import { scratchPath } from '../scratch.js'
import { type Trial, trial } from '../trials.js'
import { processContender, wrongTable } from './cli.js'

const FORMATS = ['csv', 'jsonl', 'parquet', 'arrow'] as const
type Format = (typeof FORMATS)[number]

export const table: Definition = {
  name: 'table',
  measures: 'whole processes from start to exit, and the bytes they write; files in the page cache, output to a file',
  *cases({ quick }: Options): Generator<Case> {
    const many = trial('many', quick)
    yield {
      size: `scan of ${many.title}`,
      byteLength: many.byteLength,
      records: many.tensorCount,
      rounds: 5,
      contenders: FORMATS.map(format =>
        processContender(`${ours.NAME}, ${format}`, commandOf(format, many.dir), () => wrongFile(format, many)),
      ),
    }
    yield {
      size: `bytes of ${many.title}`,
      unit: 'MB',
      rounds: 1,
      contenders: FORMATS.map(format =>
        selfTimed(
          `${ours.NAME}, ${format}`,
          async () => {
            await runProcess(commandOf(format, many.dir))
            return { median: statSync(fileOf(format)).size / 1e6, answer: format }
          },
          () => wrongFile(format, many),
        ),
      ),
    }
  },
}

function fileOf(format: Format): string {
  return scratchPath(`table.${format}`)
}

function commandOf(format: Format, dir: string) {
  return [
    process.execPath,
    COMMAND,
    'scan',
    dir,
    '--reductions',
    'all',
    '--format',
    format,
    '--out',
    fileOf(format),
  ] as const
}

/** The fault of a file: CSV is held against what is expected, and the others against CSV, number by number. */
export async function wrongFile(
  format: Format,
  trial: Trial,
  files: Readonly<Partial<Record<Format, string>>> = {},
): Promise<string | undefined> {
  const csv = files.csv ?? fileOf('csv')
  if (format === 'csv') return wrongTable(csv, trial)
  const [head, ...lines] = readFileSync(csv, 'utf8').trimEnd().split('\n')
  const names = head!.split(',')
  const rows = await rowsOf(format, files[format] ?? fileOf(format))
  if (rows.length !== lines.length) return `expected ${lines.length} rows, got ${rows.length}`
  const columns = [...REDUCTIONS, 'tensor', 'step'].map(name => [name, names.indexOf(name)] as const)
  for (const [i, line] of lines.entries()) {
    const cells = line.split(',')
    for (const [name, column] of columns) {
      const value = rows[i]![name]
      const text = Object.is(value, -0) ? '-0' : String(value)
      if (text !== cells[column]) return `row ${i}: expected ${name} to be ${cells[column]}, got ${text}`
    }
  }
  return undefined
}

async function rowsOf(
  format: Exclude<Format, 'csv'>,
  path: string,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const bytes = readFileSync(path)
  if (format === 'parquet') return parquetReadObjects({ file: Uint8Array.from(bytes).buffer, compressors })
  if (format === 'arrow') return tableFromIPC(bytes).toArray() as Readonly<Record<string, unknown>>[]
  return bytes
    .toString()
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as Readonly<Record<string, unknown>>)
}
