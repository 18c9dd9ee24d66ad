/** `trialscan scan` of several trials: one table with a column `trial`, or a directory with a part for each. */

import { isDeepStrictEqual } from 'node:util'
import type { Scan } from '../../scan/rows/scan.js'
import { type TableFormatName, type TableSource, tableBytes } from '../../table/table.js'
import type { RowFilter } from '../../table/where.js'
import { trialFingerprint } from '../../trial/fingerprint.js'
import { parseReductions } from '../../trial/reduction.js'
import { damageAmong } from '../../trial/scan-selection.js'
import type { Trial } from '../../trial/trial.js'
import type { FormatOf } from '../format/formats.js'
import { rowLines } from '../format/lines.js'
import { counted, countText } from '../format/number.js'
import { type Output, writeTo } from '../output.js'
import { Progress } from '../progress.js'
import { expectReplaceableIn } from '../real-path.js'
import { colorsFor, note, safe } from '../terminal.js'
import { VERSION } from '../version.js'
import { matchingRows, newTally } from './matching-rows.js'
import { Partitions } from './partitions.js'
import { metadataOf, rowWriterFor, type SettledScan, scanOptions, writeRows, writeTable } from './rows.js'
import { requestedStatistics, selectionOf } from './selection.js'
import { Losses, opened } from './trials.js'

/** The scan of one of several trials. */
interface TrialScan extends TableSource {
  readonly opened: Trial
  readonly fingerprint: string | null
}

/** @param inDirectory whether `--out` is a directory @returns the exit code */
export async function scanMany(
  paths: readonly string[],
  inDirectory: boolean,
  flags: SettledScan,
  filter: RowFilter | null,
  signal: AbortSignal,
): Promise<number> {
  const { out, format, onTerminal } = flags
  if (out !== undefined) await expectReplaceableIn(paths, out)
  const losses = new Losses(paths, flags.failFast)
  const progress = new Progress(onTerminal, 'trials')
  /** The scans of the trials, one after the other. */
  const scans = async function* (): AsyncGenerator<TrialScan> {
    let done = 0
    for await (const { path, trial } of opened(paths, flags, losses)) {
      signal.throwIfAborted()
      let scan: Scan | null = null
      let fingerprint: string | null = null
      try {
        if (inDirectory) {
          fingerprint = await trialFingerprint(trial)
          // A refresh reads what has come since the trial was opened, so that the fingerprint covers all that is scanned.
          await trial.refresh()
        }
        scan = trial.scan({ ...scanOptions(flags, filter), signal })
      } catch (error) {
        // An error of this trial alone, such as a collection that it does not have.
        losses.trial(path, error)
      }
      if (scan !== null) {
        yield { trial: path, scan, opened: trial, fingerprint }
        losses.addScan(path, scan)
      }
      progress.update({ doneRows: ++done, totalRows: paths.length })
    }
  }
  if (inDirectory) await writeParts(out!, paths, scans(), flags, losses)
  else if (format === 'parquet' || format === 'arrow') {
    await writeTo(out, output => writeTable(scans(), format, { metadata: metadataOf(paths, flags) }, output))
  } else await writeTo(out, output => writeText(scans(), format, flags, filter, output))
  progress.stop()
  return losses.tell()
}

async function writeText(
  scans: AsyncIterable<TrialScan>,
  format: Exclude<FormatOf<'scan'>, TableFormatName>,
  flags: SettledScan,
  filter: RowFilter | null,
  output: Output,
): Promise<void> {
  const { onTerminal } = flags
  const named = requestedStatistics(flags.reductions)
  const { bold } = colorsFor(onTerminal ? process.stdout : null)
  let isFirst = true
  for await (const { trial: path, scan, opened } of scans) {
    if (format === 'table' || filter !== null || onTerminal) {
      if (format === 'table') await output.write(`${isFirst ? '' : '\n'}${bold(safe(path))}\n`)
      const reductions = parseReductions(named ?? 'all')
      const writer =
        format === 'table'
          ? rowWriterFor(opened, flags, format, onTerminal)
          : rowLines(format, reductions, onTerminal, path)
      const rows = filter === null ? scan : matchingRows(scan, filter, newTally(), named)
      if (typeof writer !== 'string')
        await writeRows(rows, isFirst || format === 'table' ? writer : { ...writer, head: '' }, output)
    } else {
      let isHead = format === 'csv'
      for await (const lines of scan.lines(format, path)) {
        if (isFirst || !isHead) await output.writeBytes(lines)
        isHead = false
      }
    }
    isFirst = false
  }
}

/** A part for each trial. With `--resume` those that are there and whole, of the same trial and the same options, stay. */
async function writeParts(
  out: string,
  paths: readonly string[],
  scans: AsyncIterable<TrialScan>,
  flags: SettledScan,
  losses: Losses,
): Promise<void> {
  const parts = await Partitions.open(out)
  // What decides the rows of a part.
  const reductions = parseReductions(requestedStatistics(flags.reductions) ?? 'all')
  const options = JSON.stringify([selectionOf(flags), reductions, flags.checkLevel])
  let kept = 0
  for await (const { trial, scan, fingerprint } of scans) {
    const origin = { version: VERSION, trial, fingerprint: fingerprint!, options }
    const known = flags.resume ? await parts.stateOf(trial) : null
    if (known !== null && isDeepStrictEqual(known, { ...origin, rows: known.rows, isWhole: true })) {
      kept++
      losses.add(trial, { rows: known.rows })
      continue
    }
    await parts.write(trial, tableBytes(scan, 'parquet', { trial, metadata: metadataOf([trial], flags) }), () => {
      const { stats, problems } = scan
      const isWhole = stats.failedRows === 0 && damageAmong(problems).length === 0
      return { ...origin, rows: stats.rows, isWhole }
    })
  }
  await parts.finish()
  if (flags.resume) note(`${countText(kept)} of ${counted(paths.length, 'trial')} had been scanned before`)
}
