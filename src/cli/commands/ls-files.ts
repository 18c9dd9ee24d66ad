/** `trialscan ls --files`: lists the files below places. */

import { type TrialFile, trialFiles } from '../../integrity/repair/copy.js'
import { EXIT } from '../exit.js'
import type { FormatOf } from '../format/formats.js'
import { csvLine, jsonLine } from '../format/lines.js'
import { bytesText } from '../format/number.js'
import { onlyPlaceOptions, type S3Flags } from '../options/s3.js'
import { writeTo } from '../output.js'
import { columns, safe, tableWidth } from '../terminal.js'

interface FilesFlags extends S3Flags {
  readonly format: FormatOf<'ls'>
  readonly onTerminal: boolean
  readonly out?: string | undefined
}

/** @returns the exit code */
export async function listFiles(places: readonly string[], flags: FilesFlags): Promise<number> {
  const listed: { readonly trial: string; readonly files: readonly TrialFile[] }[] = []
  for (const trial of places) {
    const options = onlyPlaceOptions(trial, flags)
    listed.push({ trial, files: await trialFiles(trial, options) })
  }
  await writeTo(flags.out, output => output.write(filesText(listed, flags)))
  return EXIT.ok
}

function filesText(
  listed: readonly { readonly trial: string; readonly files: readonly TrialFile[] }[],
  { format, onTerminal }: FilesFlags,
): string {
  const isOnly = listed.length === 1
  const rows = listed.flatMap(({ trial, files }) =>
    files.map(({ path, byteLength, modifiedMs }) => {
      const modified = new Date(modifiedMs).toISOString()
      return { ...(isOnly ? {} : { trial }), path, bytes: byteLength, modified }
    }),
  )
  if (format === 'json') return jsonLine({ files: rows }, true)
  if (format === 'jsonl') return rows.map(row => jsonLine(row, true)).join('')
  if (format === 'csv') {
    const names = [...(isOnly ? [] : ['trial']), 'path', 'bytes', 'modified']
    return [names, ...rows.map(row => Object.values(row))].map(cells => csvLine(cells, onTerminal)).join('')
  }
  const cells = rows.map(({ trial = '', path, bytes, modified }) => [
    bytesText(bytes),
    modified.slice(0, 19).replace('T', ' '),
    safe(trial === '' ? path : `${trial}: ${path}`),
  ])
  return columns([['size', 'written (UTC)', 'file'], ...cells], [0], tableWidth(onTerminal))
}
