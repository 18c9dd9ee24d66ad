/** Merges a record that was read in parts: its moments, and its checksum, which is compared with the saved one. */

import type { TrialscanError } from '../../base/errors.js'
import { Status } from '../../core/border/abi.js'
import { UNCHECKED_CRC } from '../../core/border/framing.js'
import { type FaultPlace, faultError } from '../../core/border/status.js'
import { dtypeOf } from '../../core/dtype.js'
import { withEngineSync } from '../../core/engines.js'
import { Moments } from '../../core/moments.js'
import { checkLevelNumber } from '../job/plan/coalesce.js'
import type { PartChecksum } from '../job/reply.js'
import { noAnswer } from './record-result.js'

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
