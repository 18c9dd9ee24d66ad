/** protobufjs with reflection: a schema of what a reader of tensors needs, the framing by DataView. No checksums. */
import protobuf from 'protobufjs'
import type { Decoded, Records } from './record.js'
import { float32View } from './record.js'

export const NAME = 'protobufjs'

const event = protobuf
  .parse(`
  syntax = "proto3";
  message Event { double wall_time = 1; int64 step = 2; Summary summary = 5; }
  message Summary { repeated Value value = 1; }
  message Value { string tag = 1; TensorProto tensor = 8; SummaryMetadata metadata = 9; }
  message SummaryMetadata { repeated PluginData plugin_data = 1; }
  message PluginData { string plugin_name = 1; string content = 2; }
  message TensorProto { int32 dtype = 1; TensorShapeProto tensor_shape = 2; bytes tensor_content = 4; }
  message TensorShapeProto { repeated Dim dim = 2; }
  message Dim { int64 size = 1; }
`)
  .root.lookupType('Event')

interface EventMessage {
  readonly summary: { readonly value: readonly { readonly tag: string; readonly tensor: TensorMessage }[] }
}

interface TensorMessage {
  readonly dtype: number
  readonly tensorShape: { readonly dim: readonly { readonly size: { toNumber(): number } }[] }
  readonly tensorContent: Uint8Array
}

/** The tensors of records: dtype, shape and a view of the elements. */
export function decode({ bytes, frames }: Records): () => Decoded[] {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  return () => frames.map(({ startByte }) => decodeRecord(file, view, startByte))
}

/** The tensor of the record at `startByte` of a file. */
export function decodeRecord(file: Buffer, view: DataView, startByte: number): Decoded {
  const length = Number(view.getBigUint64(startByte, true))
  const payload = file.subarray(startByte + 12, startByte + 12 + length)
  const { tag, tensor } = (event.decode(payload) as unknown as EventMessage).summary.value[0]!
  if (tensor.dtype !== 1) throw new Error(`${tag}: expected float32 (1), got ${tensor.dtype}`)
  return {
    dtype: 'float32',
    shape: tensor.tensorShape.dim.map(({ size }) => size.toNumber()),
    data: float32View(tensor.tensorContent),
  }
}
