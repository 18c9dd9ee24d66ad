/** Single records through the engine, as walk.test.ts and its neighbours need them. */

import type { TrialscanError } from '#dist/base/errors.js'
import type { Engine } from '#dist/core/engine.js'
import type { RecordContents } from '#dist/core/slots.js'

/** What is asked of a record, and where it is put. */
export interface DecodeOptions {
  /** The tag it must have; any without. */
  readonly tag?: string
  readonly step?: number
  /** What the index says; default: the frame's length. */
  readonly byteLength?: number
  /** 0 none, 1 minimal (default), 2 full. */
  readonly level?: number
  /** Bytes before the record in its reservation. */
  readonly shift?: number
  /** What lies around the record. */
  readonly poison?: number
}

/** What a record turned out to be. Elements and strings are left out where there are more than a million. */
export type Decoded =
  | {
      readonly error: TrialscanError
      readonly found?: never
      readonly elements?: never
      readonly strings?: never
      readonly row?: never
    }
  | {
      readonly error?: never
      readonly found: RecordContents
      readonly elements: Uint8Array | null
      readonly strings: readonly string[] | null
      /** A copy of the row of moments. */
      readonly row: Float64Array
    }

const POISON_BYTES = 64

/** Puts a framed record into the engine's memory, surrounded by poison, and decodes and reduces it. */
export function decodeFrame(engine: Engine, frame: Uint8Array, options: DecodeOptions = {}): Decoded {
  const { tag, step = -1, byteLength = frame.length, level = 1, shift = 0, poison = 0xff } = options
  engine.reset()
  const tags = engine.writeTexts(tag === undefined ? [] : [tag])
  const room = engine.reserveBatch(1)
  const address = engine.reserveBytes(shift + frame.length + 2 * POISON_BYTES)
  const view = engine.view(address, shift + frame.length + 2 * POISON_BYTES)
  view.fill(poison)
  view.set(frame, shift + POISON_BYTES)
  engine.ask(
    room,
    1,
    tags,
    () => ({ byteLength, tag: tag === undefined ? -1 : 0, step }),
    () => ({ address: address + shift + POISON_BYTES, byteLength: frame.length }),
  )
  engine.scan(room, 1, level)
  const slots = engine.slots(room, 1)
  if (!slots.ok(0)) return { error: slots.error(0, { url: 'file:///x', startByte: 0, tensor: tag ?? '' }) }
  const found = slots.found(0)
  const row = engine.rows(room, 1).slice()
  // Reducing moved the cursor of values that lie one by one: decoding again puts it back.
  engine.decode(room, 1, level)
  const isHuge = found.elementCount > 1e6
  const isText = found.kind === 'strings'
  return {
    found,
    row,
    elements: isHuge || isText ? null : engine.values.copyElements(room, 0, found),
    strings: isHuge || !isText ? null : engine.values.copyStrings(room, 0, found),
  }
}
