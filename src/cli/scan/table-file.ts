/** A scan as a Parquet file or an Arrow stream, a module that is loaded only for these. */

import type { Scan } from '../../scan/rows/scan.js'
import { type TableFormatName, tableBytes } from '../../table/table.js'
import type { Output } from '../output.js'
import { VERSION } from '../version.js'
import type { ScanFlags } from './rows.js'

export async function writeTable(
  rows: Scan,
  format: TableFormatName,
  trial: string,
  flags: ScanFlags,
  output: Output,
): Promise<void> {
  const options = { trial, metadata: metadataOf([trial], flags) }
  for await (const bytes of tableBytes(rows, format, options)) await output.writeBytes(bytes)
}

/** The metadata of a table file. */
export function metadataOf(
  trials: readonly string[],
  { checkLevel = 'minimal' }: ScanFlags,
): Readonly<Record<string, string>> {
  return {
    'trialscan.version': VERSION,
    'trialscan.trial': trials.length === 1 ? trials[0]! : JSON.stringify(trials),
    'trialscan.arguments': JSON.stringify(process.argv.slice(2)),
    'trialscan.check_level': checkLevel,
  }
}
