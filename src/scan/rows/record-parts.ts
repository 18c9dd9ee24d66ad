/** The result of a record that was read in parts. */

import { errorFromData, type TrialscanError } from '../../base/errors.js'
import { withEngineSync } from '../../core/engines.js'
import type { Moments } from '../../core/moments.js'
import { Distribution } from '../../core/statistics/distribution.js'
import type { ElementStatistic } from '../../core/statistics/statistic.js'
import { shapesOf } from '../job/reply.js'
import type { PartJob, PartReply } from '../job/scan.js'
import { mergeParts } from './merge-parts.js'
import type { RecordResult } from './record-result.js'

/** @param job the last of the jobs that read parts of the record; if a part could not be read, the record can't */
export function resultOfParts(
  { files, records: { startByte, byteLength }, tags, checkLevel, statistics }: PartJob,
  parts: readonly (PartReply | TrialscanError)[],
  url: (path: string) => string,
): RecordResult {
  const replies: PartReply[] = []
  for (const part of parts) {
    if (part instanceof Error) return { error: part }
    const [failure] = part.failures
    if (failure) return { error: errorFromData(failure.error) }
    replies.push(part)
  }
  const { described, wallTime } = replies[0]!
  const answers = answersOfParts(statistics, replies)
  const moments = mergeParts({
    rows: replies.flatMap(({ moments, checksums }) => rowsOf(moments, checksums.length)),
    checksums: replies.flatMap(({ checksums }) => checksums),
    dtype: described.dtypes[0]!,
    record: 0,
    byteLength: byteLength[0]!,
    placeOf: () => ({ url: url(files[0]!), startByte: startByte[0]!, tensor: tags[0]! }),
    checkLevel,
  })
  if (moments instanceof Error) return { error: moments }
  return { moments, shape: shapesOf(described)[0]!, answers, sketched: sketchOfParts(replies, moments), wallTime }
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

/** The merged distribution of the record, if it was sketched. */
function sketchOfParts(replies: readonly PartReply[], whole: Moments): Distribution | undefined {
  if (replies.every(({ sketches }) => sketches.ends.length === 0)) return undefined
  const counts = new Map<number, number>()
  for (const { sketches } of replies) {
    const { pairs } = sketches
    for (let i = 0; i < pairs.length; i += 2) counts.set(pairs[i]!, (counts.get(pairs[i]!) ?? 0) + pairs[i + 1]!)
  }
  const sorted = [...counts].sort(([a], [b]) => a - b)
  return Distribution.of(whole, Float64Array.from(sorted.flat()))
}

function rowsOf(moments: Float64Array, count: number): Float64Array[] {
  const length = moments.length / count
  return Array.from({ length: count }, (_, i) => moments.subarray(i * length, (i + 1) * length))
}
