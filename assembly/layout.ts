// The structs that TypeScript reads. Offsets and sizes are exported by index.ts, so that src/engine/layout.ts asks the
// module and no second copy has to be kept in step.

/**
 * Moments: everything a reduction needs, of a run of elements. 34 slots of 8 bytes, float64 unless said otherwise.
 *
 * Sums, means, squares and the product are over the *finite* elements (count − nan − +inf − −inf of them); the
 * counts tell the reader how to continue: any NaN makes every reduction NaN, as in numpy. An extreme float64 tensor
 * (see kernel/moments.ts) is summed in units of 2^exponent, so that neither squares nor sums leave the range.
 *
 * Complex tensors: "absolute" slots are of |z|; sum, mean and m2 of the real part, the *Imaginary slots of the
 * imaginary part; min and max have no meaning.
 */
export namespace Moments {
  // Of every row.
  export const COUNT: usize = 0
  export const NAN_COUNT: usize = 8
  export const POSITIVE_INFINITY_COUNT: usize = 16
  export const NEGATIVE_INFINITY_COUNT: usize = 24

  // Known.EXTREMES
  export const ZERO_COUNT: usize = 32
  /** Over all elements but NaN, infinities included; +Infinity of none. */
  export const MIN: usize = 40
  /** Likewise; -Infinity of none. */
  export const MAX: usize = 48
  export const MIN_ABS: usize = 56
  export const MAX_ABS: usize = 64
  /** int64 and uint64 only: the exact minimum and maximum, as int64 resp. uint64 bits. */
  export const MIN_EXACT: usize = 72
  export const MAX_EXACT: usize = 80
  /** int64 and uint64 only: of the absolute values, as uint64 bits. */
  export const MIN_ABS_EXACT: usize = 88
  export const MAX_ABS_EXACT: usize = 96

  // Known.SUM, and those of absolute values Known.SUM_ABS.
  /** A whole number, 0 unless the elements are extreme. */
  export const EXPONENT: usize = 104
  /** Σx · 2^−exponent */
  export const SUM: usize = 112
  /** Σ|x| · 2^−exponent */
  export const SUM_ABS: usize = 120
  export const SUM_IMAGINARY: usize = 128
  /** Mean of x · 2^−exponent. As far from SUM as the other means from their sums, and so on below. */
  export const MEAN: usize = 136
  export const MEAN_ABS: usize = 144
  export const MEAN_IMAGINARY: usize = 152
  /**
   * What rounding took from the sums and means above, SUM + SUM_LOW being right to 106 bits: for merging only. A mean of
   * time stamps in nanoseconds has steps of 256 without.
   */
  export const SUM_LOW: usize = 160
  export const SUM_ABS_LOW: usize = 168
  export const SUM_IMAGINARY_LOW: usize = 176
  export const MEAN_LOW: usize = 184
  export const MEAN_ABS_LOW: usize = 192
  export const MEAN_IMAGINARY_LOW: usize = 200

  // Known.SQUARES, and M2_ABS Known.SUM_ABS.
  /** Σ(x − mean)² · 2^−2·exponent */
  export const M2: usize = 208
  export const M2_ABS: usize = 216
  export const M2_IMAGINARY: usize = 224
  /** Σx² · 2^−2·exponent */
  export const SUM_SQUARES: usize = 232
  export const SUM_SQUARES_LOW: usize = 240
  // Known.PRODUCT
  /** Product = PROD_MANTISSA · 2^PROD_EXPONENT, 1 ≤ |mantissa| < 2; ±0 when a zero is among the factors. */
  export const PROD_MANTISSA: usize = 248
  export const PROD_EXPONENT: usize = 256

  /** Bits of Known: which slots are told. The others are NaN, so that nobody takes them for numbers. */
  export const KNOWN: usize = 264
  export const SIZE: usize = 272
}

/** How much of a row is asked for, or told: bits. What each costs: kernel/moments.ts. */
export namespace Known {
  /** Extremes, and how many zeros. */
  export const EXTREMES: i32 = 1
  /** Σx and the mean. */
  export const SUM: i32 = 2
  /** Σ|x| and its mean. */
  export const SUM_ABS: i32 = 4
  /** Σx², and of what there are sums, the squares around the mean. */
  export const SQUARES: i32 = 8
  export const PRODUCT: i32 = 16
  export const ALL: i32 = 31
}

/**
 * A record slot: TypeScript fills in what it asks for, the core what it found. Lengths and offsets are in bytes.
 * Pointers are 0 where there is nothing to point to.
 */
export namespace Slot {
  // Asked for.
  /** u32: address of the framed TFRecord. */
  export const FRAME: usize = 0
  /** u32: bytes there are from FRAME on. */
  export const FRAME_LENGTH: usize = 4
  /** u32: bytes the index file promises, framing included; 0 = not told. */
  export const ASKED_LENGTH: usize = 8
  /** u32: address of the tag the record must have, in UTF-8; 0 = any. */
  export const ASKED_TAG: usize = 12
  /** u32 */
  export const ASKED_TAG_LENGTH: usize = 16
  /** u32: 1 = the record is Tornasole's, which called float16 int32: two bytes an element betray it. */
  export const ASKED_TORNASOLE: usize = 20
  /** f64: the step the Event must have; negative = any. */
  export const ASKED_STEP: usize = 24

  // Found.
  /** i32: one of Status. */
  export const STATUS: usize = 32
  /** u32: where the fault shows, from FRAME on. */
  export const FAULT_OFFSET: usize = 36
  /** f64: what the comment of the status says. */
  export const EXPECTED: usize = 40
  /** f64 */
  export const GOT: usize = 48
  /** i32: 1 TRAIN, 2 EVAL, 3 PREDICT, 4 GLOBAL; 0 = not told. */
  export const MODE: usize = 56
  /** i32: TensorFlow's number of the data type; 7 (string) also where the hook left it 0. */
  export const DTYPE: usize = 60
  /** f64: -1 = not told. */
  export const MODE_STEP: usize = 64
  /** f64: the Event's own step, which smdebug makes the global step. */
  export const EVENT_STEP: usize = 72
  /** f64: seconds since 1970. */
  export const WALL_TIME: usize = 80
  /** u32 */
  export const TAG: usize = 88
  /** u32 */
  export const TAG_LENGTH: usize = 92
  /** u32: address of RANK f64 dimensions. */
  export const DIMS: usize = 96
  /** u32 */
  export const RANK: usize = 100
  /** f64: product of the dimensions. */
  export const ELEMENT_COUNT: usize = 104
  /** i32: one of Kind. */
  export const KIND: usize = 112
  /** u32: how many values there are one by one; fewer than ELEMENT_COUNT: the last one stands for the rest. */
  export const VALUE_COUNT: usize = 116
  /** u32: address of the elements (KIND CONTENT). */
  export const DATA: usize = 120
  /** u32 */
  export const DATA_LENGTH: usize = 124
  /** u32: where the elements begin, from FRAME on. */
  export const DATA_OFFSET: usize = 128
  /** u32: address of the Value, in whose TensorProto values lie one by one. */
  export const VALUE: usize = 132
  /** u32 */
  export const VALUE_LENGTH: usize = 136
  /** u32: how far readValues or readString has come in the Value. */
  export const CURSOR: usize = 140
  /** u32: where the TensorProto at CURSOR ends; not beyond CURSOR if it is in none. */
  export const TENSOR_END: usize = 144
  /** u32: where the packed run at CURSOR ends; not beyond CURSOR if it is in none. */
  export const PACKED_END: usize = 148
  /** i32, of a survey: one of Holds. */
  export const HOLDS: usize = 152
  /** i32, of a survey: one of Status, of the record as a whole: its payload's checksum, and whether it is an Event. */
  export const RECORD_STATUS: usize = 156
  export const SIZE: usize = 160
}

/** What a Value holds. */
export namespace Holds {
  /** There is no Value: a record without one still has a slot. */
  export const NO_VALUE: i32 = 0
  /** Nothing that we read: an image, a text of another kind. */
  export const OTHER: i32 = 1
  /** A tensor, or a simple_value. */
  export const TENSOR: i32 = 2
  export const HISTOGRAM: i32 = 3
}

/** Where the elements of a tensor lie. */
export namespace Kind {
  export const NONE: i32 = 0
  /** In one piece at DATA: tensor_content, or a simple_value. */
  export const CONTENT: i32 = 1
  /** One by one in a `*_val` field: readValues. */
  export const VALUES: i32 = 2
  /** string_val: readString. */
  export const STRINGS: i32 = 3
}

/** A line to be written from a row of moments; all u32. */
export namespace Line {
  /** Address of the row. */
  export const ROW: usize = 0
  /** Three times address and byte length. */
  export const PIECES: usize = 4
  export const SIZE: usize = 28
}

/** A number of each line; all u32. */
export namespace Column {
  /** Address and byte length of what stands before it. */
  export const LABEL: usize = 0
  /** The slot of Moments it is made from, and how: one of Form. */
  export const SLOT: usize = 8
  export const FORM: usize = 12
  export const SIZE: usize = 16
}

/** How a number is made from a slot of moments. */
export namespace Form {
  /** As it is. */
  export const SLOT: i32 = 0
  /** √x */
  export const ROOT: i32 = 1
  /** x / count, and not less than 0. */
  export const PER_COUNT: i32 = 2
  /** The root of that. */
  export const ROOT_PER_COUNT: i32 = 3
  /** x · 2^PROD_EXPONENT */
  export const PRODUCT: i32 = 4
  export const ABS_PRODUCT: i32 = 5
}
