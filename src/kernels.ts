/** The core for one's own numbers, alone: re-exports only. `trialscan/kernels`; it loads neither trials nor stores nor threads. */

export {
  EngineError,
  type ErrorData,
  FormatError,
  QueryError,
  ReductionUndefined,
  ThreadError,
  TrialscanError,
  UsageError,
} from './base/errors.js'
export {
  type AxisReductionName,
  type CheckLevel,
  type CountName,
  type DType,
  type Mode,
  type MomentName,
  REDUCTIONS,
  type ReductionBase,
  type ReductionName,
} from './base/types.js'
export {
  type Complex,
  type ExactExtremes,
  Moments,
  mergeMoments,
  momentsOf,
  type ReductionValue,
} from './core/moments.js'
export type { ElementHistogram } from './core/statistics/distribution.js'
export { Distribution, type DistributionData } from './core/statistics/distribution.js'
export { type ArrayOf, allocate } from './kernels/allocate.js'
export { along } from './kernels/along.js'
export { type ArrayEngine, createEngine, type EngineOptions, type MomentsOfOptions } from './kernels/array-engine.js'
export { type BytesInput, crc32c, crc32cCombine, maskedCrc32c } from './kernels/checksum.js'
export { allclose, type Difference, difference } from './kernels/compare.js'
export { distribution } from './kernels/distribution.js'
export type { ArrayInput, StridedArray } from './kernels/elements.js'
export { type DecodedEvent, decodeEvent, type EventValue } from './kernels/event.js'
export { moments, reduce } from './kernels/moments.js'
export type { ReducedArray } from './kernels/pool.js'
export { histogram, percentiles } from './kernels/statistics.js'
export { readTFRecords, type TFRecord, type TFRecordOptions } from './kernels/tfrecord.js'
export type { Tolerance } from './scan/job/tensor/allclose.js'
export type { NumericArray, TensorData } from './scan/job/tensor/data.js'
