/** `trialscan scan` of several trials: one table with a column `trial`, or a directory with a part for each. */

import type { Scan } from '../../scan/rows/scan.js'
import { type TableFormatName, tableBytes } from '../../table/table.js'
import type { RowFilter } from '../../table/where.js'
import { trialFingerprint } from '../../trial/fingerprint.js'
import { parseReductions } from '../../trial/reduction.js'
import { damageAmong } from '../../trial/scan-selection.js'
import type { FormatOf } from '../format/formats.js'
import { rowLines } from '../format/lines.js'
import { counted, countText } from '../format/number.js'
import { type Output, writeTo } from '../output.js'
import { Progress } from '../progress.js'
import { expectReplaceableIn } from '../real-path.js'
import { colorsFor, note, safe } from '../terminal.js'
import { VERSION } from '../version.js'
import { matchingRows, newTally } from './matching-rows.js'
import { Partitions, type PartState } from './partitions.js'
import { rowWriterFor, type SettledScan, scanOptions, writeRows } from './rows.js'
import { requestedStatistics } from './selection.js'
import { metadataOf } from './table-file.js'
import { Losses, opened } from './trials.js'

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
  const scans = new Scans(paths, flags, filter, losses, progress, signal)
  try {
    if (inDirectory) await writeParts(out!, paths, scans, flags)
    else if (format === 'parquet' || format === 'arrow') {
      await writeTo(out, output => writeTable(scans, format, metadataOf(paths, flags), output))
    } else await writeTo(out, output => writeText(scans, format, flags, filter, output))
    progress.stop()
    return losses.tell()
  } finally {
    progress.stop()
  }
}

/** The scans of trials, one after the other. */
class Scans {
  readonly #paths: readonly string[]
  readonly #flags: SettledScan
  readonly #filter: RowFilter | null
  readonly losses: Losses
  readonly #progress: Progress
  readonly #signal: AbortSignal

  constructor(
    paths: readonly string[],
    flags: SettledScan,
    filter: RowFilter | null,
    losses: Losses,
    progress: Progress,
    signal: AbortSignal,
  ) {
    this.#paths = paths
    this.#flags = flags
    this.#filter = filter
    this.losses = losses
    this.#progress = progress
    this.#signal = signal
  }

  /** @param fingerprints whether each is to have the fingerprint of its trial */
  async *all({ fingerprints = false } = {}) {
    let done = 0
    for await (const { path, trial } of opened(this.#paths, this.#flags, this.losses)) {
      this.#signal.throwIfAborted()
      let scan: Scan | null = null
      let fingerprint: string | null = null
      try {
        if (fingerprints) {
          fingerprint = await trialFingerprint(trial)
          // A refresh reads what has come since the trial was opened, so that the fingerprint covers all that is scanned.
          await trial.refresh()
        }
        scan = trial.scan({ ...scanOptions(this.#flags, this.#filter), signal: this.#signal })
      } catch (error) {
        // An error of this trial alone, such as a collection that it does not have.
        this.losses.trial(path, error)
      }
      if (scan !== null) {
        yield { trial: path, scan, opened: trial, fingerprint }
        const { stats, firstError } = scan
        const problems = damageAmong(scan.problems)
        // A scan that nobody read has no statistics: its rows were there already.
        if (stats.jobs > 0 || stats.rows > 0 || problems.length > 0) {
          const messages = problems.map(({ message }) => message)
          this.losses.rows(path, stats.rows, stats.failedRows, firstError?.message ?? null, messages)
        }
      }
      this.#progress.update({ doneRows: ++done, totalRows: this.#paths.length })
    }
  }
}

async function writeTable(
  scans: Scans,
  format: TableFormatName,
  metadata: Readonly<Record<string, string>>,
  output: Output,
): Promise<void> {
  for await (const bytes of tableBytes(scans.all(), format, { metadata })) await output.writeBytes(bytes)
}

async function writeText(
  scans: Scans,
  format: Exclude<FormatOf<'scan'>, TableFormatName>,
  flags: SettledScan,
  filter: RowFilter | null,
  output: Output,
): Promise<void> {
  const { onTerminal } = flags
  const named = requestedStatistics(flags.reductions)
  const { bold } = colorsFor(onTerminal ? process.stdout : null)
  let isFirst = true
  for await (const { trial: path, scan, opened } of scans.all()) {
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
async function writeParts(out: string, paths: readonly string[], scans: Scans, flags: SettledScan): Promise<void> {
  const parts = await Partitions.open(out)
  const options = optionsText(flags)
  let kept = 0
  for await (const { trial, scan, fingerprint } of scans.all({ fingerprints: true })) {
    const origin = { version: VERSION, trial, fingerprint: fingerprint!, options }
    const known = flags.resume ? await parts.stateOf(trial) : null
    if (known?.isWhole === true && isMadeOf(known, origin)) {
      kept++
      scans.losses.rows(trial, known.rows, 0, null, [])
      continue
    }
    await parts.write(trial, async file => {
      const metadata = metadataOf([trial], flags)
      for await (const bytes of tableBytes(scan, 'parquet', { trial, metadata })) await file.write(bytes)
      const { stats, problems } = scan
      const isWhole = stats.failedRows === 0 && damageAmong(problems).length === 0
      return { ...origin, rows: stats.rows, isWhole }
    })
  }
  await parts.finish()
  if (flags.resume) note(`${countText(kept)} of ${counted(paths.length, 'trial')} had been scanned before`)
}

function isMadeOf(known: PartState, origin: Omit<PartState, 'rows' | 'isWhole'>): boolean {
  const { version, trial, fingerprint, options } = origin
  const isSame = known.version === version && known.trial === trial
  return isSame && known.fingerprint === fingerprint && known.options === options
}

/** The options that decide the rows of a part. */
function optionsText({
  tensor,
  collection,
  steps,
  modeSteps,
  mode,
  worker,
  reductions,
  checkLevel,
}: SettledScan): string {
  return JSON.stringify([
    tensor ?? null,
    collection ?? null,
    steps?.text ?? null,
    modeSteps?.text ?? null,
    mode ?? null,
    worker ?? null,
    parseReductions(requestedStatistics(reductions) ?? 'all'),
    checkLevel ?? null,
  ])
}
