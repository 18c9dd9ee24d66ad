/**
 * What is fuzzed. A target takes any bytes and throws if something about their reading is wrong: the wrong kind of error,
 * another answer than the oracle's, a byte read where none may be read. Bad bytes that are refused as they should be
 * are no fault.
 */

import { posix } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { type FormatError, TrialscanError } from '#dist/base/errors.js'
import type { GlobalStep } from '#dist/base/types.js'
import { Engine } from '#dist/core/engine.js'
import { type Collections, Membership, mergeCollections, parseCollections } from '#dist/format/collections.js'
import { type EventHead, type FileBytes, MalformedEvent, walkEventHead } from '#dist/format/event-head.js'
import { decodeHistogram } from '#dist/format/histogram.js'
import { type IndexFile, IndexFileReader, parseIndexFile } from '#dist/format/index-file.js'
import * as paths from '#dist/format/paths.js'
import { compilePattern } from '#dist/format/regex/pattern.js'
import { parseTornasoleCollections, parseTornasoleIndex } from '#dist/format/tornasole.js'
import { IndexColumns } from '#dist/scan/catalog/columns/index-columns.js'
import { decodeIndexCache, encodeIndexCache } from '#dist/scan/catalog/load/index-cache.js'
import { surveyEventFiles } from '#dist/scan/worker/survey.js'
import { encodeEvent, frameRecord } from '../../fixtures/event-writer.js'
import { judge } from '../support/event-judge.js'
import { type EventView, readFrames, type ValueView } from '../support/event-schema.js'
import { type Chance, concat, littleEndian, mutateBytes, splice, utf8 } from './bytes.js'
import { distributedMetadata, pickle, safetensors, shardIndex, torchFile } from './checkpoint-targets.js'
import { accepted, compareWithProtobufjs, hasOverlongVarint } from './differential.js'
import { mutateJson } from './json.js'
import { MemoryStore } from './memory-store.js'
import { mutateEvent } from './message.js'
import { mutateRecord, RecordProbe, readRecordInput, recordInput } from './record.js'
import { eventFiles, eventPayloads, filesIn } from './seeds.js'

export interface Target {
  /** Inputs to begin with. @param fixtures the directory of the fixtures */
  seeds(fixtures: string): Uint8Array[]
  mutate(input: Uint8Array, chance: Chance, other: () => Uint8Array): Uint8Array
  /** Longer inputs are not tried. */
  readonly maxByteLength: number
  run(input: Uint8Array): void | Promise<void>
}

/** Throws unless it holds. */
function hold(holds: boolean, otherwise: () => string): asserts holds {
  if (!holds) throw new Error(otherwise())
}

const text = new TextDecoder('utf-8')
const words = (list: readonly string[]) => list.map(utf8)

// ------------------------------------------------------------------------------------------------------------ records

let probe: RecordProbe | undefined

/** Frame, walk and moments: twice in the core, and by protobufjs. */
const record: Target = {
  seeds: fixtures =>
    eventPayloads(fixtures).map((payload, i) => recordInput([0x14, 0x10, 0x01, 0x96][i % 4]!, payload)),
  mutate: mutateRecord,
  maxByteLength: 1 << 16,
  run(bytes) {
    const input = readRecordInput(bytes)
    probe ??= new RecordProbe()
    probe.check(input)
    if (input.payload && !input.isTornasole) compareWithProtobufjs(input.payload, input)
  },
}

let engine: Engine | undefined

/** The walk with a hole where tensor_content lies finds what the walk of the whole record finds. */
const sparse: Target = {
  seeds: fixtures => eventPayloads(fixtures).map((payload, i) => recordInput((i * 7) % 256, payload)),
  mutate(input, chance, other) {
    const control = chance.once(2) ? chance.below(256) : input[0]!
    return recordInput(
      control,
      mutateEvent(input.subarray(1), chance, () => other().subarray(1)),
    )
  },
  maxByteLength: 1 << 14,
  run(bytes) {
    engine ??= new Engine()
    const frame = frameRecord(bytes.subarray(1))
    const tag = bytes[0]! & 1 ? 't' : null
    const wanted = walkWhole(engine, frame, tag)
    const got = walkInPieces(engine, frame, tag, 12 + 2 * (bytes[0]! >> 1))
    hold(isDeepStrictEqual(got, wanted), () => `whole ${JSON.stringify(wanted)}, with a hole ${JSON.stringify(got)}`)
  },
}

type Walked = { readonly code: string } | ReturnType<ReturnType<Engine['slots']>['found']>

const PLACE = { url: 'memory:record', startByte: 0, tensor: '' }

function walkWhole(engine: Engine, frame: Uint8Array, tag: string | null): Walked {
  engine.reset()
  const tags = engine.writeTexts(tag === null ? [] : [tag])
  const room = engine.reserveBatch(1)
  const address = engine.reserveBytes(frame.length)
  engine.view(address, frame.length).set(frame)
  const asked = { byteLength: frame.length, tag: tag === null ? -1 : 0, step: -1 }
  engine.ask(
    room,
    1,
    tags,
    () => asked,
    () => ({ address, byteLength: frame.length }),
  )
  engine.decode(room, 1, 1)
  const slots = engine.slots(room, 1)
  return slots.ok(0) ? slots.found(0) : { code: slots.error(0, PLACE).code }
}

/** As pool/large.ts does it: a head, which grows until it is long enough, and what lies behind tensor_content. */
function walkInPieces(engine: Engine, frame: Uint8Array, tag: string | null, headByteLength: number): Walked {
  engine.reset()
  const tags = engine.writeTexts(tag === null ? [] : [tag])
  const room = engine.reserveBatch(1)
  const asked = { byteLength: frame.length, tag: tag === null ? -1 : 0, step: -1 }
  for (let headLength = headByteLength; ; headLength *= 2) {
    const there = Math.min(headLength, frame.length)
    const head = engine.reserveBytes(there)
    engine.view(head, there).set(frame.subarray(0, there))
    engine.ask(
      room,
      1,
      tags,
      () => asked,
      () => ({ address: head, byteLength: there }),
    )
    if (!engine.checkHeader(room, 1)) return { code: engine.slots(room, 1).error(0, PLACE).code }
    const payloadLength = frame.length - 16
    let walked = engine.walkSparse(room, payloadLength, 0, 0)
    let slots = engine.slots(room, 1)
    if (!walked && slots.needs(0) === 'tail') {
      const tailStart = slots.dataOffset(0) + slots.dataByteLength(0)
      const tail = frame.subarray(tailStart, frame.length - 4)
      const address = engine.reserveBytes(tail.length)
      engine.view(address, tail.length).set(tail)
      walked = engine.walkSparse(room, payloadLength, address, tail.length)
      slots = engine.slots(room, 1)
    }
    if (walked) return slots.found(0)
    if (slots.needs(0) !== 'more' || there === frame.length) return { code: slots.error(0, PLACE).code }
  }
}

// -------------------------------------------------------------------------------------------------------- event heads

/** Bytes that come in pieces, and that notice who reads what it has not asked for, or what is none of its business. */
class Pieces implements FileBytes {
  asked = 0
  readonly #bytes: Uint8Array
  readonly #pieceLength: number
  #start = 0
  #end = 0

  constructor(bytes: Uint8Array, pieceLength: number) {
    this.#bytes = bytes
    this.#pieceLength = pieceLength
  }

  has(at: number, byteLength: number): boolean {
    return at >= this.#start && at + byteLength <= this.#end
  }

  byte(at: number): number {
    hold(this.has(at, 1), () => `byte ${at} was read, there are ${this.#start} to ${this.#end}`)
    return this.#bytes[at]!
  }

  slice(at: number, byteLength: number): Uint8Array {
    hold(this.has(at, byteLength), () => `${byteLength} bytes at ${at} were read of ${this.#start} to ${this.#end}`)
    return this.#bytes.subarray(at, at + byteLength)
  }

  load({ at, byteLength }: { readonly at: number; readonly byteLength: number }): void {
    hold(
      at + byteLength <= this.#bytes.length,
      () => `${byteLength} bytes at ${at} of ${this.#bytes.length} are wanted`,
    )
    hold(++this.asked <= this.#bytes.length + 1, () => `${this.asked} times more bytes were wanted`)
    this.#start = at
    this.#end = Math.min(this.#bytes.length, at + Math.max(byteLength, this.#pieceLength))
  }
}

/** The head of an Event; null where the walk refuses it. */
function headOf(payload: Uint8Array, pieceLength: number): EventHead | null {
  const pieces = new Pieces(payload, pieceLength)
  try {
    const walk = walkEventHead(pieces, 0, payload.length)
    for (;;) {
      const { done, value } = walk.next()
      if (done) return value as EventHead
      pieces.load(value as { at: number; byteLength: number })
    }
  } catch (error) {
    if (error instanceof MalformedEvent) return null
    throw error
  }
}

/** What an Event holds by protobufjs, as an EventHead. */
function headByProtobufjs({ step, values }: EventView): EventHead {
  return {
    step: Number(step),
    // The judge's schema has no SessionLog.
    isStart: false,
    values: values
      .map(value => {
        const { tag, tensor, simpleValue, histogram } = value
        const kind: EventHead['values'][number]['kind'] =
          tensor || simpleValue !== undefined ? 'tensor' : histogram ? 'histogram' : null
        return { tag, kind, ...modeOf(value) }
      })
      // Of a Value that tells nothing nothing is kept.
      .filter(({ kind, mode }) => kind !== null || mode !== 0),
  }
}

/** As the judge tells it, who wants a tensor. */
function modeOf(value: ValueView): { readonly mode: number; readonly modeStep: number } {
  const judged = judge(
    { wallTime: 0, step: 0n, fileVersion: '', values: [{ ...value, simpleValue: 0, tensor: undefined }] },
    undefined,
  )
  if (judged.code !== null) throw new Error(`expected a judgement, got ${judged.code}`)
  return { mode: judged.mode, modeStep: judged.modeStep }
}

const MAX_TEXT_BYTES = 32 << 10

/** What an Event holds is told as protobufjs tells it, from pieces of any length, and by the core. */
const eventHead: Target = {
  seeds: sparse.seeds,
  mutate: sparse.mutate,
  maxByteLength: 1 << 15,
  run(bytes) {
    const payload = bytes.subarray(1)
    const head = headOf(payload, bytes[0] ?? 0)
    hold(isDeepStrictEqual(head, headOf(payload, payload.length)), () => 'the length of the pieces makes a difference')
    const event = accepted(payload)
    if (event === null || payload.length > MAX_TEXT_BYTES) return
    if (head === null) {
      hold(hasOverlongVarint(payload), () => 'protobufjs accepts what the walk refuses')
      return
    }
    const wanted = headByProtobufjs(event)
    // Beyond 2^53 a step is none; which number it is then does not matter.
    const step = Number.isSafeInteger(head.step) ? head.step : wanted.step
    hold(Number.isSafeInteger(head.step) || !Number.isSafeInteger(wanted.step) || wanted.step < 0, () => 'another step')
    hold(
      isDeepStrictEqual({ ...head, step, isStart: false }, wanted),
      () => `${JSON.stringify(wanted)}, got ${JSON.stringify(head)}`,
    )
  },
}

// --------------------------------------------------------------------------------------------------------- histograms

const NUMBERS = [0, -1, 2.5, NaN, Infinity, 1e308]

/** A histogram is read as protobufjs reads it, and nothing makes the reading fail. */
const histogram: Target = {
  seeds: () =>
    [0, 1, 3, 20].flatMap(count =>
      [{}, { order: 'reversed' }, { splitMessages: true }, { unknownFields: true, paddedVarints: true }].map(form =>
        encodeEvent(
          {
            wallTime: 1,
            step: count,
            tag: 't',
            histogram: {
              min: -1,
              max: 2,
              num: count,
              sum: 1,
              sumSquares: 3,
              bucketLimit: Array.from({ length: count }, (_, i) => i),
              bucket: Array.from({ length: count }, (_, i) => NUMBERS[i % NUMBERS.length]!),
            },
          },
          form as { order?: 'reversed' },
        ),
      ),
    ),
  mutate: mutateEvent,
  maxByteLength: 1 << 14,
  async run(payload) {
    const got = await decodeHistogram(payload, 't')
    const event = accepted(payload)
    if (event === null) return
    const wanted = event.values.find(({ tag, histogram }) => tag === 't' && histogram)?.histogram
    // TensorFlow 2's are tensors, whose plugin is the core's to look at.
    const isTensor = event.values.some(({ tag, tensor }) => tag === 't' && tensor)
    hold((got === null) === (wanted === undefined) || isTensor, () =>
      got ? 'a histogram, where there is none' : 'no histogram',
    )
    if (!got || !wanted) return
    const { bucket, bucketLimit, min, max } = wanted
    const count = Math.min(bucket.length, bucketLimit.length)
    const rows = Array.from({ length: count }, (_, i) => [
      i === 0 ? min : bucketLimit[i - 1],
      i === count - 1 ? max : bucketLimit[i],
      bucket[i],
    ]).flat()
    hold(isDeepStrictEqual([...got.rows], rows), () => `rows ${rows}, got ${got.rows}`)
    const isUnknown = got.reductions.sum === undefined && wanted.sum === 0 && wanted.sumSquares === 0
    hold(isUnknown || Object.is(got.reductions.sum, wanted.sum), () => `sum ${wanted.sum}, got ${got.reductions.sum}`)
  },
}

// -------------------------------------------------------------------------------------------------------- event files

/** Mutates the frames of a file, or an Event in one of them. */
export function mutateFile(file: Uint8Array, chance: Chance, other: () => Uint8Array): Uint8Array {
  let frames: Uint8Array[]
  try {
    frames = readFrames(file).map(({ startByte, byteLength }) => file.subarray(startByte, startByte + byteLength))
  } catch {
    return mutateBytes(file, chance, [], other)
  }
  if (frames.length === 0 || chance.once(8)) return mutateBytes(file, chance, [file.subarray(0, 12)], other)
  for (let left = 1 + chance.below(3); left > 0; left--) {
    const at = chance.below(frames.length)
    const frame = frames[at]
    if (frame === undefined) break
    const payload = frame.subarray(12, -4)
    const kind = chance.below(8)
    if (kind === 0) frames.splice(at, 1)
    else if (kind === 1) frames.splice(chance.below(frames.length), 0, frame)
    else if (kind === 2) frames[at] = frameRecord(payload.subarray(0, chance.below(payload.length + 1)))
    else if (kind === 3) frames[at] = splice(frame, 0, 8, littleEndian(BigInt(chance.below(2 ** 32)), 8))
    else
      frames[at] = frameRecord(
        mutateEvent(payload, chance, () => payload),
        { checksum: 'true' },
      )
  }
  return concat(frames)
}

/**
 * A file without an index: every record that protobufjs accepts before the first broken frame is found, and what is found behind it
 * has a frame of its own.
 */
const eventFile: Target = {
  seeds: fixtures => eventFiles(fixtures).filter(({ length }) => length < 1 << 12),
  mutate: mutateFile,
  maxByteLength: 1 << 13,
  async run(file) {
    engine ??= new Engine()
    const store = new MemoryStore(file)
    const job = { kind: 'survey', store: store.spec, files: [{ path: 'file', startByte: 0 }] } as const
    const { files } = await surveyEventFiles(job, engine, store)
    const scan = files[0]!
    if ('name' in scan) throw new Error(`the scan of the file failed: ${JSON.stringify(scan)}`)
    const { whole, accepted: wanted } = framesOf(file)
    const { scannedByteLength: scanned } = scan
    const isWhole = whole === file.length && scan.problems.length === 0
    hold(scanned === whole || (!isWhole && scanned <= file.length), () => `${whole} bytes are whole, got ${scanned}`)
    for (const [i, startByte] of scan.startByte.entries()) {
      const [frame] = readFrames(file.subarray(startByte, startByte + scan.recordByteLength[i]!))
      hold(frame?.lengthCrcHolds === true, () => `a record at ${startByte}, where there is none`)
    }
    hold(whole === file.length || scan.problems.length > 0, () => 'what is not whole is no problem')
    for (const [startByte, event] of wanted) {
      const tags = headByProtobufjs(event)
        .values.filter(({ kind }) => kind !== null)
        .map(({ tag }) => tag)
      const got = [...scan.tag].filter((_, i) => scan.startByte[i] === startByte).map(tag => scan.tags[tag])
      const isRefused = scan.problems.some(problem => (problem.fields.offset as number) >= startByte)
      hold(isDeepStrictEqual(got, tags) || isRefused, () => `record at ${startByte}: ${tags}, got ${got}`)
    }
  },
}

/** Where the first broken frame begins, and the Events before that which protobufjs accepts. */
function framesOf(file: Uint8Array): { readonly whole: number; readonly accepted: ReadonlyMap<number, EventView> } {
  const events = new Map<number, EventView>()
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength)
  let at = 0
  while (file.length - at >= 16) {
    const length = view.getBigUint64(at, true)
    if (length > BigInt(file.length - at - 16)) break
    const [frame] = readFrames(file.subarray(at, at + 16 + Number(length)))
    if (!frame?.lengthCrcHolds) break
    const event = accepted(frame.payload)
    if (event) events.set(at, event)
    at += frame.byteLength
  }
  return { whole: at, accepted: events }
}

// --------------------------------------------------------------------------------------------------------- index JSON

const INDEX_WORDS = words([
  '"meta": {"mode": "TRAIN", "mode_step": 0}',
  ', "tensor_payload": []',
  '"tensor_payload"',
  '"shape_payload"',
  '"tensorname"',
  '"start_idx"',
  '"length"',
  '"originalname"',
  '"event_file_name"',
  '\\u006d\\u0065ta',
  '{}',
  '}, "meta": {',
  '\ud83d\ude00',
])

/** An outcome that can be compared: what was read, or the error's code and words. */
function outcomeOf<T>(read: () => T, codes: readonly string[]): { readonly value?: T; readonly error?: string } {
  try {
    return { value: read() }
  } catch (error) {
    hold(error instanceof TrialscanError && codes.includes(error.code), () => `a refusal, got ${stackOf(error)}`)
    const { message, fields } = error as FormatError
    hold(message.length < 2000, () => `a message of ${message.length} characters`)
    hold(fields.url === URL_OF_INPUT, () => `an error that names the file, got ${JSON.stringify(fields)}`)
    return { error: message }
  }
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

const URL_OF_INPUT = 'file:///input'
const SEPARATOR = 0

/** What an index file holds, by JSON.parse alone. */
function indexByHand(source: string): IndexFile {
  // biome-ignore lint/suspicious/noExplicitAny: only what was accepted is read so
  const { meta, tensor_payload, shape_payload } = JSON.parse(source) as any
  return {
    mode: meta.mode,
    modeStep: meta.mode_step + 0,
    // Without tensors an empty name is none.
    eventFile: meta.event_file_name || null,
    // biome-ignore lint/suspicious/noExplicitAny: as above
    tensors: (tensor_payload ?? []).map((entry: any) => ({
      name: entry.tensorname,
      startByte: entry.start_idx + 0,
      byteLength: entry.length + 0,
    })),
    // biome-ignore lint/suspicious/noExplicitAny: as above
    shapes: (shape_payload ?? []).map((entry: any) => ({
      name: entry.tensorname,
      originalName: entry.originalname ?? entry.tensorname,
      shape: entry.shape.map((size: number) => size + 0),
    })),
  }
}

/** Files separated by NUL, read one after the other by a reader that shares what repeats, and each by itself. */
const indexFile: Target = {
  seeds(fixtures) {
    const files = filesIn(fixtures, path => /index\/\d+\/.*\.json$/.test(path)).filter(({ length }) => length < 1500)
    return files
      .filter((_, i) => i % 7 === 0)
      .flatMap((file, i) => [file, joined([file, files[(i * 7 + 1) % files.length]!])])
  },
  mutate(input, chance, other) {
    const files = separated(input)
    const at = chance.below(files.length)
    const mutated = mutateJson(files[at]!, chance, INDEX_WORDS, () => separated(other())[0]!)
    if (chance.once(3)) return joined([...files, mutated])
    if (chance.once(6)) return joined([mutated, files[at]!, mutated])
    return joined(files.with(at, mutated).slice(-4))
  },
  maxByteLength: 1 << 15,
  run(input) {
    const reader = new IndexFileReader()
    for (const bytes of separated(input)) {
      const codes = ['BadIndexFile', 'UnsafePath']
      const got = outcomeOf(() => reader.read(bytes, URL_OF_INPUT), codes)
      const source = text.decode(bytes)
      if (!isDeepStrictEqual(utf8(source), bytes) && !source.startsWith('\ufeff') && !isBom(bytes)) {
        hold(got.error !== undefined, () => 'bytes that are not UTF-8 were read')
        continue
      }
      const wanted = outcomeOf(() => parseIndexFile(source, URL_OF_INPUT), codes)
      hold(isDeepStrictEqual(got, wanted), () => `alone ${JSON.stringify(wanted)}, among others ${JSON.stringify(got)}`)
      if (got.value === undefined) continue
      const byHand = indexByHand(source)
      hold(isDeepStrictEqual(got.value, byHand), () => `${JSON.stringify(byHand)}, got ${JSON.stringify(got.value)}`)
    }
  },
}

function isBom(bytes: Uint8Array): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
}

function joined(files: readonly Uint8Array[]): Uint8Array {
  return concat(files.flatMap((file, i) => (i === 0 ? [file] : [Uint8Array.of(SEPARATOR), file])))
}

function separated(input: Uint8Array): Uint8Array[] {
  const files: Uint8Array[] = []
  for (let start = 0; start <= input.length; ) {
    const at = input.indexOf(SEPARATOR, start)
    const end = at < 0 ? input.length : at
    files.push(input.subarray(start, end))
    start = end + 1
  }
  return files
}

// ---------------------------------------------------------------------------------------------------- other metadata

const COLLECTION_WORDS = words([
  '"collections"',
  '"_meta"',
  '"num_workers"',
  '"include_regex"',
  '"tensor_names"',
  '"reduction_config"',
  '"save_config"',
  '"save_interval"',
  '"save_steps"',
  '"end_step"',
  '"TRAIN"',
  '"GLOBAL"',
  '"reductions": "mean,abs_max"',
  '"__proto__"',
  '"constructor"',
  '^(?!gradient).*weight',
])

const SAVED_NAMES = ['fc.weight', 'gradient/fc.weight', 'loss', '', '\u{1f600}', 'a\nb'].sort()

const collections: Target = {
  seeds: fixtures => filesIn(fixtures, path => path.endsWith('collections.json')).filter(({ length }) => length < 6000),
  mutate: (input, chance, other) => mutateJson(input, chance, COLLECTION_WORDS, other),
  maxByteLength: 1 << 14,
  run(input) {
    const source = text.decode(input)
    const { value } = outcomeOf(() => parseCollections(source, URL_OF_INPUT), ['BadCollectionsFile'])
    if (value === undefined) return
    const names = Object.keys((JSON.parse(source) as { collections: object }).collections)
    hold(isDeepStrictEqual([...value.collections.keys()], names), () => `collections ${names}`)
    checkMembers(value)
    hold(
      isDeepStrictEqual(mergeCollections([value, value]), mergeCollections([value, value, value])),
      () => 'merging changes it',
    )
  },
}

/** Members are named, or matched by one of the patterns; a pattern that can't be used is refused as such. */
function checkMembers({ collections }: Pick<Collections, 'collections'>): void {
  for (const config of collections.values()) {
    try {
      const members = new Membership(SAVED_NAMES).members(config).toArray()
      const patterns = config.includeRegex.map(compilePattern)
      const meant = SAVED_NAMES.filter(
        name => config.tensorNames.includes(name) || patterns.some(pattern => pattern.matches(name)),
      )
      hold(isDeepStrictEqual(members, meant), () => `members ${members}, and not ${meant}`)
    } catch (error) {
      hold(error instanceof TrialscanError && error.name === 'UsageError', () => stackOf(error))
    }
  }
}

const TORNASOLE_WORDS = words([
  ', ',
  ',',
  '\r\n',
  '\n',
  '!@',
  'v0!@',
  '/events/',
  '../',
  'events/0/0_a.tfevents',
  '99999999999999999999',
])

const tornasole: Target = {
  seeds: fixtures => filesIn(fixtures, path => path.endsWith('.csv') || path.endsWith('collections.ts')).slice(0, 8),
  mutate: (input, chance, other) => mutateBytes(input, chance, TORNASOLE_WORDS, other),
  maxByteLength: 1 << 14,
  run(input) {
    const source = text.decode(input)
    const index = outcomeOf(() => parseTornasoleIndex(source, URL_OF_INPUT), ['BadIndexFile', 'UnsafePath']).value
    if (index) {
      const lines = source.split('\n').filter(line => line !== '' && line !== '\r')
      hold(index.tensors.length === lines.length, () => `${lines.length} lines, got ${index.tensors.length}`)
      index.tensors.forEach(({ name, startByte, byteLength }, i) => {
        hold(lines[i]!.startsWith(`${name}, `), () => `line ${i} of ${name}`)
        hold(Number.isSafeInteger(startByte + byteLength), () => `${startByte} + ${byteLength}`)
      })
      if (index.eventFile !== null) holdInside(index.eventFile)
    }
    const read = outcomeOf(() => parseTornasoleCollections(source, URL_OF_INPUT), ['BadCollectionsFile']).value
    if (read) checkMembers({ collections: read })
  },
}

const PATH_WORDS = words([
  '../',
  '..',
  '/',
  '\\',
  '\0',
  'file://',
  's3:',
  '_replica-0_task-0',
  '_',
  '.json',
  '.csv',
  '.tfevents',
  '.tmp',
  'collections.json',
  '999999999999999999',
  ' ',
  '\n',
  '\ud83d\ude00',
])

const fileNames: Target = {
  seeds: () =>
    words([
      'index/000000000/000000000000_worker_0.json',
      'index/000000001/000000001000__replica-0_task-0_device-GPU-0.json',
      'events/000000000012/000000000012_algo-1.tfevents',
      'collections/000000000/worker_0_collections.json',
      'collections.json',
      'events.out.tfevents.1700000000.host',
      '1_a.csv',
      'a/b/../c.tmp',
    ]),
  mutate: (input, chance, other) => mutateBytes(input, chance, PATH_WORDS, other),
  maxByteLength: 1 << 12,
  run(input) {
    const path = text.decode(input)
    const names = [paths.parseIndexFileName(path), paths.parseEventFileName(path)].filter(name => name !== null)
    for (const { step, worker } of names) {
      hold(Number.isSafeInteger(step) && step >= 0 && worker !== '', () => `step ${step} of ${JSON.stringify(worker)}`)
      // A worker's own name, written as the hook writes it, is found again.
      const again = paths.parseIndexFileName(paths.indexFilePath(step, worker))
      const isPlain = !worker.includes('/') || /^(?:\/[a-z]+(?::[A-Za-z0-9_]+)+)+$/.test(worker)
      if (isPlain && !/^_[a-z]+-/.test(worker)) {
        hold(again?.step === step, () => `step ${step}, got ${again?.step}`)
      }
    }
    paths.parseCollectionsFileName(path)
    paths.isTensorBoardFile(path)
    paths.isTemporary(path)
    paths.runOf(path)
    const { value } = outcomeOf(() => paths.checkEventFileName(path, URL_OF_INPUT), ['UnsafePath', 'BadIndexFile'])
    if (value !== undefined) holdInside(value)
  },
}

function holdInside(path: string): void {
  const resolved = posix.resolve('/trial', path)
  hold(resolved === '/trial' || resolved.startsWith('/trial/'), () => `${path} is outside of the trial`)
}

const PATTERN_WORDS = words([
  '(?!',
  '(?=',
  '(?<=',
  '(?<!',
  '(?:',
  '(?i)',
  '(?P<a>',
  '(?P=a)',
  '\\b',
  '\\d',
  '\\Z',
  '\\1',
  '[^',
  '[]',
  '*?',
  '{2,}',
  '{1000}',
  '.*',
  '|',
  '$',
  '^',
  '((((((((((((((((((((',
])

/** A pattern is compiled or refused, and searching ends. */
const pattern: Target = {
  seeds: () =>
    words([
      '^(?!gradient).*weight',
      'relu',
      '^gradient',
      '(a|b)*c{2,3}$',
      '[^\\]x]+(?<=y)\\.',
      'a(?i:b)\\bc',
      '\\x41\\u00e9[[:a]',
    ]),
  mutate: (input, chance, other) => mutateBytes(input, chance, PATTERN_WORDS, other),
  maxByteLength: 1 << 10,
  run(input) {
    const source = text.decode(input)
    try {
      const { matches } = compilePattern(source)
      for (const name of SAVED_NAMES) hold(typeof matches(name) === 'boolean', () => `an answer for ${name}`)
    } catch (error) {
      hold(error instanceof TrialscanError && error.name === 'UsageError', () => stackOf(error))
    }
  },
}

/** A cache that was changed is no cache; whatever is read from it is what was put in. */
const indexCache: Target = {
  seeds() {
    const content = (mode: 'TRAIN' | 'EVAL', tensors: number): IndexFile => ({
      mode,
      modeStep: 3,
      eventFile: tensors === 0 ? null : 'events/0/0_a.tfevents',
      tensors: Array.from({ length: tensors }, (_, i) => ({ name: `t${i}`, startByte: i * 10, byteLength: 10 })),
      shapes: tensors === 0 ? [{ name: 's', originalName: 's/o', shape: [2, 3] }] : [],
    })
    const stamp = Float64Array.of(1, 2, 3)
    return [[0, 1, 3], [0], []].map(counts => {
      const columns = new IndexColumns()
      const files = counts.map(n => {
        const row = columns.listed(columns.add(n as GlobalStep, 'a', content('EVAL', n)))
        return { path: `index/0/${n}_a.json`, stamp, row }
      })
      return encodeIndexCache(URL_OF_INPUT, { files, columns })
    })
  },
  mutate: (input, chance, other) =>
    mutateBytes(input, chance, words(['"sections":[8,8]', '"crc":0', '\n', 'null']), other),
  maxByteLength: 1 << 12,
  run(input) {
    const cache = decodeIndexCache(URL_OF_INPUT, input)
    if (cache === null) return
    const columns = new IndexColumns()
    const { paths } = cache
    const files = paths.map((path, i) => {
      const row = columns.listed(cache.addTo(columns, i, i as GlobalStep, 'a'))
      return { path, stamp: cache.stamp(i), row }
    })
    const again = encodeIndexCache(URL_OF_INPUT, { files, columns })
    hold(isDeepStrictEqual(new Uint8Array(again), new Uint8Array(input)), () => 'what was read is written otherwise')
  },
}

export const TARGETS: Readonly<Record<string, Target>> = {
  record,
  sparse,
  'event-head': eventHead,
  'event-file': eventFile,
  histogram,
  'index-file': indexFile,
  collections,
  tornasole,
  'file-names': fileNames,
  pattern,
  'index-cache': indexCache,
  pickle,
  'torch-file': torchFile,
  'distributed-metadata': distributedMetadata,
  safetensors,
  'shard-index': shardIndex,
}
