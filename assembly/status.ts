// Every way a record can be refused. The core speaks in these numbers; src/engine/status.ts turns them into sentences.
// EXPECTED and GOT of the record slot hold what each comment says.

export namespace Status {
  export const OK: i32 = 0
  /** The bytes end before the record does: bytes it needs, bytes there are. */
  export const TRUNCATED: i32 = 1
  /** The checksum of the length field: computed, stored. */
  export const BAD_LENGTH_CRC: i32 = 2
  /** The checksum of the payload: computed, stored. */
  export const BAD_PAYLOAD_CRC: i32 = 3
  /** The framed length, with its frame, against the length asked for: asked for, framed. */
  export const LENGTH_MISMATCH: i32 = 4
  /** The payload is not a well-formed Event. */
  export const MALFORMED_EVENT: i32 = 5
  /** The record holds another tensor than the one asked for. */
  export const TAG_MISMATCH: i32 = 6
  /** The record was saved at another global step: asked for, stored. */
  export const STEP_MISMATCH: i32 = 7
  /** A well-formed Event that holds no tensor. */
  export const NO_TENSOR: i32 = 8
  /** A data type we do not know: 0, its number. */
  export const UNKNOWN_DTYPE: i32 = 9
  /** Bytes or values against the shape: what the shape asks for, what is there. */
  export const SHAPE_MISMATCH: i32 = 10
  /** A negative dimension, too many dimensions, or more elements than 2^53: the limit, what is there. */
  export const BAD_SHAPE: i32 = 11
  /** The arena can't grow. */
  export const OUT_OF_MEMORY: i32 = 12
  /** The walk of a sparse record met the end of its head: bytes it needs to go on, bytes there are. */
  export const NEED_MORE: i32 = 13
  /** The walk of a sparse record needs the bytes behind its tensor_content. */
  export const NEED_TAIL: i32 = 14
}
