/** Samples as points of a plane, step by step, beside what the model was given and what it made of it. */

import { nearestNames, QueryError, quote } from '../../base/errors.js'
import type { Mode } from '../../base/types.js'
import { argmax, elements } from '../../rules/base/labels.js'
import { LABELS } from '../../rules/base/names.js'
import { stepsAround } from '../../scan/catalog/step-selection.js'
import type { TensorValue } from '../../scan/job/tensor-value.js'
import type { ScanSelection } from '../../trial/scan-selection.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import { readValues } from '../../trial/values.js'
import type { EmbeddingStep, EmbeddingView } from '../data.js'
import type { Skeleton } from '../skeleton.js'
import { thinned } from '../thinning.js'
import { placedAway } from './away.js'
import { placeOf } from './classes.js'
import type { EmbedOptions } from './embed.js'
import { errorsOf, grey, imagesOf, outputOf } from './images.js'

export interface EmbeddingOptions {
  /** The tensor whose first axis is that of the samples. */
  readonly embed: string
  /** Default: labels by the hooks' names, where they fit. */
  readonly labels?: string | undefined
  /** The tensor of images. Default: the model's input, if it is images. */
  readonly images?: string | undefined
  /** The tensor of reconstructions. Default: the model's output, if it has the shape of the images. */
  readonly reconstructions?: string | undefined
  /** The perplexity of t-SNE. Default: 30. */
  readonly perplexity?: number | undefined
  /** The iterations of t-SNE and UMAP. Default: as `embed`. */
  readonly iterations?: number | undefined
}

/** Samples of several steps that are placed together. */
const MAX_POOL = 1000
const MAX_POINTS = 400
const MAX_STEPS = 24

/** The points of a tensor's samples at some steps. @throws QueryError for tensors that the trial does not have, or that have no samples */
export async function embeddingOf(
  trial: Trial,
  { embed: name, perplexity, iterations, ...named }: EmbeddingOptions,
  selection: ScanSelection,
  skeleton: Skeleton,
): Promise<EmbeddingView> {
  const tensor = nameFor(trial, name)
  const usual = imagesOf(trial)
  const images = named.images === undefined ? usual.images : nameFor(trial, named.images)
  const labels = named.labels === undefined ? labelsFor(trial, tensor) : nameFor(trial, named.labels)
  const ownOutput = named.images === undefined ? usual.reconstructions : outputOf(trial, images)
  const reconstructions = named.reconstructions === undefined ? ownOutput : nameFor(trial, named.reconstructions)
  const all = trial
    .tensor(tensor)
    .steps({ showIncompleteSteps: true })
    .filter(step => skeleton.stepAt(step) !== undefined)
  // Steps with labels are preferred.
  const labelled =
    labels === undefined
      ? all
      : all.filter(step =>
          stateOf(trial)
            .catalog.atStep(step)
            .some(({ tensors }) => tensors.has(labels)),
        )
  const candidates = labelled.length > 0 ? labelled : all
  const { steps: only, thinned: thinnedSteps } = thinned(candidates, step => skeleton.modeAt(step), MAX_STEPS)
  const names = [tensor, labels, images, reconstructions].filter(name => name !== undefined)
  const steps: Omit<EmbeddingStep, 'points' | 'pool'>[] = []
  const samples: Samples[] = []
  const labelsSeen = new Set<string>()
  for (const step of only) {
    const values = await valuesAt(trial, names, step, selection)
    const value = values.get(tensor)
    if (value === undefined) continue
    const rows = rowsOf(value)
    if (rows === null) {
      const message = `${quote(tensor)} has no samples to show as points: its shape is [${value.shape.join(', ')}]`
      throw new QueryError('NotSamples', message, { tensor, shape: value.shape })
    }
    const count = value.shape[0]!
    const valueNamed = (name: string | undefined) => (name === undefined ? undefined : values.get(name))
    const [label, given, reconstruction] = [valueNamed(labels), valueNamed(images), valueNamed(reconstructions)]
    const classes = label?.shape[0] === count && label.dtype !== 'string' ? labelsOf(label).slice(0, rows.length) : []
    const shownImages = given && grey(given, count)
    const shownMade = reconstruction && grey(reconstruction, count)
    if (classes.length > 0) labelsSeen.add(labels!)
    if (shownImages) labelsSeen.add(images!)
    if (shownMade) labelsSeen.add(reconstructions!)
    samples.push({ rows, mode: skeleton.modeAt(step) })
    steps.push({
      step: skeleton.stepAt(step)!,
      labels: classes,
      images: shownImages ?? null,
      reconstructions: shownMade ?? null,
      errors: given && reconstruction ? errorsOf(given, reconstruction, Math.min(count, MAX_POINTS)) : [],
    })
  }
  const placed = await inPools(samples, { perplexity, iterations, signal: selection.signal })
  const ifFound = (name: string | undefined) => (name !== undefined && labelsSeen.has(name) ? name : null)
  return {
    tensor,
    labels: ifFound(labels),
    images: ifFound(images),
    reconstructions: ifFound(reconstructions),
    steps: steps.map((step, i) => ({ ...step, ...placed[i]! })),
    thinned: thinnedSteps,
  }
}

/** The samples of a step. */
interface Samples {
  readonly rows: readonly Float64Array[]
  readonly mode: Mode
}

/** Places the samples of neighbouring steps of a mode together, so that their points can be compared. */
async function inPools(
  all: readonly Samples[],
  {
    signal,
    ...options
  }: Pick<EmbedOptions, 'perplexity' | 'iterations'> & { readonly signal: AbortSignal | undefined },
): Promise<readonly Pick<EmbeddingStep, 'points' | 'pool'>[]> {
  const pools: { mode: Mode; width: number; rows: Float64Array[]; members: number[] }[] = []
  for (const [i, { rows, mode }] of all.entries()) {
    const width = rows[0]!.length
    const last = pools.findLast(pool => pool.mode === mode)
    const fits = last !== undefined && last.width === width && last.rows.length + rows.length <= MAX_POOL
    const pool = fits ? last : { mode, width, rows: [], members: [] }
    if (!fits) pools.push(pool)
    pool.rows.push(...rows)
    pool.members.push(i)
  }
  const placed: Pick<EmbeddingStep, 'points' | 'pool'>[] = []
  for (const { rows, members } of pools) {
    const { tsne, umap, pca } = await placedAway(rows, options, signal)
    let first = 0
    for (const i of members) {
      const end = first + all[i]!.rows.length
      const pointsOfStep = (points: readonly (readonly [number, number])[]) => rounded(points.slice(first, end))
      const points = { tsne: pointsOfStep(tsne), umap: pointsOfStep(umap), pca: pointsOfStep(pca) }
      placed[i] = { points, pool: { samples: rows.length, steps: members.length } }
      first = end
    }
  }
  return placed
}

/** The tensor of that name, or the only one whose name begins with it. @throws QueryError */
function nameFor(trial: Trial, given: string): string {
  if (trial.hasTensor(given)) return given
  const names = stateOf(trial).catalog.names
  const begun = names.filter(name => name.includes(given))
  if (begun.length === 1) return begun[0]!
  const near = begun.length > 1 ? begun.slice(0, 5) : nearestNames(given, names)
  const hint =
    near.length > 0
      ? `; ${begun.length > 1 ? 'there are' : 'did you mean'} ${near.map(quote).join(', ')}${begun.length > 1 ? '' : '?'}`
      : ''
  throw new QueryError('TensorUnavailable', `${trial.name}: no tensor is called ${quote(given)}${hint}`, {
    tensor: given,
    nearest: near,
  })
}

/** Labels by the hooks' names, or the second input of the tensor's model, as in MXNet's autoencoders. */
function labelsFor(trial: Trial, tensor: string): string | undefined {
  const usual = placeOf(trial, 'labels', LABELS)
  if (usual !== undefined) return usual
  const second = `${tensor.split('_')[0]}_input_1`
  return trial.hasTensor(second) ? second : undefined
}

async function valuesAt(trial: Trial, tensors: readonly string[], step: number, selection: ScanSelection) {
  const { threads, memory, signal, checkLevel, workers } = selection
  const options = { tensors, steps: stepsAround(step), workers, threads, memory, checkLevel, signal }
  const values = new Map<string, TensorValue>()
  // The first of several workers is taken.
  for await (const { tensor, value, step: at } of readValues(trial, options)) {
    if (at === step && tensor !== null && value !== null && !values.has(tensor)) values.set(tensor, value)
  }
  return values
}

/** A row for each sample; null: there are none. Non-finite elements become 0. */
function rowsOf(value: TensorValue): readonly Float64Array[] | null {
  const { shape, dtype } = value
  const count = shape[0] ?? 0
  if (shape.length < 2 || count < 2 || dtype === 'string' || dtype.startsWith('complex')) return null
  const data = elements(value)
  const width = data.length / count
  if (width === 0) return null
  return Array.from({ length: Math.min(MAX_POINTS, count) }, (_, row) =>
    Float64Array.from({ length: width }, (_, i) => {
      const x = data[row * width + i]!
      return Number.isFinite(x) ? x : 0
    }),
  )
}

function labelsOf(value: TensorValue): readonly number[] {
  return value.shape.length === 2 && value.shape[1]! > 1 ? argmax(value) : Array.from(elements(value))
}

/** Points rounded to four digits. */
function rounded(points: readonly (readonly [number, number])[]): readonly (readonly [number, number])[] {
  return points.map(([x, y]) => [Number(x.toPrecision(4)), Number(y.toPrecision(4))])
}
