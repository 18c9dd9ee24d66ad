/** Where the fields of the core's structs lie, asked of the module itself, so that no copy can fall out of step. */

import { EngineError } from '../errors.js'

/** Offsets in units of the view a field is read through: u32 and i32 fields in words, f64 fields in doubles. */
export interface SlotLayout {
  readonly words: number
  readonly doubles: number
  readonly byteLength: number
  // Words.
  readonly frame: number
  readonly frameLength: number
  readonly askedLength: number
  readonly askedTag: number
  readonly askedTagLength: number
  readonly askedTornasole: number
  readonly status: number
  readonly faultOffset: number
  readonly mode: number
  readonly dtype: number
  readonly tag: number
  readonly tagLength: number
  readonly dims: number
  readonly rank: number
  readonly kind: number
  readonly valueCount: number
  readonly value: number
  readonly valueLength: number
  readonly data: number
  readonly dataLength: number
  readonly dataOffset: number
  readonly holds: number
  readonly recordStatus: number
  // Doubles.
  readonly askedStep: number
  readonly expected: number
  readonly got: number
  readonly modeStep: number
  readonly eventStep: number
  readonly wallTime: number
  readonly elementCount: number
}

/** Slots of a row of moments, in doubles. The *exact ones hold 64-bit integers. */
export const MOMENT_SLOTS = [
  'count',
  'nanCount',
  'positiveInfinityCount',
  'negativeInfinityCount',
  'zeroCount',
  'min',
  'max',
  'minAbs',
  'maxAbs',
  'sum',
  'sumAbs',
  'mean',
  'm2',
  'meanAbs',
  'm2Abs',
  'sumSquares',
  'exponent',
  'prodMantissa',
  'prodExponent',
  'minExact',
  'maxExact',
  'minAbsExact',
  'maxAbsExact',
  'sumImaginary',
  'meanImaginary',
  'm2Imaginary',
  'known',
] as const
export type MomentSlot = (typeof MOMENT_SLOTS)[number]

export interface MomentsLayout {
  /** Doubles a row takes. */
  readonly doubles: number
  readonly byteLength: number
  readonly at: Readonly<Record<MomentSlot, number>>
}

export interface KindLayout {
  readonly none: number
  readonly content: number
  readonly values: number
  readonly strings: number
}

/** What a surveyed Value holds. */
export interface HoldsLayout {
  readonly noValue: number
  readonly other: number
  readonly tensor: number
  readonly histogram: number
}

/** Fields of a line to be written, in 32-bit words. */
export interface LineLayout {
  readonly words: number
  readonly row: number
  /** The first of three pairs of address and byte length. */
  readonly pieces: number
}

/** Fields of a number of each line, in 32-bit words. */
export interface ColumnLayout {
  readonly words: number
  /** Address and byte length. */
  readonly label: number
  readonly slot: number
  readonly form: number
}

export interface Layout {
  readonly slot: SlotLayout
  readonly moments: MomentsLayout
  readonly line: LineLayout
  readonly column: ColumnLayout
  readonly kind: KindLayout
  readonly holds: HoldsLayout
}

export function readLayout(constants: ReadonlyMap<string, number>): Layout {
  const constant = (name: string): number => {
    const value = constants.get(name)
    if (value === undefined) throw new EngineError(`expected the core to export ${name}, got nothing`)
    return value
  }
  const word = (name: string): number => constant(`SLOT_${name}`) / 4
  const double = (name: string): number => constant(`SLOT_${name}`) / 8
  const at = {} as Record<MomentSlot, number>
  for (const slot of MOMENT_SLOTS) {
    at[slot] = constant(`MOMENTS_${slot.replace(/[A-Z]/g, letter => `_${letter}`).toUpperCase()}`) / 8
  }
  return {
    slot: {
      words: word('SIZE'),
      doubles: double('SIZE'),
      byteLength: constant('SLOT_SIZE'),
      frame: word('FRAME'),
      frameLength: word('FRAME_LENGTH'),
      askedLength: word('ASKED_LENGTH'),
      askedTag: word('ASKED_TAG'),
      askedTagLength: word('ASKED_TAG_LENGTH'),
      askedTornasole: word('ASKED_TORNASOLE'),
      status: word('STATUS'),
      faultOffset: word('FAULT_OFFSET'),
      mode: word('MODE'),
      dtype: word('DTYPE'),
      tag: word('TAG'),
      tagLength: word('TAG_LENGTH'),
      dims: word('DIMS'),
      rank: word('RANK'),
      kind: word('KIND'),
      valueCount: word('VALUE_COUNT'),
      value: word('VALUE'),
      valueLength: word('VALUE_LENGTH'),
      data: word('DATA'),
      dataLength: word('DATA_LENGTH'),
      dataOffset: word('DATA_OFFSET'),
      holds: word('HOLDS'),
      recordStatus: word('RECORD_STATUS'),
      askedStep: double('ASKED_STEP'),
      expected: double('EXPECTED'),
      got: double('GOT'),
      modeStep: double('MODE_STEP'),
      eventStep: double('EVENT_STEP'),
      wallTime: double('WALL_TIME'),
      elementCount: double('ELEMENT_COUNT'),
    },
    moments: { doubles: constant('MOMENTS_SIZE') / 8, byteLength: constant('MOMENTS_SIZE'), at },
    line: { words: constant('LINE_SIZE') / 4, row: constant('LINE_ROW') / 4, pieces: constant('LINE_PIECES') / 4 },
    column: {
      words: constant('COLUMN_SIZE') / 4,
      label: constant('COLUMN_LABEL') / 4,
      slot: constant('COLUMN_SLOT') / 4,
      form: constant('COLUMN_FORM') / 4,
    },
    kind: {
      none: constant('KIND_NONE'),
      content: constant('KIND_CONTENT'),
      values: constant('KIND_VALUES'),
      strings: constant('KIND_STRINGS'),
    },
    holds: {
      noValue: constant('HOLDS_NO_VALUE'),
      other: constant('HOLDS_OTHER'),
      tensor: constant('HOLDS_TENSOR'),
      histogram: constant('HOLDS_HISTOGRAM'),
    },
  }
}
