/** `trialscan repair`: writes a clean copy of a trial's intact parts. */

import { rmSync } from 'node:fs'
import { repairTrial } from '../../integrity/repair/repair.js'
import type { LeftOut, RepairReport } from '../../integrity/repair/report.js'
import { EXIT } from '../exit.js'
import type { FormatOf } from '../format/formats.js'
import { csvLine, jsonLine } from '../format/lines.js'
import { bytesText, counted, countText } from '../format/number.js'
import { defined, settle } from '../options/given.js'
import { onlyPlaceOptions, type S3Flags } from '../options/s3.js'
import { writeTo } from '../output.js'
import { colorsFor, columns, note, safe, tableWidth } from '../terminal.js'

export interface RepairFlags extends S3Flags {
  readonly out: string
  readonly checksums?: boolean
  readonly threads?: number
  readonly format?: FormatOf<'repair'>
}

/** @returns the exit code */
export async function repair(path: string, given: RepairFlags, signal: AbortSignal): Promise<number> {
  const flags = settle('repair', path, given)
  const { out, checksums = false, threads } = flags
  const report = await repairTrial(path, out, {
    ...onlyPlaceOptions(path, flags),
    ...defined({ threads }),
    checksums,
    signal,
    // A second signal ends the process without waiting for the repair to clean up.
    onTemporary: directory => void process.once('exit', () => remove(directory)),
  })
  await writeTo(undefined, output => output.write(reportText(path, out, report, flags.format, flags.onTerminal)))
  note(`wrote ${out}`)
  return report.leftOutCount === 0 ? EXIT.ok : EXIT.format
}

function remove(directory: string): void {
  try {
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
  } catch {
    // Threads that still write into it end after this.
  }
}

function reportText(
  trial: string,
  out: string,
  report: RepairReport,
  format: FormatOf<'repair'>,
  onTerminal: boolean,
): string {
  const { files, records, bytes, leftOutCount, rebuilt, ignored } = report
  const { leftOut: leftOutFiles, ...otherFiles } = files
  const leftOut = report.leftOut.map(({ file, byteLength, ...fields }) => {
    return { left_out: file, byte_length: byteLength, ...fields }
  })
  const whole = {
    trial,
    out,
    files: { ...otherFiles, left_out: leftOutFiles },
    records: { kept: records.kept, left_out: records.leftOut },
    bytes: { kept: bytes.kept, left_out: bytes.leftOut },
    left_out_count: leftOutCount,
  }
  const json = (value: unknown) => jsonLine(value, true)
  switch (format) {
    case 'table':
      return table(report)
    case 'json':
      return json({ ...whole, left_out: leftOut, rebuilt, ignored })
    case 'jsonl': {
      const others = [
        ...rebuilt.map(({ file, reason }) => ({ rebuilt: file, reason })),
        ...ignored.map(ignored => ({ ignored })),
      ]
      return [...leftOut, ...others, whole].map(json).join('')
    }
    case 'csv': {
      const lines = report.leftOut.map(({ file, offset, byteLength, step, tensors, records, code, reason }) =>
        csvLine([file, offset, byteLength, step, tensors.join(' '), records, code, reason], onTerminal),
      )
      return (
        csvLine(['left_out', 'offset', 'byte_length', 'step', 'tensors', 'records', 'code', 'reason'], onTerminal) +
        lines.join('')
      )
    }
  }
}

function table({ files, records, bytes, leftOut, leftOutCount, rebuilt, ignored }: RepairReport): string {
  const { bold, dim, yellow } = colorsFor(process.stdout)
  let text = ''
  if (leftOut.length > 0) {
    const head = ['file', 'offset', 'bytes', 'step', 'tensors'].map(title => dim(title))
    text += `${bold('Left out')}\n${columns([head, ...leftOut.map(leftOutRow)], [1, 2, 3], tableWidth(process.stdout.isTTY))}`
    // Reasons are sentences, too long for a column.
    const reasons = new Map(leftOut.map(({ code, reason }) => [code, reason]))
    text += [...reasons].map(([code, reason]) => `  ${yellow(code)}, as in: ${safe(reason)}\n`).join('')
    if (leftOutCount > leftOut.length) text += `  … and ${countText(leftOutCount - leftOut.length)} more\n`
  }
  const list = (title: string, lines: readonly string[], total: number): void => {
    if (total === 0) return
    text += `${bold(title)}\n${lines.map(line => `  ${safe(line)}\n`).join('')}`
    if (total > lines.length) text += `  … and ${countText(total - lines.length)} more\n`
  }
  const shown = rebuilt.slice(0, MAX_ROWS).map(({ file, reason }) => `${file}: ${reason}`)
  list('Rebuilt', shown, files.rebuilt)
  list('No part of the trial', ignored.slice(0, MAX_ROWS), files.ignored)
  const lost = leftOutCount === 0 ? 'nothing is lost' : `left out ${sizeText(records.leftOut, bytes.leftOut)}`
  return `${text}${bold('Kept')} ${sizeText(records.kept, bytes.kept)}; ${lost}\n`
}

/** The number of files that the table lists. jsonl has them all. */
const MAX_ROWS = 20

function leftOutRow({ file, offset, byteLength, step, tensors, records }: LeftOut): string[] {
  const more = records > 3 && tensors.length > 0 ? ` and ${countText(records - 3)} more` : ''
  const names = safe(tensors.slice(0, 3).join(', ')) + more
  const number = (value: number | null): string => (value === null ? '-' : countText(value))
  return [safe(file), number(offset), number(byteLength), step === null ? '-' : String(step), names]
}

function sizeText(records: number, bytes: number): string {
  return `${counted(records, 'record')} (${bytesText(bytes)})`
}
