/**
 * An independent judge of event files: the Event messages as a protobufjs schema, and TFRecord frames checked with
 * @aws-crypto/crc32c. It imports nothing of src and nothing of fixtures.
 */
import { crc32c } from '@aws-crypto/crc32c'
import protobuf from 'protobufjs'

interface FieldJson {
  type: string
  id: number
  rule?: 'repeated'
  options?: { packed: boolean }
}

const one = (id: number, type: string): FieldJson => ({ id, type })
const many = (id: number, type: string, packed?: boolean): FieldJson => ({
  id,
  type,
  rule: 'repeated',
  ...(packed === undefined ? {} : { options: { packed } }),
})

/** The schema; `packed` decides only how the typed fields are written, both forms are read. */
function schema(packed: boolean): protobuf.Root {
  return protobuf.Root.fromJSON({
    options: { edition: 'proto3' },
    nested: {
      Event: {
        fields: {
          wallTime: one(1, 'double'),
          step: one(2, 'int64'),
          fileVersion: one(3, 'string'),
          graphDef: one(4, 'bytes'),
          summary: one(5, 'Summary'),
        },
      },
      Summary: { fields: { value: many(1, 'Value') } },
      Value: {
        oneofs: { _simpleValue: { oneof: ['simpleValue'] } },
        fields: {
          tag: one(1, 'string'),
          simpleValue: { ...one(2, 'float'), options: { proto3_optional: true } },
          image: one(4, 'bytes'),
          histo: one(5, 'HistogramProto'),
          nodeName: one(7, 'string'),
          tensor: one(8, 'TensorProto'),
          metadata: one(9, 'SummaryMetadata'),
        },
      },
      SummaryMetadata: { fields: { pluginData: many(1, 'PluginData') } },
      PluginData: { fields: { pluginName: one(1, 'string'), content: one(2, 'bytes') } },
      TensorProto: {
        fields: {
          dtype: one(1, 'int32'),
          tensorShape: one(2, 'TensorShapeProto'),
          versionNumber: one(3, 'int32'),
          tensorContent: one(4, 'bytes'),
          floatVal: many(5, 'float', packed),
          doubleVal: many(6, 'double', packed),
          intVal: many(7, 'int32', packed),
          stringVal: many(8, 'bytes'),
          scomplexVal: many(9, 'float', packed),
          int64Val: many(10, 'int64', packed),
          boolVal: many(11, 'bool', packed),
          dcomplexVal: many(12, 'double', packed),
          halfVal: many(13, 'int32', packed),
          uint32Val: many(16, 'uint32', packed),
          uint64Val: many(17, 'uint64', packed),
        },
      },
      TensorShapeProto: { fields: { dim: many(2, 'Dim'), unknownRank: one(3, 'bool') } },
      Dim: { fields: { size: one(1, 'int64'), name: one(2, 'string') } },
      HistogramProto: {
        fields: {
          min: one(1, 'double'),
          max: one(2, 'double'),
          num: one(3, 'double'),
          sum: one(4, 'double'),
          sumSquares: one(5, 'double'),
          bucketLimit: many(6, 'double', packed),
          bucket: many(7, 'double', packed),
        },
      },
    },
  })
}

const PACKED = schema(true).lookupType('Event')
const UNPACKED = schema(false).lookupType('Event')

/** The typed fields of a TensorProto that hold numbers. */
export const TYPED_FIELDS = [
  'floatVal',
  'doubleVal',
  'intVal',
  'scomplexVal',
  'int64Val',
  'boolVal',
  'dcomplexVal',
  'halfVal',
  'uint32Val',
  'uint64Val',
] as const
export type TypedField = (typeof TYPED_FIELDS)[number]

/** An Event as one writes it: every field can be left out. Whole numbers may be bigints. */
export interface EventMessage {
  readonly wallTime?: number
  readonly step?: number | bigint
  readonly fileVersion?: string
  readonly graphDef?: Uint8Array
  readonly summary?: { readonly value?: readonly ValueMessage[] }
}

export interface ValueMessage {
  readonly tag?: string
  readonly simpleValue?: number
  readonly image?: Uint8Array
  readonly histo?: Partial<HistogramView>
  readonly nodeName?: string
  readonly tensor?: TensorMessage
  readonly metadata?: {
    readonly pluginData?: readonly { readonly pluginName?: string; readonly content?: Uint8Array }[]
  }
}

export interface TensorMessage extends Partial<Record<TypedField, readonly (number | bigint | boolean)[]>> {
  readonly dtype?: number
  readonly tensorShape?: {
    readonly dim?: readonly { readonly size?: number | bigint; readonly name?: string }[]
    readonly unknownRank?: boolean
  }
  readonly versionNumber?: number
  readonly tensorContent?: Uint8Array
  readonly stringVal?: readonly Uint8Array[]
}

export interface HistogramView {
  readonly min: number
  readonly max: number
  readonly num: number
  readonly sum: number
  readonly sumSquares: number
  readonly bucketLimit: readonly number[]
  readonly bucket: readonly number[]
}

/** An Event as it was read: plain values, defaults filled in, 64-bit integers as bigints. */
export interface EventView {
  readonly wallTime: number
  readonly step: bigint
  readonly fileVersion: string
  readonly values: readonly ValueView[]
}

export interface ValueView {
  readonly tag: string
  readonly nodeName: string
  /** `mode` of the metadata as a number (1 TRAIN, 2 EVAL, 3 PREDICT, 4 GLOBAL). */
  readonly mode: number | undefined
  /** `mode_step` of the metadata as a number. */
  readonly modeStep: number | undefined
  /** All plugin_data, in order. */
  readonly plugins: readonly { readonly name: string; readonly content: string }[]
  readonly simpleValue: number | undefined
  readonly histogram: HistogramView | undefined
  readonly tensor: TensorView | undefined
}

export interface TensorView {
  readonly dtype: number
  readonly shape: readonly number[]
  readonly dimNames: readonly string[]
  readonly unknownRank: boolean
  /** Whether there is a tensor_shape at all. */
  readonly hasShape: boolean
  readonly content: Uint8Array
  /** The typed fields that hold something; int64 and uint64 as bigints, bools as 0 and 1. */
  readonly typed: Readonly<Partial<Record<TypedField, readonly (number | bigint)[]>>>
  readonly strings: readonly Uint8Array[]
}

type Plain = Record<string, unknown>

/** The bytes of an Event as protobufjs writes it, the typed fields packed unless told. */
export function encodeEvent(event: EventMessage, { packed = true }: { readonly packed?: boolean } = {}): Uint8Array {
  const type = packed ? PACKED : UNPACKED
  return type.encode(type.fromObject(withLongs(event) as Plain)).finish()
}

/** Reads an Event; throws as protobufjs does when the bytes are none. */
export function decodeEvent(bytes: Uint8Array): EventView {
  const event = PACKED.toObject(PACKED.decode(bytes), { longs: BigInt, defaults: false, arrays: true }) as Plain
  const summary = event.summary as { value: Plain[] } | undefined
  return {
    wallTime: (event.wallTime as number | undefined) ?? 0,
    step: whole(event.step),
    fileVersion: (event.fileVersion as string | undefined) ?? '',
    values: (summary?.value ?? []).map(valueView),
  }
}

function valueView(value: Plain): ValueView {
  const metadata = value.metadata as { pluginData: Plain[] } | undefined
  const plugins = (metadata?.pluginData ?? []).map(entry => ({
    name: (entry.pluginName as string | undefined) ?? '',
    content: new TextDecoder('utf-8', { ignoreBOM: true }).decode(
      (entry.content as Uint8Array | undefined) ?? new Uint8Array(),
    ),
  }))
  const plugin = (wanted: string) => {
    const entry = plugins.find(({ name }) => name === wanted)
    return entry === undefined ? undefined : Number(entry.content)
  }
  const histogram = value.histo as Partial<HistogramView> | undefined
  return {
    tag: (value.tag as string | undefined) ?? '',
    nodeName: (value.nodeName as string | undefined) ?? '',
    mode: plugin('mode'),
    modeStep: plugin('mode_step'),
    plugins,
    simpleValue: value.simpleValue as number | undefined,
    histogram: histogram && {
      min: 0,
      max: 0,
      num: 0,
      sum: 0,
      sumSquares: 0,
      bucketLimit: [],
      bucket: [],
      ...histogram,
    },
    tensor: value.tensor === undefined ? undefined : tensorView(value.tensor as Plain),
  }
}

function tensorView(tensor: Plain): TensorView {
  const shape = tensor.tensorShape as { dim: Plain[]; unknownRank?: boolean } | undefined
  const typed: Partial<Record<TypedField, readonly (number | bigint)[]>> = {}
  for (const field of TYPED_FIELDS) {
    const values = tensor[field] as readonly (number | bigint | boolean)[]
    if (values.length > 0) typed[field] = values.map(entry => (typeof entry === 'boolean' ? Number(entry) : entry))
  }
  return {
    dtype: (tensor.dtype as number | undefined) ?? 0,
    shape: (shape?.dim ?? []).map(dim => Number(whole(dim.size))),
    dimNames: (shape?.dim ?? []).map(dim => (dim.name as string | undefined) ?? ''),
    unknownRank: shape?.unknownRank ?? false,
    hasShape: shape !== undefined,
    content: bytesOf(tensor.tensorContent),
    typed,
    strings: (tensor.stringVal as Uint8Array[]).map(bytesOf),
  }
}

/** A plain Uint8Array; protobufjs gives Buffers under Node, which compare as something else. */
function bytesOf(value: unknown): Uint8Array {
  return value === undefined ? new Uint8Array() : Uint8Array.from(value as Uint8Array)
}

function whole(value: unknown): bigint {
  return value === undefined ? 0n : BigInt(value as bigint | number)
}

/** Bigints as the Longs that protobufjs takes. */
function withLongs(value: unknown): unknown {
  if (typeof value === 'bigint') {
    const low = Number(BigInt.asIntN(32, value))
    const high = Number(BigInt.asIntN(32, value >> 32n))
    return { low, high, unsigned: value >= 1n << 63n }
  }
  if (Array.isArray(value)) return value.map(withLongs)
  if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return value
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, withLongs(entry)]))
}

/** A record as it lies in an event file. */
export interface FrameView {
  readonly startByte: number
  /** Bytes of the whole record: 8 + 4 + payload + 4. */
  readonly byteLength: number
  readonly payload: Uint8Array
  /** Whether the checksum of the length is right. */
  readonly lengthCrcHolds: boolean
  /** What the payload's checksum is: the payload's own, that of `0x12345678`, or neither. */
  readonly payloadCrc: 'true' | 'constant' | 'wrong'
}

/** The frames of an event file from its beginning; throws where one reaches past the end. */
export function readFrames(file: Uint8Array): FrameView[] {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength)
  const frames: FrameView[] = []
  for (let at = 0; at < file.length; ) {
    const length = Number(view.getBigUint64(at, true))
    if (at + 16 + length > file.length) throw new RangeError(`record at ${at} of ${length} bytes ends past the file`)
    const payload = file.subarray(at + 12, at + 12 + length)
    const crc = view.getUint32(at + 12 + length, true)
    frames.push({
      startByte: at,
      byteLength: length + 16,
      payload,
      lengthCrcHolds: view.getUint32(at + 8, true) === masked(file.subarray(at, at + 8)),
      payloadCrc: crc === masked(payload) ? 'true' : crc === CONSTANT ? 'constant' : 'wrong',
    })
    at += 16 + length
  }
  return frames
}

/** The masked CRC-32C of bytes, by @aws-crypto/crc32c. */
export function masked(bytes: Uint8Array): number {
  const crc = crc32c(bytes)
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0
}

const CONSTANT = masked(new TextEncoder().encode('0x12345678'))
