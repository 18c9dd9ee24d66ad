/** Copies records of event files, byte for byte or with true checksums, in pieces. */

import { setImmediate } from 'node:timers/promises'
import { FormatError } from '../../base/errors.js'
import { FOOTER_LENGTH, HEADER_LENGTH } from '../../core/border/framing.js'
import type { Address } from '../../core/border/memory.js'
import type { Engine } from '../../core/engine.js'
import { PieceWriter } from '../../storage/local/output-directory.js'
import type { Store } from '../../storage/store.js'
import type { CopiedFile, CopyJob, CopyReply } from '../job/copy-job.js'

/** The number of bytes that are read and written at once. */
const COPIED_BYTES = 2 << 20

/** Writes the files of a job, whole records in order. */
export async function copyRecords(job: CopyJob, engine: Engine, store: Store): Promise<CopyReply> {
  engine.reset()
  const checksums = job.checksums ? new Checksums(engine) : null
  const piece = new Uint8Array(COPIED_BYTES)
  let byteLength = 0
  for (const file of job.files) {
    const output = new PieceWriter(file.target)
    try {
      for (const { startByte, endByte, parts } of pieces(file)) {
        const view = piece.subarray(0, endByte - startByte)
        const read = await store.readInto(file.path, startByte, view)
        if (read < view.length) throw shrunk(store.url(file.path), startByte, view.length, read)
        for (const [start, end] of parts) {
          const part = view.subarray(start - startByte, end - startByte)
          checksums?.correct(part, start, file)
          output.write(part)
          byteLength += part.length
        }
        // Gives signals a turn of the event loop on the calling thread.
        await setImmediate()
      }
    } finally {
      output.close()
      // The file is not read again.
      store.release?.()
    }
  }
  return { kind: 'copy', byteLength }
}

/** A range of a file that is read at once, and the parts of it that are copied. */
interface CopiedPiece {
  startByte: number
  endByte: number
  readonly parts: (readonly [start: number, end: number])[]
}

/** The pieces of a copy, as few as possible: gaps between records are read over if the next record is near. */
function* pieces({ startByte, byteLength }: CopiedFile): Generator<CopiedPiece> {
  let piece: CopiedPiece | null = null
  for (let i = 0; i < startByte.length; ) {
    let start = startByte[i]!
    let end = start
    while (i < startByte.length && startByte[i] === end) end += byteLength[i++]!
    while (start < end) {
      if (piece !== null && start >= piece.startByte + COPIED_BYTES) {
        yield piece
        piece = null
      }
      piece ??= { startByte: start, endByte: start, parts: [] }
      piece.endByte = Math.min(end, piece.startByte + COPIED_BYTES)
      piece.parts.push([start, piece.endByte])
      start = piece.endByte
    }
  }
  if (piece !== null) yield piece
}

/** Sets the payload checksums of records as the pieces of a file pass by. */
class Checksums {
  readonly #engine: Engine
  readonly #buffer: Address
  #file: CopiedFile | null = null
  /** The current record, and the checksum of its payload so far. */
  #record = 0
  #crc = 0

  constructor(engine: Engine) {
    this.#engine = engine
    this.#buffer = engine.reserveBytes(COPIED_BYTES)
  }

  /** @param piece the bytes from `pieceStart` of the file on: whole records, or parts of them, without a gap */
  correct(piece: Uint8Array, pieceStart: number, file: CopiedFile): void {
    if (this.#file !== file) {
      this.#file = file
      this.#record = 0
      this.#crc = 0
    }
    const pieceEnd = pieceStart + piece.length
    this.#engine.view(this.#buffer, piece.length).set(piece)
    for (let at = pieceStart; at < pieceEnd; ) {
      const recordStart = file.startByte[this.#record]!
      const recordEnd = recordStart + file.byteLength[this.#record]!
      const footer = recordEnd - FOOTER_LENGTH
      const payloadStart = Math.max(at, recordStart + HEADER_LENGTH)
      const payloadEnd = Math.min(footer, pieceEnd)
      if (payloadStart < payloadEnd) {
        const address = (this.#buffer + (payloadStart - pieceStart)) as Address
        this.#crc = this.#engine.crc32c(address, payloadEnd - payloadStart, this.#crc)
      }
      const end = Math.min(recordEnd, pieceEnd)
      const masked = this.#engine.maskedCrc(this.#crc)
      for (let i = Math.max(at, footer); i < end; i++) piece[i - pieceStart] = masked >>> (8 * (i - footer))
      at = end
      if (at === recordEnd) {
        this.#record++
        this.#crc = 0
      }
    }
  }
}

/** The error for a file that has become shorter. */
function shrunk(url: string, offset: number, expected: number, got: number): FormatError {
  const message = `${url}, offset ${offset}: expected ${expected} bytes, got ${got}: the file changed in the meantime`
  const fields = { url, offset, expected: `${expected} bytes`, got: `${got}` }
  return new FormatError('TruncatedRecord', message, fields)
}
