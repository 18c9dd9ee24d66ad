/** The interface of checkpoint formats: the tensors of a file, and the places of their elements. */

import type { FormatError } from '../../base/errors.js'
import type { DType, Mode, ReductionName } from '../../base/types.js'

/** A box of a tensor's elements in one file, as they lie there: little-endian. */
export interface Block {
  /** Path in the store. */
  readonly file: string
  /** Byte of the box's first element. */
  readonly start: number
  /** The offset of the box in the tensor along each axis. Default: 0. */
  readonly offsets?: readonly number[]
  /** Default: the tensor's. */
  readonly shape?: readonly number[]
  /** The distance of neighbours in the file along each axis, in elements, ≥ 0. Default: C order of the box. */
  readonly strides?: readonly number[]
}

/** A tensor of a checkpoint. */
export interface StoredTensor {
  readonly name: string
  readonly dtype: DType
  readonly shape: readonly number[]
  /** Blocks that cover the tensor; none for a tensor without elements, and for one that has `data`. */
  readonly blocks: readonly Block[]
  /** The elements in C order, for files that have them as text or as a number in a pickle. */
  readonly data?: Uint8Array
  /** Default: what the place of the file says. */
  readonly worker?: string
  /** Default: what the place of the file says. */
  readonly step?: number
  /** Default: GLOBAL. */
  readonly mode?: Mode
  /** Default: the step. */
  readonly modeStep?: number
  /** The place in the order of execution, where the file tells. Default: the natural order of names. */
  readonly order?: number
  /** True for a part of a tensor, at the offsets of its blocks: other files have the others. `shape` is that of the part. */
  readonly isPart?: boolean
  /** The name of the tensor that has the same elements, if this one is a view of it. */
  readonly aliasOf?: string
  /** Default: what its name says. */
  readonly collections?: readonly string[]
  /** Statistics that were saved beside its elements, which they can be held against. */
  readonly statistics?: ReadonlyMap<ReductionName, number>
}

/** A tensor that is there, but can't be read. */
export interface UnreadTensor {
  readonly name: string
  /** The dtype as the file spells it. */
  readonly dtype: string
  readonly shape?: readonly number[]
  readonly byteLength?: number
  readonly error: FormatError
}

/** The content of a file of tensors. */
export interface TensorFileContents {
  /** The tensors, in any order. */
  readonly tensors: readonly StoredTensor[]
  readonly unread: readonly UnreadTensor[]
  /** The problems of the file as a whole. */
  readonly problems: readonly FormatError[]
  /** Notes that are no faults. */
  readonly notes?: readonly string[]
  /** True if names are complete. Default: names of several files begin with those of their files, unless these are models. */
  readonly hasFullNames?: boolean
  /** Workers that save a file each at this step. Default: those that did. */
  readonly numWorkers?: number | null
  /** Facts to be shown as text: who wrote it, its version, arguments. Never trusted. */
  readonly metadata?: ReadonlyMap<string, string>
}

/** A file whose ranges can be read, on any store. */
export interface RangedFile {
  /** Path in the store. */
  readonly path: string
  /** The name in errors. */
  readonly url: string
  readonly byteLength: number
  /** Exactly these bytes, or fewer at the end of the file. They must not be changed. @throws StoreError */
  read(startByte: number, byteLength: number): Promise<Uint8Array>
}

/** The surroundings of a file, for formats of several files. */
export interface Surroundings {
  /** The paths of the whole checkpoint, sorted. */
  readonly paths: readonly string[]
  /** True to read the head of every chunk, of however many. Default: false. */
  readonly readsAll?: boolean
  /** Opens another file of the checkpoint. @throws StoreError */
  open(path: string): Promise<RangedFile>
}

/** A ZIP archive, alone in a file or among others: its members have a CRC-32. */
export interface ArchivePlace {
  readonly path: string
  readonly startByte: number
  /** Default: up to the end of the file. */
  readonly byteLength?: number
}

/** A format: a line in the table of formats.ts. */
export interface TensorFormat {
  /** The format's name in `ls`: `safetensors`. */
  readonly kind: string
  /** The language of what describes the tensors: JSON may have a key twice, a pickle may name code. Default: another. */
  readonly header?: 'json' | 'pickle'
  /**
   * Judges a path. `yes`: a file of this format, reported as broken if it is not. `perhaps`: a file of this format if its first bytes
   * agree. `part`: belongs to another file of this format, and is not read by itself.
   */
  byName(path: string): 'yes' | 'perhaps' | 'part' | 'no'
  /** The path of the file that says what is in a `part`. */
  indexOf?(part: string): string
  /** True if the first bytes of a file (up to `HEAD_BYTES`) are of this format. */
  matches(head: Uint8Array): boolean
  /** Reads by range, and never the elements of tensors. @throws FormatError, StoreError */
  read(file: RangedFile, around: Surroundings): Promise<TensorFileContents>
  /**
   * The archives that a file is, or describes. Default: none, and then nothing has a checksum. @throws FormatError, StoreError
   * @param list lists the paths in a directory
   */
  archives?(file: RangedFile, list: (directory: string) => Promise<readonly string[]>): Promise<readonly ArchivePlace[]>
}

/** The number of leading bytes that `TensorFormat.matches` sees. */
export const HEAD_BYTES = 512
