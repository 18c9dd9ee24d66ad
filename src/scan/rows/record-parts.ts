/** A record that was read in parts: its moments, sketches and digests are merged, and its checksum is compared with the saved one. */

import { errorToData, type TrialscanError } from '../../base/errors.js'
import { Status } from '../../core/border/abi.js'
import { UNCHECKED_CRC } from '../../core/border/framing.js'
import { type FaultPlace, faultError } from '../../core/border/status.js'
import { dtypeOf } from '../../core/dtype.js'
import { withEngineSync } from '../../core/engines.js'
import { Moments } from '../../core/moments.js'
import type { ElementStatistic } from '../../core/statistics/statistic.js'
import { checkLevelNumber } from '../job/plan/coalesce.js'
import type { PartChecksum } from '../job/reply.js'
import { failedReply, type PartJob, type PartReply, type ScanReply, type Sketches } from '../job/scan-job.js'
import { noAnswer } from './record-results.js'

export interface RecordParts {
  /** The rows of moments, in the order of the parts. */
  readonly rows: readonly Float64Array[]
  /** The checksums of the parts, one per row; none if the record was read at once, since the core has verified it. */
  readonly checksums: readonly PartChecksum[]
  /** TensorFlow's number; 0 if unknown. */
  readonly dtype: number
  /** The record's index in its job. */
  readonly record: number
  /** Its length with the frame. */
  readonly byteLength: number
  /** Returns its place, for errors. */
  readonly placeOf: () => FaultPlace
  readonly checkLevel: number
}

export function mergeParts(parts: RecordParts): Moments | TrialscanError {
  const mismatch = checksumError(parts)
  if (mismatch) return mismatch
  const dtype = dtypeOf(parts.dtype)
  if (dtype === undefined) return noAnswer(parts.record)
  const { rows } = parts
  return new Moments(dtype, rows.length === 1 ? rows[0]! : withEngineSync(engine => engine.mergeRows(rows)))
}

function checksumError({ checksums, byteLength, placeOf, checkLevel }: RecordParts): TrialscanError | undefined {
  const last = checksums.at(-1)
  if (last === undefined || checkLevel !== checkLevelNumber('full')) return undefined
  const stored = last.storedCrc
  const computed = withEngineSync(engine => {
    const crc = checksums.reduce((sum, part) => engine.crc32cCombine(sum, part.crc, part.crcByteLength), 0)
    return engine.maskedCrc(crc)
  })
  if (stored === computed || stored === UNCHECKED_CRC) return undefined
  const fault = { status: Status.badPayloadCrc, faultOffset: byteLength - 4, expected: computed, got: stored, tag: '' }
  return faultError(fault, placeOf())
}

/**
 * The reply about a record, as if it had been read at once.
 * @param job the last of the jobs that read parts of the record
 * @param parts the replies of all; if a part could not be read, the record can't
 */
export function replyOfParts(
  { files, records: { startByte, byteLength }, tags, checkLevel, statistics }: PartJob,
  parts: readonly PartReply[],
  url: (path: string) => string,
): ScanReply {
  const failure = parts.flatMap(({ failures }) => failures)[0]
  if (failure) return failedReply([failure.error])
  const { described, wallTime } = parts[0]!
  const moments = mergeParts({
    rows: parts.flatMap(({ moments, checksums }) => rowsOf(moments, checksums.length)),
    checksums: parts.flatMap(({ checksums }) => checksums),
    dtype: described.dtypes[0]!,
    record: 0,
    byteLength: byteLength[0]!,
    placeOf: () => ({ url: url(files[0]!), startByte: startByte[0]!, tensor: tags[0]! }),
    checkLevel,
  })
  if (moments instanceof Error) return failedReply([errorToData(moments)])
  return {
    ...failedReply([]),
    described,
    moments: moments.row,
    answers: answersOfParts(statistics, parts),
    sketches: sketchOfParts(parts),
    wallTimes: Float64Array.from(wallTime === undefined ? [] : [wallTime]),
  }
}

/** The answers to statistics of all elements. Those of several jobs are CRCs, which are combined. */
function answersOfParts(statistics: readonly ElementStatistic[], replies: readonly PartReply[]): Float64Array {
  const [first, ...others] = replies
  const { answers } = first!
  if (others.length === 0 || statistics.length === 0 || answers.length === 0) return answers
  return withEngineSync(engine =>
    answers.map((crc, at) =>
      others.reduce((sum, part) => engine.crc32cCombine(sum, part.answers[at]!, part.elementByteLength), crc),
    ),
  )
}

/** The merged sketch of the record, if it was sketched. */
function sketchOfParts(replies: readonly PartReply[]): Sketches {
  if (replies.every(({ sketches }) => sketches.ends.length === 0)) return replies[0]!.sketches
  const counts = new Map<number, number>()
  for (const { sketches } of replies) {
    const { pairs } = sketches
    for (let i = 0; i < pairs.length; i += 2) counts.set(pairs[i]!, (counts.get(pairs[i]!) ?? 0) + pairs[i + 1]!)
  }
  const pairs = Float64Array.from([...counts].sort(([a], [b]) => a - b).flat())
  return { pairs, ends: Float64Array.of(pairs.length) }
}

function rowsOf(moments: Float64Array, count: number): Float64Array[] {
  const length = moments.length / count
  return Array.from({ length: count }, (_, i) => moments.subarray(i * length, (i + 1) * length))
}
