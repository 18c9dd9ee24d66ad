/** `trialscan scan`: prints rows as they come. */

import { existsSync } from 'node:fs'
import { UsageError } from '../../base/errors.js'
import { isStatisticName } from '../../core/statistics/statistic.js'
import type { ScanStats } from '../../scan/rows/costs.js'
import type { Traffic } from '../../storage/store.js'
import { parseWhere, type RowFilter } from '../../table/where.js'
import { EXIT } from '../exit.js'
import { bytesText, countText } from '../format/number.js'
import { settle } from '../options/given.js'
import { expectS3 } from '../options/s3.js'
import { writeTo } from '../output.js'
import { Progress } from '../progress.js'
import { expectReplaceable } from '../real-path.js'
import { scanMany } from '../scan/many.js'
import { matchedText, matchingRows, newTally } from '../scan/matching-rows.js'
import { isDirectoryOut } from '../scan/partitions.js'
import {
  metadataOf,
  rowWriterFor,
  type ScanFlags,
  type SettledScan,
  scanOptions,
  writeLines,
  writeRows,
  writeTable,
} from '../scan/rows.js'
import { isSelective, nothingSelected, requestedStatistics, unscannedParts } from '../scan/selection.js'
import { Losses, openTrial, trialsAt } from '../scan/trials.js'
import { note } from '../terminal.js'

/** @returns the exit code */
export async function runScan(places: readonly string[], given: ScanFlags, signal: AbortSignal): Promise<number> {
  const inDirectory = given.out !== undefined && (await isDirectoryOut(given.out))
  const format = given.format ?? (inDirectory ? 'parquet' : undefined)
  if (inDirectory && format !== 'parquet') {
    throw new UsageError(`expected --format parquet for the directory ${given.out}, got ${format}`)
  }
  const flags = settle('scan', places[0]!, { ...given, ...(format && { format }) })
  const { onTerminal } = flags
  if (onTerminal && (flags.format === 'parquet' || flags.format === 'arrow')) {
    throw new UsageError(`--format ${flags.format} is not for terminals: write to a file with --out, or into a pipe`)
  }
  if (flags.resume && !inDirectory) throw new UsageError('expected --resume with --out DIR: one file is written anew')
  const filter = flags.where === undefined ? null : parseWhere(flags.where)
  if (filter !== null && (flags.format === 'parquet' || flags.format === 'arrow')) {
    throw new UsageError(
      `expected --where with jsonl, csv or table, got --format ${flags.format}: trialscan sql filters tables`,
    )
  }
  expectS3(flags, places)
  await expectNoReduction(places, flags)
  const paths = await trialsAt(places, flags)
  if (paths.length > 1 || inDirectory) return scanMany(paths, inDirectory, flags, filter, signal)
  return scanOne(paths[0]!, flags, filter, signal)
}

/**
 * Refuses a reduction that would be taken for a trial: `--reductions mean max`.
 * @throws UsageError
 */
async function expectNoReduction(places: readonly string[], { reductions }: ScanFlags): Promise<void> {
  if (reductions === undefined) return
  const names = places.filter(place => place === 'median' || isStatisticName(place))
  const [first] = names.filter(name => !existsSync(name))
  if (first === undefined) return
  const list = [...reductions, ...names].join(',')
  throw new UsageError(`expected a trial, got ${first}: several reductions are joined by commas, --reductions ${list}`)
}

async function scanOne(
  path: string,
  flags: SettledScan,
  filter: RowFilter | null,
  signal: AbortSignal,
): Promise<number> {
  const { out, onTerminal } = flags
  const named = requestedStatistics(flags.reductions)
  const openedAt = performance.now()
  if (out !== undefined) await expectReplaceable(path, out)
  const trial = await openTrial(path, flags)
  const openMs = performance.now() - openedAt
  const progress = new Progress(onTerminal)
  const rows = trial.scan({ ...scanOptions(flags, filter), signal, onProgress: progress.update })
  try {
    const { format } = flags
    const tally = newTally()
    const selected = filter === null ? rows : matchingRows(rows, filter, tally, named)
    await writeTo(out, async output => {
      if (format === 'parquet' || format === 'arrow') {
        return writeTable(rows, format, { trial: path, metadata: metadataOf([path], flags) }, output)
      }
      const writer = rowWriterFor(trial, flags, format, onTerminal)
      return typeof writer === 'string' ? writeLines(rows, writer, output) : writeRows(selected, writer, output)
    })
    progress.stop()
    if (rows.stats.rows === 0) note(nothingSelected(trial, flags))
    else if (filter !== null) note(matchedText(tally))
    for (const message of unscannedParts(trial, flags, rows.stats.rows > 0)) note(message)
    const losses = new Losses([path])
    const { stats, problems } = rows
    const { failedRows, firstError } = filter === null ? { ...stats, firstError: rows.firstError } : tally
    losses.addScan(path, { stats: { ...stats, failedRows }, firstError, problems })
    if (rows.stats.rows === 0 && isSelective(flags)) losses.outcome(EXIT.query)
    return losses.tell()
  } finally {
    progress.stop()
    if (flags.stats) process.stderr.write(`${statsText(rows.stats, openMs, trial.traffic)}\n`)
    await trial.close()
  }
}

function statsText(stats: ScanStats, openMs: number, traffic: Readonly<Traffic>): string {
  const { records, readBytes, reads, jobs, threads, elapsedMs, failedRows, spent } = stats
  const seconds = elapsedMs / 1000
  const speed = seconds > 0 ? readBytes / 1e9 / seconds : 0
  return [
    `records ${countText(records)}`,
    `bytes read ${countText(readBytes)} (${bytesText(readBytes)})`,
    `reads ${countText(reads)}`,
    `jobs ${countText(jobs)}`,
    `threads ${threads}`,
    `seconds ${seconds.toFixed(3)}`,
    `GB/s ${speed.toFixed(3)}`,
    `failed rows ${countText(failedRows)}`,
    `open ${secondsText(openMs)}`,
    // Times are summed over all threads; waiting is the main thread's.
    ...(spent
      ? [
          `read ${secondsText(spent.readMs)}`,
          `decode ${secondsText(spent.decodeMs)}`,
          `reduce ${secondsText(spent.reduceMs)}`,
          `write ${secondsText(spent.writeMs)}`,
          `wait ${secondsText(spent.waitMs)}`,
        ]
      : []),
    // The counters include the requests for opening the trial.
    ...trafficTexts(traffic),
  ].join(', ')
}

/** The counters of requests in words; empty if there were none. */
function trafficTexts({ listRequests, getRequests, receivedBytes, retries }: Readonly<Traffic>): readonly string[] {
  if (listRequests + getRequests === 0) return []
  return [
    `list requests ${countText(listRequests)}`,
    `get requests ${countText(getRequests)}`,
    `retries ${countText(retries)}`,
    `bytes received ${countText(receivedBytes)} (${bytesText(receivedBytes)})`,
  ]
}

function secondsText(ms: number): string {
  return (ms / 1000).toFixed(3)
}
