/** Index files: the places of one worker's tensors of one step in its event file. */

import { FormatError } from '../base/errors.js'
import { MODES, type Mode } from '../base/types.js'
import { IndexHead } from './index-head.js'
import {
  expectInteger,
  expectList,
  expectObject,
  expectString,
  inside,
  type JsonObject,
  type JsonPlace,
  jsonExcerpt,
  jsonFault,
  parseJsonObject,
  pythonJson,
} from './json.js'
import { checkEventFileName } from './paths.js'

/** TensorFlow's limit of dimensions. */
const MAX_RANK = 254

/** The place of a saved tensor: a complete framed TFRecord of the event file. */
export interface TensorLocation {
  readonly name: string
  readonly startByte: number
  readonly byteLength: number
  /** The event file with this tensor, if a worker's step spans several. */
  readonly eventFile?: string
}

/** A saved shape. The value may or may not have been saved too. */
export interface SavedShape {
  readonly name: string
  /** The framework's name: `fc/kernel` for `fc.weight`. */
  readonly originalName: string
  readonly shape: readonly number[]
}

export function isSameShape(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((size, axis) => size === b[axis])
}

/** The tensors of an index file, after its head. */
export interface Listed {
  readonly tensors: readonly TensorLocation[]
  readonly shapes: readonly SavedShape[]
}

export interface IndexFile extends Listed {
  readonly mode: Mode
  /**
   * The number within the mode; for GLOBAL the global step. -1 means that only scalars were saved, before the first step of the mode, so
   * the step belongs to no mode.
   */
  readonly modeStep: number
  /** The path relative to the trial, checked to be inside it; null if only shapes were saved. */
  readonly eventFile: string | null
}

/**
 * Parses an index file. Nothing in it is trusted: it may be cut off, or hostile.
 * @param text the whole file
 * @param url the file's URL, for errors
 * @throws FormatError `BadIndexFile`, or `UnsafePath` for an event file outside the trial
 */
export function parseIndexFile(text: string, url: string): IndexFile {
  const root = { url, code: 'BadIndexFile', at: '' }
  const file = parseJsonObject(text, url, root.code)
  const meta = expectObject(file.meta, inside(root, 'meta'))
  return withMode(meta, () => payloadOf(file, meta, root))
}

function payloadOf(file: JsonObject, meta: JsonObject, root: JsonPlace): IndexFile {
  if (isNothing(file.tensor_payload) && isNothing(file.shape_payload)) {
    throw jsonFault(root, 'tensor_payload or shape_payload', 'neither')
  }
  const tensors = expectList(file.tensor_payload, inside(root, 'tensor_payload'), parseTensor)
  const shapes = expectList(file.shape_payload, inside(root, 'shape_payload'), parseShape)
  return indexFile(meta, tensors, shapes, root)
}

/**
 * The mode that an index file would have for a step, according to the first record with a mode (`mode` is 1 + its index in MODES). A step
 * whose record has none, or whose mode step is -1, belongs to no mode.
 */
export function modeOfRecord(
  stored: { readonly mode: number; readonly modeStep: number } | undefined,
  step: number,
): Pick<IndexFile, 'mode' | 'modeStep'> {
  const mode = stored && MODES[stored.mode - 1]
  return mode && stored.modeStep >= 0 ? { mode, modeStep: stored.modeStep } : { mode: 'GLOBAL', modeStep: step }
}

/** Adds the mode to the error of a file that has one. */
function withMode<T>(meta: JsonObject, read: () => T): T {
  try {
    return read()
  } catch (error) {
    const { mode, mode_step: modeStep } = meta
    const hasMode = MODES.some(known => known === mode) && Number.isSafeInteger(modeStep) && (modeStep as number) >= -1
    if (!(error instanceof FormatError && hasMode)) throw error
    const { code, message, fields, url, cause } = error
    throw new FormatError(code, message, { ...fields, url, mode, modeStep }, cause)
  }
}

/** The mode of an index file, from an error about another part of it. */
export function modeInError(error: Error): Pick<IndexFile, 'mode' | 'modeStep'> | null {
  if (!(error instanceof FormatError)) return null
  const { mode, modeStep } = error.fields
  return mode === undefined ? null : { mode: mode as Mode, modeStep: modeStep as number }
}

function indexFile(
  meta: JsonObject,
  tensors: readonly TensorLocation[],
  shapes: readonly SavedShape[],
  root: JsonPlace,
): IndexFile {
  const metaPlace = inside(root, 'meta')
  const eventFilePlace = inside(metaPlace, 'event_file_name')
  if (isNothing(meta.event_file_name) && tensors.length > 0) {
    throw jsonFault(eventFilePlace, 'the event file that holds the tensors', 'nothing')
  }
  const hasNoFile = isNothing(meta.event_file_name) || (meta.event_file_name === '' && tensors.length === 0)
  return {
    mode: parseMode(meta.mode, inside(metaPlace, 'mode')),
    modeStep: expectInteger(meta.mode_step, inside(metaPlace, 'mode_step'), -1),
    eventFile: hasNoFile ? null : checkEventFileName(expectString(meta.event_file_name, eventFilePlace), root.url),
    tensors,
    shapes,
  }
}

/** The bytes and the content of an index file after its head. */
interface Payload extends Listed {
  readonly bytes: Uint8Array
  /** The whole parsed file, if `bytes` are all of it because its layout is not the hook's. */
  readonly whole: IndexFile | null
}

const PAYLOAD = new TextEncoder().encode(', "tensor_payload"')
/** The limit for a head, which is about 150 bytes. If it lacks json.dumps's blanks, the search for its end stops here. */
const MAX_HEAD_BYTES = 1 << 14
/** The number of kept payloads: modes and workers alternate, each with their own. */
const KEPT_PAYLOADS = 8
/** The limit for the size of all kept payloads. A larger one is rare enough to be parsed again. */
const MAX_PAYLOAD_BYTES = 64 << 20

/**
 * Reads the index files of a trial. From step to step most differ only in their heads, since all records of a tensor have the same
 * length. The rest is then compared instead of parsed.
 */
export class IndexFileReader {
  readonly #payloads: Payload[] = []
  #keptBytes = 0
  readonly #decoder = new TextDecoder('utf-8', { fatal: true })
  readonly #head = new IndexHead()

  /**
   * Reads an index file in which only the numbers of the head are new, and whose event file has the hook's name for the step. Returns
   * null for any other, which `read` handles.
   * @param bytes begins with the file
   * @param length the length of the file
   * @param step the step in its name, like `worker`
   */
  readUsual(
    bytes: Buffer,
    length: number,
    step: number,
    worker: string,
  ): { readonly mode: number; readonly modeStep: number; readonly listed: Listed } | null {
    const end = this.#head.read(bytes, step, worker)
    if (end < 0 || end > length) return null
    for (const payload of this.#payloads) {
      const { bytes: rest, whole } = payload
      if (whole !== null || rest.length !== length - end || bytes.compare(rest, 0, rest.length, end, length) !== 0)
        continue
      return { mode: this.#head.mode, modeStep: this.#head.modeStep, listed: payload }
    }
    return null
  }

  /** Like `parseIndexFile`, from the bytes of the file. Index files with the same payload share its lists. */
  read(bytes: Uint8Array, url: string): IndexFile {
    const at = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, MAX_HEAD_BYTES)).indexOf(PAYLOAD)
    const rest = at < 0 ? bytes : bytes.subarray(at)
    const known = this.#payloads.find(payload => Buffer.compare(payload.bytes, rest) === 0)
    if (known?.whole) return known.whole
    const meta = known ? this.#metaOf(bytes.subarray(0, at)) : null
    if (known && meta) {
      return withMode(meta, () => indexFile(meta, known.tensors, known.shapes, { url, code: 'BadIndexFile', at: '' }))
    }
    const file = parseIndexFile(this.#decode(bytes, url), url)
    // A payload is kept only if it means the same after any head: the head is complete, and the payload contains no meta.
    const isWhole = rest === bytes
    const standsAlone =
      isWhole || (this.#metaOf(bytes.subarray(0, at)) && !/"meta"|\\u00/.test(this.#decoder.decode(rest)))
    if (rest.length <= MAX_PAYLOAD_BYTES && standsAlone) {
      const { tensors, shapes } = file
      this.#payloads.unshift({ bytes: rest, tensors, shapes, whole: isWhole ? file : null })
      this.#keptBytes += rest.length
      while (this.#payloads.length > KEPT_PAYLOADS || this.#keptBytes > MAX_PAYLOAD_BYTES) {
        this.#keptBytes -= this.#payloads.pop()!.bytes.length
      }
    }
    return file
  }

  /** The meta of a head with nothing else; null for any other head. */
  #metaOf(head: Uint8Array): JsonObject | null {
    try {
      const { meta, ...others } = JSON.parse(`${this.#decoder.decode(head)}}`) as Record<string, unknown>
      const isMeta = typeof meta === 'object' && meta !== null && !Array.isArray(meta)
      return isMeta && Object.keys(others).length === 0 ? (meta as JsonObject) : null
    } catch {
      return null
    }
  }

  #decode(bytes: Uint8Array, url: string): string {
    try {
      return this.#decoder.decode(bytes)
    } catch (cause) {
      throw jsonFault({ url, code: 'BadIndexFile', at: '' }, 'UTF-8', 'bytes that are not', cause)
    }
  }
}

/** The text of an index file exactly as smdebug writes it. */
export function indexFileText({ mode, modeStep, eventFile, tensors, shapes }: IndexFile): string {
  const meta = { mode, mode_step: modeStep, ...(eventFile !== null && { event_file_name: eventFile }) }
  // There may be very many at each step of a training; they are written without intermediate objects.
  const places = tensors.map(({ name, startByte, byteLength }) => {
    return `{"tensorname": ${pythonJson(name)}, "start_idx": ${startByte}, "length": ${byteLength}}`
  })
  const shapePayload = shapes.map(({ name, originalName, shape }) => ({
    tensorname: name,
    originalname: originalName,
    shape: [...shape],
  }))
  return `{"meta": ${pythonJson(meta)}, "tensor_payload": [${places.join(', ')}], "shape_payload": ${pythonJson(shapePayload)}}`
}

function parseTensor(value: unknown, place: JsonPlace): TensorLocation {
  const entry = expectObject(value, place)
  const startByte = expectInteger(entry.start_idx, inside(place, 'start_idx'))
  const byteLength = expectInteger(entry.length, inside(place, 'length'))
  if (!Number.isSafeInteger(startByte + byteLength)) {
    throw jsonFault(place, 'an end below 2^53', `${startByte} + ${byteLength}`)
  }
  return { name: expectString(entry.tensorname, inside(place, 'tensorname')), startByte, byteLength }
}

function parseShape(value: unknown, place: JsonPlace): SavedShape {
  const entry = expectObject(value, place)
  const name = expectString(entry.tensorname, inside(place, 'tensorname'))
  const originalName = isNothing(entry.originalname)
    ? name
    : expectString(entry.originalname, inside(place, 'originalname'))
  const shapePlace = inside(place, 'shape')
  // A scalar's shape is an empty list, which differs from a missing one.
  if (isNothing(entry.shape)) throw jsonFault(shapePlace, 'a list', jsonExcerpt(entry.shape))
  const shape = expectList(entry.shape, shapePlace, expectSize)
  if (shape.length > MAX_RANK) throw jsonFault(shapePlace, `at most ${MAX_RANK} dimensions`, `${shape.length}`)
  return { name, originalName, shape }
}

function expectSize(value: unknown, place: JsonPlace): number {
  return expectInteger(value, place)
}

function parseMode(value: unknown, place: JsonPlace): Mode {
  const mode = MODES.find(known => known === value)
  if (mode === undefined) throw jsonFault(place, `one of ${MODES.join(', ')}`, jsonExcerpt(value))
  return mode
}

function isNothing(value: unknown): boolean {
  return value === undefined || value === null
}
