/** UMAP (McInnes, Healy, Melville 2018) by umap-js, which this module alone imports. */

import { UMAP } from 'umap-js'

/** Projects rows by UMAP; it yields between its iterations. */
export function* umapInTurns(
  rows: readonly (readonly number[])[],
  random: () => number,
  iterations?: number,
): Generator<void, readonly (readonly [number, number])[]> {
  const nNeighbors = Math.max(2, Math.min(15, rows.length - 1))
  const umap = new UMAP({
    nComponents: 2,
    nNeighbors,
    random,
    ...(iterations !== undefined && { nEpochs: iterations }),
  })
  const epochs = umap.initializeFit(rows.map(row => [...row]))
  for (let epoch = 0; epoch < epochs; epoch++) {
    umap.step()
    yield
  }
  return umap.getEmbedding().map(([x = 0, y = 0]) => [x, y])
}
