/** The index file: where one worker's tensors of one step lie in its event file. Source: format.md "Index file". */

import { MODES, type Mode } from '../types.js'
import {
  expectInteger,
  expectList,
  expectObject,
  expectString,
  fault,
  inside,
  type Place,
  parseJsonObject,
  pythonJson,
  show,
} from './json.js'
import { checkEventFileName } from './paths.js'

/** A saved tensor: one whole framed TFRecord of the event file. */
export interface TensorLocation {
  readonly name: string
  readonly startByte: number
  readonly byteLength: number
  /** Where one worker's step lies in several event files: the one that holds this tensor. */
  readonly eventFile?: string
}

/** A saved shape. The value may have been saved too, and may not. */
export interface SavedShape {
  readonly name: string
  /** The name in the framework: `fc/kernel` for `fc.weight`. */
  readonly originalName: string
  readonly shape: readonly number[]
}

export interface IndexFile {
  readonly mode: Mode
  /** Counts within the mode; for GLOBAL it is the global step. */
  readonly modeStep: number
  /** Relative to the trial and checked to lie in it; null where only shapes were saved. */
  readonly eventFile: string | null
  readonly tensors: readonly TensorLocation[]
  readonly shapes: readonly SavedShape[]
}

/**
 * Reads an index file. Nothing in it is believed unseen: it may be cut off, or written by an enemy.
 * @param text the whole file
 * @param url names the file in errors
 * @throws FormatError `BadIndexFile`, or `UnsafePath` for an event file outside the trial
 */
export function parseIndexFile(text: string, url: string): IndexFile {
  const root = { url, code: 'BadIndexFile', at: '' }
  const file = parseJsonObject(text, url, root.code)
  const metaPlace = inside(root, 'meta')
  const meta = expectObject(file.meta, metaPlace)
  if (isNothing(file.tensor_payload) && isNothing(file.shape_payload)) {
    throw fault(root, 'tensor_payload or shape_payload', 'neither')
  }
  const tensors = expectList(file.tensor_payload, inside(root, 'tensor_payload'), parseTensor)
  const shapes = expectList(file.shape_payload, inside(root, 'shape_payload'), parseShape)
  const eventFilePlace = inside(metaPlace, 'event_file_name')
  if (isNothing(meta.event_file_name) && tensors.length > 0) {
    throw fault(eventFilePlace, 'the event file that holds the tensors', 'nothing')
  }
  return {
    mode: parseMode(meta.mode, inside(metaPlace, 'mode')),
    modeStep: expectInteger(meta.mode_step, inside(metaPlace, 'mode_step')),
    eventFile: isNothing(meta.event_file_name)
      ? null
      : checkEventFileName(expectString(meta.event_file_name, eventFilePlace), url),
    tensors,
    shapes,
  }
}

/** The text of an index file as smdebug writes it, to the last blank. */
export function indexFileText({ mode, modeStep, eventFile, tensors, shapes }: IndexFile): string {
  return pythonJson({
    meta: { mode, mode_step: modeStep, ...(eventFile !== null && { event_file_name: eventFile }) },
    tensor_payload: tensors.map(({ name, startByte, byteLength }) => ({
      tensorname: name,
      start_idx: startByte,
      length: byteLength,
    })),
    shape_payload: shapes.map(({ name, originalName, shape }) => ({
      tensorname: name,
      originalname: originalName,
      shape: [...shape],
    })),
  })
}

function parseTensor(value: unknown, place: Place): TensorLocation {
  const entry = expectObject(value, place)
  const startByte = expectInteger(entry.start_idx, inside(place, 'start_idx'))
  const byteLength = expectInteger(entry.length, inside(place, 'length'))
  if (!Number.isSafeInteger(startByte + byteLength)) {
    throw fault(place, 'an end below 2^53', `${startByte} + ${byteLength}`)
  }
  return { name: expectString(entry.tensorname, inside(place, 'tensorname')), startByte, byteLength }
}

function parseShape(value: unknown, place: Place): SavedShape {
  const entry = expectObject(value, place)
  const name = expectString(entry.tensorname, inside(place, 'tensorname'))
  const originalName = isNothing(entry.originalname)
    ? name
    : expectString(entry.originalname, inside(place, 'originalname'))
  const shapePlace = inside(place, 'shape')
  // A scalar's shape is an empty list, so here nothing is not the same as a list of nothing.
  if (isNothing(entry.shape)) throw fault(shapePlace, 'a list', show(entry.shape))
  return { name, originalName, shape: expectList(entry.shape, shapePlace, expectSize) }
}

function expectSize(value: unknown, place: Place): number {
  return expectInteger(value, place)
}

function parseMode(value: unknown, place: Place): Mode {
  const mode = MODES.find(known => known === value)
  if (mode === undefined) throw fault(place, `one of ${MODES.join(', ')}`, show(value))
  return mode
}

function isNothing(value: unknown): boolean {
  return value === undefined || value === null
}
