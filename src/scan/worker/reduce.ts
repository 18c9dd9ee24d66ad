/** The hot path: reduces a job's records to rows of moments. A bad record is one failure in the reply; the rest of the job stands. */

import { KnownMoments } from '../../core/border/abi.js'
import type { Address } from '../../core/border/memory.js'
import { byteLengthOf, dtypeNumber, dtypeOf } from '../../core/dtype.js'
import type { Engine } from '../../core/engine.js'
import { Moments } from '../../core/moments.js'
import { ROW_LENGTH } from '../../core/moments-row.js'
import { type ElementStatistic, needsAllElements } from '../../core/statistics/statistic.js'
import { UnfoldBudget } from '../../core/values.js'
import type { Store } from '../../storage/store.js'
import type { HistogramResult, PartChecksum, RecordFailure } from '../job/reply.js'
import {
  answersLength,
  NO_SKETCHES,
  type PartJob,
  type PartReply,
  type ScanJob,
  type ScanReply,
} from '../job/scan-job.js'
import { Clock } from './records/clock.js'
import { ColumnTable } from './records/column-table.js'
import { openLarge } from './records/large.js'
import { type RecordVisitor, readRecords } from './records/read-records.js'
import { Failures, failureData, histogramResult, NOTHING_DESCRIBED, RecordTable } from './records/record-table.js'
import { SketchTable } from './sketches.js'
import { digestOf, digestsAmong, PartDigests, type Sha256, sha256For } from './task/digests.js'
import { copyIn, ElementReader, type Elements, isShort } from './task/element-reader.js'
import { answersTo } from './task/tasks.js'
import { LinesWriter } from './text.js'

export async function scan(job: ScanJob, engine: Engine, store: Store): Promise<ScanReply> {
  const { known, order, statistics, sketched } = job
  const width = answersLength(statistics)
  const answers = new Float64Array(width * order.length)
  const wallTimes = new Float64Array(job.wallTimes ? order.length : 0)
  const table = new RecordTable(order.length)
  const failures = new Failures(job, () => store)
  const clock = new Clock(job.timed)
  const sha256 = await sha256For(statistics)
  engine.reset()
  const lines = job.lines && new LinesWriter(job, job.lines, engine)
  const reader = new ElementReader(engine, job.windowByteLength)
  const sketches = sketched ? new SketchTable(engine, order.length, known) : null
  // True if only rows of moments are requested.
  const isPlain = statistics.length === 0 && sketches === null
  const columns = job.columns && isPlain ? new ColumnTable(job.columns, order.length, engine) : null
  const visitor: RecordVisitor = {
    run: isPlain
      ? (i, count, decoded, ordinary) => {
          // Records written as text need nothing else.
          if (lines !== null) return lines.write(i, count, decoded)
          if (count === 0) return 0
          const { first, slots, rows } = decoded
          const run = count === order.length ? order : order.subarray(first + i, first + i + count)
          table.describeAll(run, ordinary.describe(count))
          if (job.wallTimes) for (let k = 0; k < count; k++) wallTimes[run[k]!] = slots.wallTime(i + k)
          columns?.addRun(i, count, decoded)
          if (columns === null || job.columns?.moments)
            table.reduceAll(run, rows.subarray(i * ROW_LENGTH, (i + count) * ROW_LENGTH))
          return count
        }
      : undefined,
    record(record, i, decoded) {
      const { slots, rows } = decoded
      if (job.wallTimes) wallTimes[record] = slots.wallTime(i)
      table.describeSlot(record, slots, i)
      const row = rows.subarray(i * ROW_LENGTH, (i + 1) * ROW_LENGTH)
      if (isPlain) {
        const dtype = dtypeOf(slots.dtypeNumber(i))!
        const moments = new Moments(dtype, row)
        columns?.add(record, moments)
        if (!lines?.writeWhole(record, { dtype, shape: slots.shape(i) }, moments)) table.reduce(record, row)
        return undefined
      }
      if (sketches === null) table.reduce(record, row)
      const contents = slots.found(i)
      if (contents.kind === 'strings' && sketches === null) return undefined
      const content = slots.dataAddress(i)
      return () => {
        clock.lap('writeMs')
        const pairs = sketches?.take(contents.dtype, decoded, i, row => table.reduce(record, row))
        const recordAnswers = answers.subarray(record * width, (record + 1) * width)
        if (statistics.length > 0 && contents.kind !== 'strings') {
          reader.with(contents, content, decoded, i, elements =>
            recordAnswers.set(answersInMemory(engine, statistics, elements, sha256)),
          )
        }
        clock.lap('reduceMs')
        if (!lines?.writeWhole(record, contents, table.momentsOf(record), recordAnswers, pairs) && pairs)
          sketches?.keep(record, pairs)
      }
    },
    fail: (record, error) => failures.add(record, error),
  }
  const { readBytes, reads } = await readRecords(job, engine, visitor, {
    sourceOf: () => store,
    known: sketches === null ? known : null,
    order,
    isAnyOrder: true,
    clock,
  })
  const histograms: HistogramResult[] = []
  const failed = await failures.finish((record, histogram) => histograms.push(histogramResult(record, histogram)))
  const written = lines?.finish() ?? null
  const finishedColumns = columns?.finish([...failed, ...histograms].map(({ record }) => record)) ?? null
  clock.lap('writeMs')
  return {
    kind: 'scan',
    // If all rows are text, nothing else is needed.
    described: written?.byteLengths === null ? NOTHING_DESCRIBED : table.described,
    histograms,
    moments: table.moments,
    answers,
    sketches: sketches?.sketches ?? NO_SKETCHES,
    failures: failed,
    lines: written,
    columns: finishedColumns,
    wallTimes,
    stats: { records: order.length, readBytes, reads, spent: clock.spent },
  }
}

/** Reduces parts of a record that is too large to be read at once. */
export async function reducePart(job: PartJob, engine: Engine, store: Store): Promise<PartReply> {
  const table = new RecordTable(1)
  const failures: RecordFailure[] = []
  const stats = { records: job.part === 0 ? 1 : 0, readBytes: 0, reads: 0 }
  let moments = new Float64Array(0)
  let checksums: readonly PartChecksum[] = []
  let answers = new Float64Array(0)
  let elementByteLength = 0
  let sketches = NO_SKETCHES
  let wallTime: number | undefined
  try {
    engine.reset()
    const record = await openLarge(job, 0, engine, store, stats, job.aheadByteLength)
    const { kind, dtype, shape, elementCount, dataByteLength } = record.contents
    if (job.wallTimes) wallTime = record.contents.wallTime
    const { statistics } = job
    const isContent = kind === 'content'
    const kept = isContent && statistics.some(needsAllElements) ? engine.reserveBytes(dataByteLength) : undefined
    const sha256 = await sha256For(statistics)
    const digests =
      isContent && digestsAmong(statistics).length > 0
        ? new PartDigests(engine, statistics, sha256, job.partCount)
        : null
    const sketch = job.sketched ? engine.reserveSketch().for(dtype) : null
    const known = job.sketched ? job.known | KnownMoments.extremes : job.known
    const reduced = await record.reduceParts(job.part, job.partCount, job.parts, known, { kept, sketch, digests })
    if (sketch !== null) {
      const pairs = sketch.take(dtype)
      sketches = { pairs, ends: Float64Array.of(pairs.length) }
    }
    checksums = reduced.checksums
    moments = reduced.rows
    table.describe(0, dtypeNumber(dtype), shape)
    if (statistics.length > 0 && kind !== 'strings') {
      const address = isContent
        ? (kept ?? (0 as Address))
        : copyIn(engine, record.copyElements(new UnfoldBudget(job.windowByteLength)))
      // Values that are stored individually belong to the first part.
      const count = kind === 'none' || (!isContent && job.part > 0) ? 0 : elementCount
      const elements = { dtype, shape, address, count, isUnfolded: isShort(record.contents) }
      answers =
        digests === null
          ? answersInMemory(engine, statistics, elements, sha256)
          : answersTo(engine, statistics, elements, kind => digests.answer(kind))
      elementByteLength = digests?.byteLength ?? byteLengthOf(dtype, count)
    }
  } catch (error) {
    failures.push({ record: 0, error: failureData(error) })
  }
  const { described } = table
  return {
    kind: 'part',
    described,
    moments,
    answers,
    elementByteLength,
    sketches,
    failures,
    checksums,
    wallTime,
    stats,
  }
}

/** The answers to all statistics of elements that are completely in memory. */
function answersInMemory(
  engine: Engine,
  statistics: readonly ElementStatistic[],
  elements: Elements,
  sha256: Sha256,
): Float64Array<ArrayBuffer> {
  const { dtype, address, count } = elements
  return answersTo(engine, statistics, elements, kind =>
    digestOf(engine, kind, address, byteLengthOf(dtype, count), sha256),
  )
}
