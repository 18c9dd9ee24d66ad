/** Samples as points of a plane: one call for all methods. */

import { setImmediate } from 'node:timers/promises'
import { shown } from '../../base/arguments.js'
import { UsageError } from '../../base/errors.js'
import { checkOptions, kinds, optionsOf } from '../../base/options.js'
import { EMBEDDING_METHODS, type EmbeddingMethod } from '../data.js'
import { pca, seeded, tsneInTurns } from './projections.js'

export interface EmbedOptions {
  /** Default: `tsne`. */
  readonly method?: EmbeddingMethod
  /** The perplexity of t-SNE: roughly the number of neighbours of a sample. Default: 30; at most a third of the samples. */
  readonly perplexity?: number | undefined
  /** The iterations of t-SNE and UMAP. Default: 350 for t-SNE; by the number of samples for UMAP. */
  readonly iterations?: number | undefined
  /** The seed: the same one gives the same points. Default: a fixed one. */
  readonly seed?: number
}

const EMBED_OPTIONS = optionsOf<EmbedOptions>({
  method: kinds.that<EmbeddingMethod>(`one of ${EMBEDDING_METHODS.join(', ')}`, value =>
    EMBEDDING_METHODS.includes(value as EmbeddingMethod),
  ),
  perplexity: kinds.that<number>('a number from 1 on', value => typeof value === 'number' && value >= 1),
  iterations: kinds.wholeNumber(1, 100_000),
  seed: kinds.wholeNumber(0),
})

const SEED = 20_201
/** The largest number of samples: t-SNE takes memory and time by its square. */
const MAX_SAMPLES = 5000
/** The least number of samples for UMAP, which needs neighbours. */
const MIN_UMAP_SAMPLES = 4
/** The milliseconds after which the work yields. */
const TURN_MS = 10

/**
 * Projects samples into a plane: t-SNE, UMAP or PCA, each with the same points for the same samples and options.
 * @param values a row of numbers for each sample: arrays, or a value whose first axis is that of the samples
 * @throws UsageError
 */
export async function embed(
  values:
    | readonly ArrayLike<number>[]
    | { readonly data: ArrayLike<number | bigint>; readonly shape: readonly number[] },
  options?: EmbedOptions,
): Promise<readonly (readonly [x: number, y: number])[]> {
  const { method = 'tsne', perplexity, iterations, seed = SEED } = checkOptions('embed', EMBED_OPTIONS, options)
  const rows = rowsOf(values)
  const width = rows[0]?.length ?? 0
  if (rows.length > MAX_SAMPLES)
    throw new UsageError(`embed: expected at most ${MAX_SAMPLES} samples, got ${rows.length}`)
  if (rows.some(row => row.length !== width || width === 0 || !Array.prototype.every.call(row, Number.isFinite)))
    throw new UsageError('embed: expected rows of finite numbers, as many in each')
  if (method === 'pca' || (method === 'umap' && rows.length < MIN_UMAP_SAMPLES)) return pca(rows)
  if (method === 'tsne') return inTurns(tsneInTurns(rows, perplexity, iterations))
  const { umapInTurns } = await import('./umap.js')
  const plain = rows.map(row => Array.from(row))
  return inTurns(umapInTurns(plain, seeded(seed), iterations))
}

export type PlacedByAll = Readonly<Record<EmbeddingMethod, readonly (readonly [x: number, y: number])[]>>

/** Projects samples by each method. */
export async function placedByAll(
  rows: readonly Float64Array[],
  options: Pick<EmbedOptions, 'perplexity' | 'iterations'>,
): Promise<PlacedByAll> {
  return {
    tsne: await embed(rows, { method: 'tsne', ...options }),
    umap: await embed(rows, { method: 'umap', ...options }),
    pca: await embed(rows, { method: 'pca' }),
  }
}

/** Runs a generator's work in turns with other work of the thread. */
async function inTurns<T>(work: Generator<void, T>): Promise<T> {
  for (;;) {
    const until = performance.now() + TURN_MS
    while (performance.now() < until) {
      const { done, value } = work.next()
      if (done) return value
    }
    await setImmediate()
  }
}

function rowsOf(
  values:
    | readonly ArrayLike<number>[]
    | { readonly data: ArrayLike<number | bigint>; readonly shape: readonly number[] },
): readonly ArrayLike<number>[] {
  if (Array.isArray(values)) return values
  const { data, shape } = (values ?? {}) as {
    readonly data: ArrayLike<number | bigint>
    readonly shape: readonly number[]
  }
  const [count = 0] = Array.isArray(shape) ? shape : []
  const width = count === 0 ? 0 : (data?.length ?? 0) / count
  if (shape === undefined || shape.length < 2 || !Number.isInteger(width)) {
    throw new UsageError(
      `embed: expected values to be arrays of numbers, or a value whose first axis is that of the samples, got ${shown(values)}`,
    )
  }
  return Array.from({ length: count }, (_, row) =>
    Float64Array.from({ length: width }, (_, i) => Number(data[row * width + i])),
  )
}
