/** Layers that Megatron saves as one tensor of [layers, …], `decoder.layers.mlp.linear_fc1.weight`: each becomes a tensor of its own. */

import { turnsWhenDue } from '../../../base/turns.js'
import type { Block, StoredTensor } from '../stored-tensor.js'

/** The name before and after the number of a layer, which is missing. */
const STACKED = /^((?:.*[.])?layers)[.](?!\d+(?:[.]|$))(.+)$/
const OF_OPTIMIZER = /^optimizer[.]state[.][^.]+[.]/

/** A tensor of a checkpoint, and the length of its elements. */
export interface SizedTensor {
  readonly tensor: StoredTensor
  readonly elementByteLength: number
}

/** The limits for `.metadata` of few bytes that claims many layers: of a tensor, of all tensors, and of the blocks that are cut apart. */
const MAX_LAYERS = 4096
const MAX_LAYERS_OF_ALL = 1 << 18
const MAX_ADDED_BLOCKS = 1 << 20

/** The tensors of a checkpoint, and what keeps stacked ones from being cut; null: nothing does. */
interface Layers {
  readonly tensors: readonly StoredTensor[]
  readonly fault: string | null
}

/** The tensors, stacked ones layer by layer. Nothing is cut unless all that may be stacked have as many layers, within the limits. */
export async function layerByLayer(all: readonly SizedTensor[]): Promise<Layers> {
  const shapes = new Map(all.map(({ tensor: { name, shape } }) => [name, shape]))
  const isStacked = ({ name, shape, blocks }: StoredTensor): boolean =>
    STACKED.test(name) &&
    shape.length > 1 &&
    blocks.length > 0 &&
    shapes.get(name.replace(OF_OPTIMIZER, ''))?.join() === shape.join()
  const stacked = new Set(all.filter(({ tensor }) => isStacked(tensor)))
  const fault = faultOf(Array.from(stacked, ({ tensor }) => tensor))
  if (stacked.size === 0 || fault !== null) return { tensors: all.map(({ tensor }) => tensor), fault }
  const due = turnsWhenDue()
  const tensors: StoredTensor[] = []
  for (const entry of all) {
    if (stacked.has(entry)) for (const layer of layersOf(entry)) tensors.push(layer)
    else tensors.push(entry.tensor)
    await due()
  }
  return { tensors, fault: null }
}

function faultOf(stacked: readonly StoredTensor[]): string | null {
  const [count = 0, other] = new Set(stacked.map(({ shape }) => shape[0]!))
  if (other !== undefined) return `expected as many layers in each tensor, got ${count} and ${other}`
  let added = 0
  for (const { blocks } of stacked) for (const { shape } of blocks) added += (shape?.[0] ?? count) - 1
  const limits = [
    [count, MAX_LAYERS, 'layers'],
    [count * stacked.length, MAX_LAYERS_OF_ALL, 'layers of all tensors together'],
    [added, MAX_ADDED_BLOCKS, 'more chunks'],
  ] as const
  const excess = limits.find(([number, limit]) => number > limit)
  return excess ? `expected at most ${excess[1]} ${excess[2]}, got ${excess[0]}` : null
}

function layersOf({ tensor, elementByteLength }: SizedTensor): StoredTensor[] {
  const [, before, after] = STACKED.exec(tensor.name)!
  const [count = 0, ...shape] = tensor.shape
  const blocks: Block[][] = Array.from({ length: count }, () => [])
  for (const { file, start, offsets, shape: shapeOfBlock, strides } of tensor.blocks) {
    const [first = 0, ...others] = offsets ?? tensor.shape.map(() => 0)
    const [layers = 0, ...shape] = shapeOfBlock ?? tensor.shape
    const step = strides?.[0] ?? shape.reduce((product, size) => product * size, 1)
    for (let i = 0; i < layers; i++) {
      blocks[first + i]!.push({
        file,
        start: start + i * step * elementByteLength,
        offsets: others,
        shape,
        ...(strides && { strides: strides.slice(1) }),
      })
    }
  }
  return blocks.map((blocks, layer) => ({ ...tensor, name: `${before}.${layer}.${after}`, shape, blocks }))
}
