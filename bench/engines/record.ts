/** The input and output of `decode`. */

/** Framed records, and where the index file says they are. */
export interface Records {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly frames: readonly { readonly startByte: number; readonly byteLength: number }[]
  /** The records' tags. */
  readonly tags: readonly string[]
  /** The step of all of them. */
  readonly step: number
}

export interface Decoded {
  readonly dtype: string
  readonly shape: readonly number[]
  readonly data: Float32Array
}

/** Bytes as float32: where they lie, or a copy where they don't lie on a word's border. */
export function float32View(bytes: Uint8Array): Float32Array {
  const { buffer, byteOffset, length } = bytes.byteOffset % 4 === 0 ? bytes : new Uint8Array(bytes)
  return new Float32Array(buffer, byteOffset, length / 4)
}
