/** The core's walk held against protobufjs: what protobufjs accepts, the core has to read as protobufjs does. */

import { isDeepStrictEqual } from 'node:util'
import { Engine } from '#dist/core/engine.js'
import { comparable, comparableJudgement, judge } from '../support/event-judge.js'
import { decodeEvent, type EventView } from '../support/event-schema.js'
import { decodeFrame } from '../support/records.js'
import type { RecordInput } from './record.js'

/**
 * - `refused`: protobufjs does not accept the bytes, so that there is nothing to compare;
 * - `agreed`: both read the same, or the same is wrong;
 * - `overlong`: the core refuses a varint of eleven bytes or more, which protobufjs skips in fields it does not know.
 */
export type Comparison = 'refused' | 'agreed' | 'overlong'

let engine: Engine | undefined

/** @throws where the readings differ */
export function compareWithProtobufjs(
  payload: Uint8Array,
  { frame, level, tag, isLengthAsked }: RecordInput,
): Comparison {
  const event = accepted(payload)
  if (event === null) return 'refused'
  engine ??= new Engine()
  const asked = { level, ...(isLengthAsked ? {} : { byteLength: 0 }), ...(tag === null ? {} : { tag }) }
  const decoded = decodeFrame(engine, frame, asked)
  if (decoded.error?.code === 'MalformedEvent' && hasOverlongVarint(payload)) return 'overlong'
  const got = comparable(decoded)
  const wanted = comparableJudgement(judge(event, tag ?? undefined))
  if (isDeepStrictEqual(got, wanted)) return 'agreed'
  throw new Error(`protobufjs reads ${excerpt(wanted)}, the core ${excerpt(got)}`)
}

function excerpt(reading: unknown): string {
  return JSON.stringify(reading).slice(0, 400)
}

/** protobufjs's reading; null where it refuses the bytes. */
export function accepted(payload: Uint8Array): EventView | null {
  try {
    return decodeEvent(payload)
  } catch {
    return null
  }
}

/** Whether eleven bytes in a row could be one varint. */
export function hasOverlongVarint(payload: Uint8Array): boolean {
  let run = 0
  return payload.some(byte => {
    run = byte >= 0x80 ? run + 1 : 0
    return run === 10
  })
}
