/** Reads pieces of a file as a walk over its records needs them. */

import type { FileBytes } from '../../format/event-head.js'
import { isRemote, type Store } from '../../storage/store.js'

/** The number of bytes read at once: a large record costs one such piece, and small ones come by the hundred. */
export const PIECE_BYTES = 64 << 10
/** The largest piece in a sequence of pieces: on the local disk, and if reads are requests. */
const LOCAL_PIECE_BYTES = 1 << 20
const REMOTE_PIECE_BYTES = 4 << 20

/** A file with one piece in memory. */
export class FilePieces implements FileBytes {
  readonly byteLength: number
  readonly #store: Store
  readonly #path: string
  readonly #view: (byteLength: number) => Uint8Array<ArrayBuffer>
  #piece = new Uint8Array(0)
  #next = PIECE_BYTES
  #start = 0
  #length = 0

  /** @param view returns the memory for pieces, which must stay unchanged until the next is loaded */
  constructor(store: Store, path: string, byteLength: number, view = ownMemory()) {
    this.#store = store
    this.#path = path
    this.byteLength = byteLength
    this.#view = view
  }

  has(at: number, byteLength: number): boolean {
    return at >= this.#start && at + byteLength <= this.#start + this.#length
  }

  byte(at: number): number {
    return this.#bytes[at - this.#start]!
  }

  slice(at: number, byteLength: number): Uint8Array {
    return this.#bytes.subarray(at - this.#start, Math.min(at - this.#start + byteLength, this.#length))
  }

  /** The bytes in memory from `at` on: their offset in the piece, and their number. */
  rest(at: number): { readonly offset: number; readonly byteLength: number } {
    return { offset: at - this.#start, byteLength: this.#start + this.#length - at }
  }

  /** Reads the piece that begins at `at`. Bytes appended since the file was measured are ignored. */
  async load(at: number): Promise<void> {
    const end = this.#start + this.#length
    const isNext = this.#length > 0 && at > this.#start && at <= end + PIECE_BYTES
    if (isNext) this.#next = Math.min(2 * this.#next, mostOf(this.#store))
    this.#start = at
    this.#length = 0
    this.#piece = this.#view(Math.max(0, Math.min(isNext ? this.#next : PIECE_BYTES, this.byteLength - at)))
    this.#length = await this.#store.readInto(this.#path, at, this.#piece)
  }

  get #bytes(): Uint8Array {
    // A view of the core's memory is empty after that has grown.
    if (this.#piece.length === 0) this.#piece = this.#view(this.#length)
    return this.#piece
  }
}

/** The largest piece that is read at once from a store. */
export function mostOf(store: Store): number {
  return isRemote(store) ? REMOTE_PIECE_BYTES : LOCAL_PIECE_BYTES
}

function ownMemory(): (byteLength: number) => Uint8Array<ArrayBuffer> {
  let memory = new Uint8Array(PIECE_BYTES)
  return byteLength => {
    if (byteLength > memory.length) memory = new Uint8Array(byteLength)
    return memory.subarray(0, byteLength)
  }
}
