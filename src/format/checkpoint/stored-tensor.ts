/** What every format of checkpoints answers: which tensors a file holds, and where their elements lie. */

import type { FormatError } from '../../base/errors.js'
import type { DType } from '../../base/types.js'

/** A box of a tensor's elements in one file, as they lie there: little-endian. */
export interface Block {
  /** Path in the store. */
  readonly file: string
  /** Byte of the box's first element. */
  readonly start: number
  /** Where the box begins in the tensor, along each axis. Default: at its first element. */
  readonly offsets?: readonly number[]
  /** Default: the tensor's. */
  readonly shape?: readonly number[]
  /** How far apart neighbours are in the file along each axis, in elements, ≥ 0. Default: C order of the box. */
  readonly strides?: readonly number[]
}

/** A tensor of a checkpoint. */
export interface StoredTensor {
  readonly name: string
  readonly dtype: DType
  readonly shape: readonly number[]
  /** They cover the tensor; none for one without elements, and for one that has `data`. */
  readonly blocks: readonly Block[]
  /** Its elements in C order, where a file has them as text or as a number of a pickle. */
  readonly data?: Uint8Array
  /** Default: what the place of the file says. */
  readonly worker?: string
  /** Default: what the place of the file says. */
  readonly step?: number
  /** The place in the order of execution, where the file tells. Default: the natural order of names. */
  readonly order?: number
  /** Only a part of a tensor, at the offsets of its blocks: other files have the others. `shape` is that of the part. */
  readonly isPart?: boolean
  /** The name of the tensor that has the same elements, if this one is a view of it. */
  readonly aliasOf?: string
  /** Default: what its name says. */
  readonly collections?: readonly string[]
}

/** A tensor that is there, but can't be read. */
export interface UnreadTensor {
  readonly name: string
  /** As the file has it. */
  readonly dtype: string
  readonly shape?: readonly number[]
  readonly byteLength?: number
  readonly error: FormatError
}

/** What is in a file of tensors. */
export interface TensorFileContents {
  /** In any order. */
  readonly tensors: readonly StoredTensor[]
  readonly unread: readonly UnreadTensor[]
  /** What is wrong with the file as a whole. */
  readonly problems: readonly FormatError[]
  /** Facts to be shown as text: who wrote it, its version, arguments. Never trusted. */
  readonly metadata?: ReadonlyMap<string, string>
}

/** A file whose ranges can be read, on any store. */
export interface RangedFile {
  /** Path in the store. */
  readonly path: string
  /** What errors call it. */
  readonly url: string
  readonly byteLength: number
  /** Exactly these bytes, or fewer at the end of the file. The caller may change them. @throws StoreError */
  read(startByte: number, byteLength: number): Promise<Uint8Array>
}

/** Where a file lies, for formats that are more than one. */
export interface Surroundings {
  /** All paths of the checkpoint that is read, sorted. */
  readonly paths: readonly string[]
  /** Another file. @throws StoreError */
  open(path: string): Promise<RangedFile>
}

/** A format: a line in the table of formats.ts. */
export interface TensorFormat {
  /** As `ls` shows it: `safetensors`. */
  readonly kind: string
  /**
   * What a path says. `yes`: a file of this format, which is told as broken if it is not. `perhaps`: one if its first
   * bytes say so, too. `part`: belongs to another file of this format, and is not read by itself.
   */
  byName(path: string): 'yes' | 'perhaps' | 'part' | 'no'
  /** Whether the first bytes of a file, up to `HEAD_BYTES` of them, are those of this format. */
  matches(head: Uint8Array): boolean
  /** Reads by range, and never the elements of tensors. @throws FormatError, StoreError */
  read(file: RangedFile, around: Surroundings): Promise<TensorFileContents>
}

/** As many bytes as `TensorFormat.matches` sees of a longer file. */
export const HEAD_BYTES = 512
