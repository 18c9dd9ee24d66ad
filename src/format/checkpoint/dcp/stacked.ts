/** Layers that Megatron saves as one tensor of [layers, …], `decoder.layers.mlp.linear_fc1.weight`: each becomes a tensor of its own. */

import type { Block, StoredTensor } from '../stored-tensor.js'

/** The name before and after the number of a layer, which is missing. */
const STACKED = /^((?:.*[.])?layers)[.](?!\d+(?:[.]|$))(.+)$/
const OF_OPTIMIZER = /^optimizer[.]state[.][^.]+[.]/

/** A tensor of a checkpoint, and the length of its elements. */
export interface SizedTensor {
  readonly tensor: StoredTensor
  readonly elementByteLength: number
}

/** The tensors, stacked ones layer by layer. Nothing is stacked unless all that may be have as many layers. */
export function layerByLayer(all: readonly SizedTensor[]): StoredTensor[] {
  const shapes = new Map(all.map(({ tensor: { name, shape } }) => [name, shape]))
  const isStacked = ({ name, shape }: StoredTensor): boolean =>
    STACKED.test(name) && shape.length > 1 && shapes.get(name.replace(OF_OPTIMIZER, ''))?.join() === shape.join()
  const counts = new Set(all.flatMap(({ tensor }) => (isStacked(tensor) ? [tensor.shape[0]!] : [])))
  if (counts.size !== 1) return all.map(({ tensor }) => tensor)
  return all.flatMap(entry => (isStacked(entry.tensor) ? layersOf(entry) : entry.tensor))
}

function layersOf({ tensor, elementByteLength }: SizedTensor): StoredTensor[] {
  const [, before, after] = STACKED.exec(tensor.name)!
  const [count = 0, ...shape] = tensor.shape
  return Array.from({ length: count }, (_, layer) => ({
    ...tensor,
    name: `${before}.${layer}.${after}`,
    shape,
    blocks: tensor.blocks.flatMap(block => layerOf(block, layer, tensor.shape, elementByteLength)),
  }))
}

/** The part of a block that is of a layer. */
function layerOf(
  { file, start, offsets, shape: shapeOfBlock }: Block,
  layer: number,
  whole: readonly number[],
  elementByteLength: number,
): Block[] {
  const [first = 0, ...others] = offsets ?? whole.map(() => 0)
  const [layers = 0, ...shape] = shapeOfBlock ?? whole
  if (layer < first || layer >= first + layers) return []
  const layerByteLength = shape.reduce((product, size) => product * size, elementByteLength)
  return [{ file, start: start + (layer - first) * layerByteLength, offsets: others, shape }]
}
