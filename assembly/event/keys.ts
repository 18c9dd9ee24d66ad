// The keys of the fields we read: number << 3 | wire type.

import { FIXED32, FIXED64, LENGTH_DELIMITED, VARINT } from '../wire'

export const EVENT_WALL_TIME: u32 = (1 << 3) | FIXED64
export const EVENT_STEP: u32 = (2 << 3) | VARINT
export const EVENT_SUMMARY: u32 = (5 << 3) | LENGTH_DELIMITED
export const SUMMARY_VALUE: u32 = (1 << 3) | LENGTH_DELIMITED
export const VALUE_TAG: u32 = (1 << 3) | LENGTH_DELIMITED
export const VALUE_SIMPLE: u32 = (2 << 3) | FIXED32
export const VALUE_HISTOGRAM: u32 = (5 << 3) | LENGTH_DELIMITED
export const VALUE_TENSOR: u32 = (8 << 3) | LENGTH_DELIMITED
export const VALUE_METADATA: u32 = (9 << 3) | LENGTH_DELIMITED
export const METADATA_PLUGIN: u32 = (1 << 3) | LENGTH_DELIMITED
export const PLUGIN_NAME: u32 = (1 << 3) | LENGTH_DELIMITED
export const PLUGIN_CONTENT: u32 = (2 << 3) | LENGTH_DELIMITED
export const TENSOR_DTYPE: u32 = (1 << 3) | VARINT
export const TENSOR_SHAPE: u32 = (2 << 3) | LENGTH_DELIMITED
export const TENSOR_CONTENT: u32 = (4 << 3) | LENGTH_DELIMITED
export const TENSOR_STRING: u32 = (8 << 3) | LENGTH_DELIMITED
export const SHAPE_DIM: u32 = (2 << 3) | LENGTH_DELIMITED
export const DIM_SIZE: u32 = (1 << 3) | VARINT
export const DIM_NAME: u32 = (2 << 3) | LENGTH_DELIMITED
