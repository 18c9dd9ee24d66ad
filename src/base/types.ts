/** The vocabulary that all modules share. */

declare const brand: unique symbol

/** The number of a step over all modes of a job. File names contain it. */
export type GlobalStep = number & { readonly [brand]: 'GlobalStep' }

/** The number of a step within its mode. */
export type ModeStep = number & { readonly [brand]: 'ModeStep' }

/** The mode of the training. GLOBAL means that the job set no mode; the mode step is the global step then. */
export type Mode = 'TRAIN' | 'EVAL' | 'PREDICT' | 'GLOBAL'

/** The modes, by their number in an event file's metadata (1 to 4); 0 means that none is stored. */
export const MODES: readonly Mode[] = ['TRAIN', 'EVAL', 'PREDICT', 'GLOBAL']

/** The modes as in smdebug: `modes.TRAIN`. */
export const modes = { TRAIN: 'TRAIN', EVAL: 'EVAL', PREDICT: 'PREDICT', GLOBAL: 'GLOBAL' } as const

/** The frameworks with their own names for tensors. */
export const FRAMEWORKS = ['pytorch', 'tensorflow', 'mxnet', 'xgboost', 'tfjs'] as const
export type Framework = (typeof FRAMEWORKS)[number]

/** A training process whose files are read: `worker_0`, `/replica:0/task:0/device:GPU:1`. */
export type Worker = string

/** The element type of a tensor. */
export type DType =
  | 'float16'
  | 'bfloat16'
  | 'float8_e4m3fn'
  | 'float8_e5m2'
  | 'float8_e4m3fnuz'
  | 'float8_e5m2fnuz'
  | 'float8_e8m0fnu'
  | 'float4_e2m1fn'
  | 'float32'
  | 'float64'
  | 'int8'
  | 'int16'
  | 'int32'
  | 'int64'
  | 'uint8'
  | 'uint16'
  | 'uint32'
  | 'uint64'
  | 'bool'
  | 'complex64'
  | 'complex128'
  | 'string'

/**
 * The checks of a record before it is used.
 * - `none`: the framed length must match the index file; no checksum is computed
 * - `minimal`: also the checksum of the length
 * - `full`: also the payload's checksum, which must be the true one or the constant that smdebug writes by default
 */
export type CheckLevel = 'none' | 'minimal' | 'full'

/** The check levels in the order of their numbers in the core. */
export const CHECK_LEVELS: readonly CheckLevel[] = ['none', 'minimal', 'full']

/** The nine reductions, as smdebug names them. */
export const REDUCTION_BASES = ['min', 'max', 'mean', 'std', 'variance', 'sum', 'prod', 'l1', 'l2'] as const
export type ReductionBase = (typeof REDUCTION_BASES)[number]

/** A reduction: one of the nine, of the values or (with `abs_`) of their absolute values. */
export type ReductionName = ReductionBase | `abs_${ReductionBase}`

/** All eighteen: the nine of the values, then those of the absolute values. */
export const REDUCTIONS: readonly ReductionName[] = [
  ...REDUCTION_BASES,
  ...REDUCTION_BASES.map((name): ReductionName => `abs_${name}`),
]

/** The reductions along an axis: all but products. */
export type AxisReductionName = Exclude<ReductionName, 'prod' | 'abs_prod'>

/** The counts of elements: all, NaN, infinite, zero. */
export const COUNTS = ['count', 'nan_count', 'inf_count', 'zero_count'] as const
export type CountName = (typeof COUNTS)[number]

/** The statistics that a row of moments has. */
export type MomentName = ReductionName | CountName

/** A percentile: `p50`, `p99.9`. */
export type PercentileName = `p${number}`

/** A histogram: `histogram` with 10 bins; `histogram:64` with 64; `histogram:-1:0:1` with these edges. */
export type HistogramName = 'histogram' | `histogram:${string}`

/** `sketch`: the distribution; `~p50`: an approximate percentile, from the sketch. */
export type SketchName = 'sketch' | `~p${number}`

/** The digests of a tensor's elements: of their bytes, little-endian and in C order, whatever the file. */
export const DIGESTS = ['crc32c', 'sha256'] as const
export type DigestName = (typeof DIGESTS)[number]

/** All statistics of a tensor's elements. */
export type StatisticName = MomentName | PercentileName | HistogramName | SketchName | DigestName
