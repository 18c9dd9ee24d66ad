/**
 * Checkpoints that several definitions go through, made once a run. Their elements are those of one tile over and over, each tensor from its
 * beginning: what is expected of a tensor follows from the tile.
 */
import { closeSync, ftruncateSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { REDUCTIONS } from '#dist/base/types.js'
import { expectedReductions } from '#dist/cli/bench/reference.js'
import { normals } from '../fixtures/random.js'
import { pickled, tensor, torchZip } from '../test/support/pickles.js'
import { scratchPath } from './scratch.js'

const TILE = 1 << 20
/** Deviation of weights, and of what tuning adds to two thirds of them. */
const [WEIGHT, CHANGE] = [0.02, 0.001]

export type CheckpointDType = 'bfloat16' | 'float32'

export interface CheckpointTensor {
  readonly name: string
  readonly shape: readonly number[]
  readonly count: number
}

export interface Checkpoint {
  /** It holds one file of safetensors. */
  readonly dir: string
  readonly dtype: CheckpointDType
  readonly tensors: readonly CheckpointTensor[]
  readonly elements: number
  readonly byteLength: number
  /** `2.03 GB of bfloat16` */
  readonly title: string
}

const checkpoints = new Map<string, Checkpoint>()

/** 2 GB (quick: an eighth). @param kind tuned: two thirds of the elements are others than those of base */
export function makeCheckpoint(dtype: CheckpointDType, quick: boolean, kind: 'base' | 'tuned' = 'base'): Checkpoint {
  const dir = scratchPath(`${kind}-${dtype}`)
  const known = checkpoints.get(dir)
  if (known !== undefined) return known
  const layers = (dtype === 'bfloat16' ? 15 : 6) / (quick ? 3 : 1)
  const tensors = layout({ layers, hidden: quick ? 1024 : 2048, keys: 512, mlp: quick ? 4096 : 8192, words: 32768 })
  const bytes = tileBytes(dtype, kind)
  const elements = tensors.reduce((sum, { count }) => sum + count, 0)
  const byteLength = elements * (bytes.length / TILE)
  mkdirSync(dir)
  writeSafetensors(join(dir, 'model.safetensors'), dtype, tensors, bytes)
  const title = `${(byteLength / 1e9).toFixed(2)} GB of ${dtype}`
  const checkpoint = { dir, dtype, tensors, elements, byteLength, title }
  checkpoints.set(dir, checkpoint)
  return checkpoint
}

/** All 18 reductions of so many elements of base. */
export function expectedOf(dtype: CheckpointDType, count: number): Float64Array {
  const { buffer } = tileBytes(dtype)
  const words = dtype === 'float32' ? buffer : Uint32Array.from(new Uint16Array(buffer), half => half << 16).buffer
  const floats = Float64Array.from(new Float32Array(words).subarray(0, count))
  const times = count / floats.length
  return expectedReductions(floats).map((value, i) => {
    const name = REDUCTIONS[i]!
    if (/(sum|l1)$/.test(name)) return value * times
    return name.endsWith('l2') ? value * Math.sqrt(times) : name.endsWith('prod') ? value ** times : value
  })
}

/** A model of 70 billion parameters, its shards' data left to the file system: 723 tensors in 30 files of 4.7 GB. */
export function sparse70B(): string {
  const dir = scratchPath('70B')
  const tensors = layout({ layers: 80, hidden: 8192, keys: 1024, mlp: 28672, words: 32000 })
  const most = (2 * tensors.reduce((sum, { count }) => sum + count, 0)) / 30
  const shards: CheckpointTensor[][] = [[]]
  let byteLength = 0
  for (const tensor of tensors) {
    if (byteLength >= most * shards.length) shards.push([])
    shards.at(-1)!.push(tensor)
    byteLength += 2 * tensor.count
  }
  const map: { [name: string]: string } = {}
  mkdirSync(dir)
  for (const [i, shard] of shards.entries()) {
    const name = `model-${digits(i + 1)}-of-${digits(shards.length)}.safetensors`
    writeSafetensors(join(dir, name), 'bfloat16', shard)
    for (const tensor of shard) map[tensor.name] = name
  }
  const index = { metadata: { total_size: byteLength }, weight_map: map }
  writeFileSync(join(dir, 'model.safetensors.index.json'), JSON.stringify(index))
  return dir
}

/** Layouts: of a checkpoint of 2 GB, and that of 70 billion parameters with a 128th of each axis. */
const LAYOUTS = {
  '2 GB': { layers: 15, hidden: 2048, keys: 512, mlp: 8192, words: 32768 },
  '70B': { layers: 80, hidden: 64, keys: 8, mlp: 224, words: 250 },
}

/** A run that saved so many checkpoints, without their data. */
export function sparseRun(
  count: number,
  name: keyof typeof LAYOUTS = '2 GB',
): {
  readonly dir: string
  readonly headerBytes: number
  readonly tensors: number
} {
  const dir = scratchPath(`run-${count}-${name.replace(' ', '')}`)
  const tensors = layout(LAYOUTS[name])
  let headerBytes = 0
  for (let i = 1; i <= count; i++) {
    const path = join(dir, `checkpoint-${i * 100}`)
    mkdirSync(path, { recursive: true })
    headerBytes += writeSafetensors(join(path, 'model.safetensors'), 'bfloat16', tensors)
  }
  return { dir, headerBytes, tensors: count * tensors.length }
}

/** A checkpoint of zero tensors, 1 GB each for 20,000 rows, in sparse files. */
export function sparseZeros(count: number, rows = 20_000): string {
  const dir = scratchPath(`zeros-${count}-${rows}`)
  mkdirSync(dir)
  const tensors = Array.from({ length: count }, (_, i) => tensorOf(`layers.${i}.weight`, [rows, 25_000]))
  writeSafetensors(join(dir, 'model.safetensors'), 'bfloat16', tensors)
  return dir
}

/** A dump of SGLang: so many files, each of one tensor. @returns how many elements each has, and the bytes of all files */
export function dump(files: number): { readonly dir: string; readonly count: number; readonly byteLength: number } {
  const dir = scratchPath('dump')
  const count = 1024
  const content = tileBytes('float32').subarray(0, 4 * count)
  const file = torchZip({
    'data.pkl': pickled(tensor({ count, size: [4, 256], stride: [256, 1] })),
    'data/0': content,
    version: Buffer.from('3\n'),
  })
  mkdirSync(dir)
  const steps = 10
  for (let i = 0; i < files; i++) {
    const index = Math.floor(i / steps)
    writeFileSync(join(dir, `step=${i % steps}___rank=0___dump_index=${index}___name=layers.${index}.pt`), file)
  }
  return { dir, count, byteLength: files * file.length }
}

interface Sizes {
  readonly layers: number
  readonly hidden: number
  readonly keys: number
  readonly mlp: number
  readonly words: number
}

/** The tensors of a Llama. */
function layout({ layers, hidden, keys, mlp, words }: Sizes): CheckpointTensor[] {
  const layer = Array.from({ length: layers }, (_, weight) => {
    const of = (name: string, ...shape: number[]) => tensorOf(`model.layers.${weight}.${name}.weight`, shape)
    return [
      of('input_layernorm', hidden),
      of('mlp.down_proj', hidden, mlp),
      of('mlp.gate_proj', mlp, hidden),
      of('mlp.up_proj', mlp, hidden),
      of('post_attention_layernorm', hidden),
      of('self_attn.k_proj', keys, hidden),
      of('self_attn.o_proj', hidden, hidden),
      of('self_attn.q_proj', hidden, hidden),
      of('self_attn.v_proj', keys, hidden),
    ]
  })
  const [embeddings, norm] = [
    tensorOf('model.embed_tokens.weight', [words, hidden]),
    tensorOf('model.norm.weight', [hidden]),
  ]
  return [embeddings, ...layer.flat(), norm, tensorOf('lm_head.weight', [words, hidden])]
}

function tensorOf(name: string, shape: readonly number[]): CheckpointTensor {
  return { name, shape, count: shape.reduce((product, size) => product * size, 1) }
}

/** @param tile without it the data is a hole @returns the bytes of its header */
function writeSafetensors(
  path: string,
  dtype: CheckpointDType,
  tensors: readonly CheckpointTensor[],
  tile?: Uint8Array,
): number {
  const size = dtype === 'bfloat16' ? 2 : 4
  let end = 0
  const entries = tensors.map(({ name, shape, count }): [string, unknown] => {
    end += count * size
    return [name, { dtype: size === 2 ? 'BF16' : 'F32', shape, data_offsets: [end - count * size, end] }]
  })
  const json = JSON.stringify({ __metadata__: { format: 'pt' }, ...Object.fromEntries(entries) })
  const header = Buffer.from(json.padEnd(Math.ceil(json.length / 8) * 8))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(header.length))
  const file = openSync(path, 'w')
  writeSync(file, Buffer.concat([length, header]))
  if (tile === undefined) ftruncateSync(file, 8 + header.length + end)
  else {
    for (const { count } of tensors) {
      for (let at = 0; at < count; at += TILE) writeSync(file, tile, 0, Math.min(TILE, count - at) * size)
    }
  }
  closeSync(file)
  return 8 + header.length
}

/** The tile. */
export function tileBytes(dtype: CheckpointDType, kind: 'base' | 'tuned' = 'base'): Uint8Array<ArrayBuffer> {
  const values = Float32Array.from(normals(TILE, 1), value => WEIGHT * value)
  if (kind === 'tuned') {
    const changes = normals(TILE, 2)
    for (let i = 0; i < TILE; i++) if (i % 3 !== 0) values[i]! += CHANGE * changes[i]!
  }
  if (dtype === 'float32') return new Uint8Array(values.buffer)
  // To the nearest; of two, to the even one.
  const words = new Uint32Array(values.buffer)
  return new Uint8Array(Uint16Array.from(words, word => (word + 0x7fff + ((word >>> 16) & 1)) >>> 16).buffer)
}

function digits(i: number): string {
  return `${i}`.padStart(5, '0')
}
