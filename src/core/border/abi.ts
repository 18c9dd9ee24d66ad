/**
 * The meaning of the numbers that cross the border to WebAssembly: offsets in structs, statuses, bits, kinds. Both the
 * TypeScript and the AssemblyScript compiler read this file, so there is no second copy. Hence it holds only enums and
 * integers, and imports nothing.
 */

/** Elements the core reduces as one block: cutting a tensor at multiples of this changes no bit of its moments. */
export const BLOCK_ELEMENTS = 4096

/** Elements that the small kernels widen at once; they fit into the L1 cache, even complex ones. */
export const WIDENED_ELEMENTS = 1024

/** TensorFlow allows no more dimensions. */
export const MAX_DIMENSIONS = 254

/**
 * Bytes of a sketch of 64-bit types, which any other can be in, and of other types alone: 16, and 16 for each of 2^17 or 2^14 keys. See
 * assembly/kernel/sketch.ts.
 */
export const WIDE_SKETCH_BYTES = 0x200010
export const NARROW_SKETCH_BYTES = 0x40010

/** The table of powers of ten: its first exponent, and how many there are, of 16 bytes each. See assembly/decimal.ts. */
export const FIRST_POWER = -292
export const POWER_COUNT = 617

/** Numbers of data types are less. */
export const DTYPE_NUMBERS = 64

/** The most bytes that a number takes as text, as `-0.0000012345678901234567` does. */
export const NUMBER_BYTES = 25

/** Writing a text may overwrite this many bytes after it. */
export const TEXT_SLACK = 32

/** Bytes that snappy needs to remember where it has seen what. */
export const SNAPPY_TABLE_BYTES = 0x8000

/** The checks of a record besides its lengths: none, the header's checksum, or the payload's as well. */
export enum CheckLevelNumber {
  none = 0,
  minimal = 1,
  full = 2,
}

/** Every reason for refusing a record. Each comment says what `expected` and `got` of the record slot hold. */
export enum Status {
  ok = 0,
  /** The bytes end before the record does: bytes needed, bytes available. */
  truncated = 1,
  /** The checksum of the length field: computed, stored. */
  badLengthCrc = 2,
  /** The checksum of the payload: computed, stored. */
  badPayloadCrc = 3,
  /** The record's length, framing included, is not the one asked for: asked for, found. */
  lengthMismatch = 4,
  /** The payload is not a well-formed Event. */
  malformedEvent = 5,
  /** The record holds another tensor than the one asked for. */
  tagMismatch = 6,
  /** The record was saved at another global step: asked for, stored. */
  stepMismatch = 7,
  /** A well-formed Event that holds no tensor. */
  noTensor = 8,
  /** A data type we do not know: 0, its number. */
  unknownDType = 9,
  /** The number of bytes or values contradicts the shape: by the shape, found. */
  shapeMismatch = 10,
  /** A negative dimension, too many dimensions, or more elements than 2^53: the limit, found. */
  badShape = 11,
  /** The arena can't grow. */
  outOfMemory = 12,
  /** The walk of a sparse record met the end of its head: bytes needed, bytes available. */
  needMore = 13,
  /** The walk of a sparse record needs the bytes after its tensor_content. */
  needTail = 14,
}

/** Data types by TensorFlow's numbers. */
export enum DTypeNumber {
  float32 = 1,
  float64 = 2,
  int32 = 3,
  uint8 = 4,
  int16 = 5,
  int8 = 6,
  string = 7,
  complex64 = 8,
  int64 = 9,
  bool = 10,
  bfloat16 = 14,
  uint16 = 17,
  complex128 = 18,
  float16 = 19,
  uint32 = 22,
  uint64 = 23,
  float8_e5m2 = 24,
  float8_e4m3fn = 25,
  float8_e4m3fnuz = 26,
  float8_e5m2fnuz = 28,
  // TensorFlow has no numbers for these: they are our own.
  float8_e8m0fnu = 62,
  float4_e2m1fn = 63,
}

/** Bits per element of each data type. Elements of four bits lie two in a byte, the first one in the lower half. */
export enum ElementBits {
  string = 0,
  float4_e2m1fn = 4,
  uint8 = 8,
  // biome-ignore lint/suspicious/noDuplicateEnumValues: many types are of one length
  int8 = 8,
  bool = 8,
  float8_e4m3fn = 8,
  float8_e5m2 = 8,
  float8_e4m3fnuz = 8,
  float8_e5m2fnuz = 8,
  float8_e8m0fnu = 8,
  int16 = 16,
  uint16 = 16,
  float16 = 16,
  bfloat16 = 16,
  float32 = 32,
  int32 = 32,
  uint32 = 32,
  float64 = 64,
  int64 = 64,
  uint64 = 64,
  complex64 = 64,
  complex128 = 128,
}

/**
 * A record slot: TypeScript fills in what it asks for, the core what it found. Lengths and offsets are in bytes.
 * Pointers are 0 where there is nothing to point to.
 */
export enum RecordSlot {
  // Asked for.
  /** u32: address of the framed TFRecord. */
  frame = 0,
  /** u32: bytes available from there on. */
  frameLength = 4,
  /** u32: the record's length according to the index file, framing included; 0 = unknown. */
  askedLength = 8,
  /** u32: address of the tag the record must have, in UTF-8; 0 = any. */
  askedTag = 12,
  /** u32 */
  askedTagLength = 16,
  /** u32: 1 = the trial is Tornasole's, which labelled float16 as int32: two bytes per element give it away. */
  askedTornasole = 20,
  /** f64: the step the Event must have; negative = any. */
  askedStep = 24,

  // Found.
  /** i32: one of Status. */
  status = 32,
  /** u32: offset of the fault from the start of the frame. */
  faultOffset = 36,
  /** f64: see Status. */
  expected = 40,
  /** f64 */
  got = 48,
  /** i32: 1 TRAIN, 2 EVAL, 3 PREDICT, 4 GLOBAL; 0 = not stored. */
  mode = 56,
  /** i32: TensorFlow's number of the data type. Strings have theirs even if the hook left it 0. */
  dtype = 60,
  /** f64: -1 = not stored. */
  modeStep = 64,
  /** f64: the Event's own step, which smdebug makes the global step. */
  eventStep = 72,
  /** u32 */
  tag = 80,
  /** u32 */
  tagLength = 84,
  /** u32: address of the f64 dimensions. */
  dims = 88,
  /** u32: how many there are. */
  rank = 92,
  /** f64: product of the dimensions. */
  elementCount = 96,
  /** i32: one of Placement. */
  placement = 104,
  /** u32: how many values are stored one by one; if fewer than elementCount, the last one is repeated. */
  valueCount = 108,
  /** u32: address of the elements (Placement.content). */
  data = 112,
  /** u32 */
  dataLength = 116,
  /** u32: offset of the elements from the start of the frame. */
  dataOffset = 120,
  /** u32: address of the Value, for reading values one by one. */
  value = 124,
  /** u32 */
  valueLength = 128,
  /** u32: how far readValues or readString has read in the Value. */
  cursor = 132,
  /** u32: where the TensorProto at the cursor ends; at or before the cursor if it is in none. */
  tensorEnd = 136,
  /** u32: where the packed run at the cursor ends; at or before the cursor if it is in none. */
  packedEnd = 140,
  /** i32, surveys only: one of ValueKind. */
  valueKind = 144,
  /** i32, surveys only: one of Status, for the record as a whole: its payload's checksum, and whether it is an Event. */
  recordStatus = 148,
  /** f64: when the Event was written, in seconds since 1970; 0: it does not say. */
  wallTime = 152,
  size = 160,
}

/** The content of a Value. */
export enum ValueKind {
  /** No Value: a record without one still has a slot. */
  noValue = 0,
  /** Something we don't read: an image, a text of another kind. */
  other = 1,
  /** A tensor, or a simple_value. */
  tensor = 2,
  histogram = 3,
}

/** The storage of a tensor's elements. */
export enum Placement {
  none = 0,
  /** In one piece at RecordSlot.data: tensor_content, or a simple_value. */
  content = 1,
  /** One by one in a `*_val` field: readValues. */
  values = 2,
  /** string_val: readString. */
  strings = 3,
}

/**
 * A row of moments: everything a reduction needs to know about a run of elements. 34 numbers of 8 bytes, float64 unless
 * stated otherwise.
 *
 * Sums, means, squares and the product are over the *finite* elements (count − nan − +inf − −inf of them). The counts
 * decide the rest: any NaN makes every reduction NaN, as in numpy. An extreme float64 tensor (see assembly/kernel/moments/) is
 * summed in units of 2^exponent, so that neither squares nor sums leave the range.
 *
 * Complex tensors: "absolute" numbers are of |z|; sum, mean and m2 are of the real part, the *Imaginary ones of the
 * imaginary part; min and max have no meaning.
 */
export enum MomentsRow {
  // Of every row.
  count = 0,
  nanCount = 8,
  positiveInfinityCount = 16,
  negativeInfinityCount = 24,

  // KnownMoments.extremes
  zeroCount = 32,
  /** Over all elements but NaN, infinities included; +Infinity if there are none. */
  min = 40,
  /** Over all elements but NaN; -Infinity if there are none. */
  max = 48,
  minAbs = 56,
  maxAbs = 64,
  /** int64 and uint64 only: the exact minimum and maximum, as int64 or uint64 bits. */
  minExact = 72,
  maxExact = 80,
  /** int64 and uint64 only: of the absolute values, as uint64 bits. */
  minAbsExact = 88,
  maxAbsExact = 96,

  // KnownMoments.sum, and those of absolute values KnownMoments.sumAbs.
  /** A whole number, 0 unless the elements are extreme. */
  exponent = 104,
  /** Σx · 2^−exponent */
  sum = 112,
  /** Σ|x| · 2^−exponent */
  sumAbs = 120,
  sumImaginary = 128,
  /** Mean of x · 2^−exponent. The distance from a sum to its mean is always the same, as it is in the groups below. */
  mean = 136,
  meanAbs = 144,
  meanImaginary = 152,
  /**
   * The rounding errors of the sums and means above, for merging only: sum + sumLow is right to 106 bits. Without them,
   * a mean of timestamps in nanoseconds would come in steps of 256.
   */
  sumLow = 160,
  sumAbsLow = 168,
  sumImaginaryLow = 176,
  meanLow = 184,
  meanAbsLow = 192,
  meanImaginaryLow = 200,

  // KnownMoments.squares, and m2Abs KnownMoments.sumAbs.
  /** Σ(x − mean)² · 2^−2·exponent */
  m2 = 208,
  m2Abs = 216,
  m2Imaginary = 224,
  /** Σx² · 2^−2·exponent */
  sumSquares = 232,
  sumSquaresLow = 240,
  // KnownMoments.product
  /** Product = prodMantissa · 2^prodExponent, 1 ≤ |mantissa| < 2; ±0 when a zero is among the factors. */
  prodMantissa = 248,
  prodExponent = 256,

  /** Bits of KnownMoments: which numbers are known. The others are NaN. */
  known = 264,
  size = 272,
}

/**
 * The moments of a row that are asked for, or known: bits. Every row knows how many elements there are, and how many
 * of them are NaN or infinite. A row may know more than was asked for. For the cost of each, see
 * assembly/kernel/moments/moments.ts.
 */
export enum KnownMoments {
  none = 0,
  /** Extremes, and the number of zeros. */
  extremes = 1,
  /** Σx and the mean. */
  sum = 2,
  /** Σ|x| and its mean. */
  sumAbs = 4,
  /** Σx², and the squares around the mean for every known sum. */
  squares = 8,
  product = 16,
  all = 31,
}

/**
 * The difference of two tensors: numbers of 8 bytes, all float64 (assembly/kernel/pairs/compare.ts). NaN wherever a NaN has met a number.
 */
export enum DifferenceRow {
  /** Pairs compared. */
  count = 0,
  unequalCount = 8,
  /** Index of the first unequal pair; -1 if there is none. */
  firstUnequal = 16,
  /** The largest |a − b|, and the largest |a − b| / |b|. */
  maxAbsolute = 24,
  maxRelative = 32,
  /** The largest distance in units of the last place, for two tensors of one float type, pairs with NaN aside. */
  maxUlps = 40,
  /** Σab, Σa² and Σb², of scaled elements. */
  dot = 48,
  squaresA = 56,
  squaresB = 64,
  /** Σ|a − b| */
  sumAbsolute = 72,
  /** Index of the first pair of the block of WIDENED_ELEMENTS in which maxAbsolute is; without meaning where that is 0. */
  largestBlock = 80,
  /** The number of elements that are not close, as far as they were counted. */
  beyondCount = 88,
  /** Σ(a − b)², of elements scaled as those of a are. */
  squaresApart = 96,
  size = 104,
}

/** The error of quantised weights, besides the sums of blocks: all float64 (assembly/kernel/pairs/quantised.ts). */
export enum QuantisedRow {
  /** Σab and Σb² of finite pairs. */
  dot = 0,
  squaresB = 8,
  maxAbsolute = 16,
  /** The number of elements at the largest number of their type, and of pairs that are not finite. */
  saturated = 24,
  notFinite = 32,
  size = 40,
}

/** The fold of the elements of a line (assembly/kernel/along.ts). */
export enum AxisFold {
  sum = 0,
  /** Σ(x − mean)² */
  squares = 1,
  min = 2,
  max = 3,
}

/** A text in the core's memory; both fields are u32. */
export enum TextPiece {
  address = 0,
  byteLength = 4,
  size = 8,
}

/** The columns of a job's records, an entry for each: addresses, u32. */
export enum RecordColumn {
  /** i32: the records as they lie in the files; 0 for the address: they are in that order. */
  order = 0,
  /** i32: index into the tags; negative: any. */
  tag = 4,
  /** f64 */
  startByte = 8,
  /** f64 */
  byteLength = 12,
  /** f64 */
  step = 16,
  /** u8 */
  tornasole = 20,
  /** TextPieces */
  tags = 24,
  size = 28,
}

/** The format of lines; all fields are u32. */
export enum TextFormat {
  /** Address of a TextPiece for each tag: what a line begins with. */
  names = 0,
  /** Address of one for each number of a data type: what stands before the shape. */
  dtypes = 4,
  /** Address of what stands before that, which the lines share. */
  place = 8,
  placeLength = 12,
  /** Address and number of TextColumns. */
  columns = 16,
  columnCount = 20,
  /** Address of what each line ends with. */
  end = 24,
  endLength = 28,
  /** 1: JSON; 0: CSV. */
  isJson = 32,
  /** The most bytes that the columns and the end of a line take. */
  restLength = 36,
  size = 40,
}

/** A number in each line, or in a column, which has no label; all fields are u32. */
export enum TextColumn {
  /** Address and byte length of the text before the number. */
  label = 0,
  /** The number of MomentsRow it is made from, and one of NumberForm: how. */
  slot = 8,
  form = 12,
  size = 16,
}

/** The way from a row of moments to a reduction. */
export enum NumberForm {
  /** The slot's number. */
  slot = 0,
  /** √x */
  root = 1,
  /** x / count, but not less than 0. */
  perCount = 2,
  /** √ of perCount. */
  rootPerCount = 3,
  /** x · 2^prodExponent */
  product = 4,
  absProduct = 5,
}
