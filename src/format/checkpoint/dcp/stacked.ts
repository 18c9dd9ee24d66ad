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

/** The tensors, stacked ones layer by layer. Nothing is stacked unless all that may be have as many layers, within the limits. */
export async function layerByLayer(all: readonly SizedTensor[]): Promise<StoredTensor[]> {
  const shapes = new Map(all.map(({ tensor: { name, shape } }) => [name, shape]))
  const isStacked = ({ name, shape, blocks }: StoredTensor): boolean =>
    STACKED.test(name) &&
    shape.length > 1 &&
    blocks.length > 0 &&
    shapes.get(name.replace(OF_OPTIMIZER, ''))?.join() === shape.join()
  const stacked = new Set(all.filter(({ tensor }) => isStacked(tensor)))
  const counts = new Set(Array.from(stacked, ({ tensor }) => tensor.shape[0]!))
  const [count = 0] = counts
  let added = 0
  for (const { tensor } of stacked) for (const { shape } of tensor.blocks) added += (shape?.[0] ?? count) - 1
  const isWithin = count <= MAX_LAYERS && count * stacked.size <= MAX_LAYERS_OF_ALL && added <= MAX_ADDED_BLOCKS
  if (counts.size !== 1 || !isWithin) return all.map(({ tensor }) => tensor)
  const due = turnsWhenDue()
  const tensors: StoredTensor[] = []
  for (const entry of all) {
    if (stacked.has(entry)) for (const layer of layersOf(entry)) tensors.push(layer)
    else tensors.push(entry.tensor)
    await due()
  }
  return tensors
}

function layersOf({ tensor, elementByteLength }: SizedTensor): StoredTensor[] {
  const [, before, after] = STACKED.exec(tensor.name)!
  const [count = 0, ...shape] = tensor.shape
  const blocks: Block[][] = Array.from({ length: count }, () => [])
  for (const { file, start, offsets, shape: shapeOfBlock } of tensor.blocks) {
    const [first = 0, ...others] = offsets ?? tensor.shape.map(() => 0)
    const [layers = 0, ...shape] = shapeOfBlock ?? tensor.shape
    const layerByteLength = shape.reduce((product, size) => product * size, elementByteLength)
    for (let i = 0; i < layers; i++) {
      blocks[first + i]!.push({ file, start: start + i * layerByteLength, offsets: others, shape })
    }
  }
  return blocks.map((blocks, layer) => ({ ...tensor, name: `${before}.${layer}.${after}`, shape, blocks }))
}
