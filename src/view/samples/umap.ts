/** UMAP (McInnes, Healy, Melville 2018): the one module that knows umap-js, with which it is bundled. */

import { UMAP } from 'umap-js'

export function umap(
  rows: readonly (readonly number[])[],
  random: () => number,
): readonly (readonly [number, number])[] {
  const nNeighbors = Math.max(2, Math.min(15, rows.length - 1))
  const found = new UMAP({ nComponents: 2, nNeighbors, random }).fit(rows.map(row => [...row]))
  return found.map(([x = 0, y = 0]) => [x, y])
}
