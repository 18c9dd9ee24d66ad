// The ABI: the full list of what TypeScript may call or read, and nothing else.

import { Column, Form, Holds, Kind, Known, Line, Moments, Slot } from './layout'
import { UNCHECKED } from './tfrecord'

export { arenaMark, arenaRelease, arenaReserve, arenaReset } from './arena'
export { crc32c, crc32cCombine, crc32cOfLength, mask, unmask } from './crc32c'
export { NUMBER_BYTES, POWERS } from './decimal'
export { readString, readValues, survey, surveyRest, walkSparse } from './event'
export { allclose } from './kernel/allclose'
export { sumChannels } from './kernel/channels'
export { countBelow, countEqual, countInside } from './kernel/count'
export { absDifference } from './kernel/difference'
export { widenToFloat32 } from './kernel/lanes'
export { momentsAdd, momentsRepeat } from './kernel/moments'
export { momentsMerge, momentsReset } from './kernel/row'
export { selectFloat32, selectKth, selectRoom, widenToDoubles } from './kernel/order'
export { writeLines } from './lines'
export { decodeRecords, reduceRecord, scanRecords, surveyRecords } from './record'
export { checkHeader, checkPayload, findFrame } from './tfrecord'

export const MOMENTS_COUNT: i32 = <i32>Moments.COUNT
export const MOMENTS_NAN_COUNT: i32 = <i32>Moments.NAN_COUNT
export const MOMENTS_POSITIVE_INFINITY_COUNT: i32 = <i32>Moments.POSITIVE_INFINITY_COUNT
export const MOMENTS_NEGATIVE_INFINITY_COUNT: i32 = <i32>Moments.NEGATIVE_INFINITY_COUNT
export const MOMENTS_ZERO_COUNT: i32 = <i32>Moments.ZERO_COUNT
export const MOMENTS_MIN: i32 = <i32>Moments.MIN
export const MOMENTS_MAX: i32 = <i32>Moments.MAX
export const MOMENTS_MIN_ABS: i32 = <i32>Moments.MIN_ABS
export const MOMENTS_MAX_ABS: i32 = <i32>Moments.MAX_ABS
export const MOMENTS_SUM: i32 = <i32>Moments.SUM
export const MOMENTS_SUM_ABS: i32 = <i32>Moments.SUM_ABS
export const MOMENTS_MEAN: i32 = <i32>Moments.MEAN
export const MOMENTS_M2: i32 = <i32>Moments.M2
export const MOMENTS_MEAN_ABS: i32 = <i32>Moments.MEAN_ABS
export const MOMENTS_M2_ABS: i32 = <i32>Moments.M2_ABS
export const MOMENTS_SUM_SQUARES: i32 = <i32>Moments.SUM_SQUARES
export const MOMENTS_EXPONENT: i32 = <i32>Moments.EXPONENT
export const MOMENTS_PROD_MANTISSA: i32 = <i32>Moments.PROD_MANTISSA
export const MOMENTS_PROD_EXPONENT: i32 = <i32>Moments.PROD_EXPONENT
export const MOMENTS_MIN_EXACT: i32 = <i32>Moments.MIN_EXACT
export const MOMENTS_MAX_EXACT: i32 = <i32>Moments.MAX_EXACT
export const MOMENTS_MIN_ABS_EXACT: i32 = <i32>Moments.MIN_ABS_EXACT
export const MOMENTS_MAX_ABS_EXACT: i32 = <i32>Moments.MAX_ABS_EXACT
export const MOMENTS_SUM_IMAGINARY: i32 = <i32>Moments.SUM_IMAGINARY
export const MOMENTS_MEAN_IMAGINARY: i32 = <i32>Moments.MEAN_IMAGINARY
export const MOMENTS_M2_IMAGINARY: i32 = <i32>Moments.M2_IMAGINARY
export const MOMENTS_KNOWN: i32 = <i32>Moments.KNOWN
export const MOMENTS_SIZE: i32 = <i32>Moments.SIZE
export const KNOWN_EXTREMES: i32 = Known.EXTREMES
export const KNOWN_SUM: i32 = Known.SUM
export const KNOWN_SUM_ABS: i32 = Known.SUM_ABS
export const KNOWN_SQUARES: i32 = Known.SQUARES
export const KNOWN_PRODUCT: i32 = Known.PRODUCT
export const KNOWN_ALL: i32 = Known.ALL
export const SLOT_FRAME: i32 = <i32>Slot.FRAME
export const SLOT_FRAME_LENGTH: i32 = <i32>Slot.FRAME_LENGTH
export const SLOT_ASKED_LENGTH: i32 = <i32>Slot.ASKED_LENGTH
export const SLOT_ASKED_TAG: i32 = <i32>Slot.ASKED_TAG
export const SLOT_ASKED_TAG_LENGTH: i32 = <i32>Slot.ASKED_TAG_LENGTH
export const SLOT_ASKED_TORNASOLE: i32 = <i32>Slot.ASKED_TORNASOLE
export const SLOT_ASKED_STEP: i32 = <i32>Slot.ASKED_STEP
export const SLOT_STATUS: i32 = <i32>Slot.STATUS
export const SLOT_FAULT_OFFSET: i32 = <i32>Slot.FAULT_OFFSET
export const SLOT_EXPECTED: i32 = <i32>Slot.EXPECTED
export const SLOT_GOT: i32 = <i32>Slot.GOT
export const SLOT_MODE: i32 = <i32>Slot.MODE
export const SLOT_DTYPE: i32 = <i32>Slot.DTYPE
export const SLOT_MODE_STEP: i32 = <i32>Slot.MODE_STEP
export const SLOT_EVENT_STEP: i32 = <i32>Slot.EVENT_STEP
export const SLOT_WALL_TIME: i32 = <i32>Slot.WALL_TIME
export const SLOT_TAG: i32 = <i32>Slot.TAG
export const SLOT_TAG_LENGTH: i32 = <i32>Slot.TAG_LENGTH
export const SLOT_DIMS: i32 = <i32>Slot.DIMS
export const SLOT_RANK: i32 = <i32>Slot.RANK
export const SLOT_ELEMENT_COUNT: i32 = <i32>Slot.ELEMENT_COUNT
export const SLOT_KIND: i32 = <i32>Slot.KIND
export const SLOT_VALUE_COUNT: i32 = <i32>Slot.VALUE_COUNT
export const SLOT_DATA: i32 = <i32>Slot.DATA
export const SLOT_DATA_LENGTH: i32 = <i32>Slot.DATA_LENGTH
export const SLOT_DATA_OFFSET: i32 = <i32>Slot.DATA_OFFSET
export const SLOT_VALUE: i32 = <i32>Slot.VALUE
export const SLOT_VALUE_LENGTH: i32 = <i32>Slot.VALUE_LENGTH
export const SLOT_CURSOR: i32 = <i32>Slot.CURSOR
export const SLOT_TENSOR_END: i32 = <i32>Slot.TENSOR_END
export const SLOT_PACKED_END: i32 = <i32>Slot.PACKED_END
export const SLOT_HOLDS: i32 = <i32>Slot.HOLDS
export const SLOT_RECORD_STATUS: i32 = <i32>Slot.RECORD_STATUS
export const SLOT_SIZE: i32 = <i32>Slot.SIZE
export const KIND_NONE: i32 = <i32>Kind.NONE
export const KIND_CONTENT: i32 = <i32>Kind.CONTENT
export const KIND_VALUES: i32 = <i32>Kind.VALUES
export const KIND_STRINGS: i32 = <i32>Kind.STRINGS
export const HOLDS_NO_VALUE: i32 = Holds.NO_VALUE
export const HOLDS_OTHER: i32 = Holds.OTHER
export const HOLDS_TENSOR: i32 = Holds.TENSOR
export const HOLDS_HISTOGRAM: i32 = Holds.HISTOGRAM
export const UNCHECKED_CRC: u32 = UNCHECKED
export const LINE_ROW: i32 = <i32>Line.ROW
export const LINE_PIECES: i32 = <i32>Line.PIECES
export const LINE_SIZE: i32 = <i32>Line.SIZE
export const COLUMN_LABEL: i32 = <i32>Column.LABEL
export const COLUMN_SLOT: i32 = <i32>Column.SLOT
export const COLUMN_FORM: i32 = <i32>Column.FORM
export const COLUMN_SIZE: i32 = <i32>Column.SIZE
export const FORM_SLOT: i32 = Form.SLOT
export const FORM_ROOT: i32 = Form.ROOT
export const FORM_PER_COUNT: i32 = Form.PER_COUNT
export const FORM_ROOT_PER_COUNT: i32 = Form.ROOT_PER_COUNT
export const FORM_PRODUCT: i32 = Form.PRODUCT
export const FORM_ABS_PRODUCT: i32 = Form.ABS_PRODUCT
