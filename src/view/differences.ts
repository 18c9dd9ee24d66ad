/** The differences of two runs for a page. */

import { entryOf } from '../base/maps.js'
import { counted, countText } from '../base/number-text.js'
import { Comparison } from '../compare/comparison.js'
import { suggestNames } from '../compare/names/suggest.js'
import type { TensorMap } from '../compare/names/tensor-map.js'
import { RunPairing, wantedBy } from '../compare/pairing.js'
import type { TensorDifference } from '../trial/measure/question.js'
import type { ScanSelection } from '../trial/scan-selection.js'
import type { Trial } from '../trial/trial.js'
import { MAX_EXACT, packedColumn } from './columns.js'
import type { ComparisonView, ServedComparison, ShownStatistic } from './data.js'
import { Skeleton } from './skeleton.js'

export interface RunDifferences extends ComparisonView {
  /** The difference of a tensor of a worker of the first run at a step; undefined where it was not compared. */
  apartAt(worker: string, tensor: string, step: number): Apart | undefined
}

/** The distance of two tensors. */
interface Apart {
  /** ‖a − b‖ / ‖a‖; NaN where a or b has NaN or infinities. */
  readonly norm: number
  /** The share of the elements that differ; null where only reductions were saved. */
  readonly changed: number | null
}

/** Compares two runs tensor by tensor. @throws what a scan throws */
export async function differencesOf(
  a: Trial,
  b: Trial,
  map: TensorMap,
  selection: ScanSelection,
): Promise<RunDifferences> {
  const apart = new Map<string, Map<number, Apart>>()
  const pairing = new RunPairing(a, b, map)
  const comparison = new Comparison(pairing, {
    ...selection,
    keepDifferences: false,
    onApart: ({ worker, tensor, step }, mean, difference) => {
      const ofTensor = entryOf(apart, `${worker}\n${tensor}`, () => new Map<number, Apart>())
      ofTensor.set(step, apartOf(mean, difference))
    },
  })
  const wanted = wantedBy(pairing, selection)
  const others = new Set<number>(b.steps({ showIncompleteSteps: true }))
  const steps = [...wanted.keys()].filter(step => others.has(pairing.stepInB(step))).sort((x, y) => x - y)
  await comparison.steps(steps, wanted, () => false)
  const { divergence, counts } = comparison
  const [step] = steps
  const suggestions = step === undefined ? [] : await suggestNames(pairing, step)
  const [ofA, ofB] = [wanted.size, others.size]
  // Where the runs share few steps, they may differ before.
  const some =
    2 * steps.length <= Math.min(ofA, ofB)
      ? ` of the ${counted(steps.length, 'step')} that both have (A ${ofA}, B ${ofB})`
      : ''
  const lacks = [
    ...(comparison.problems.size > 0 ? ['some could not be read'] : []),
    ...(counts.missing > 0 ? [`${countText(counts.missing)} were not compared`] : []),
    ...(steps.length < Math.max(ofA, ofB) ? [`${counted(steps.length, 'step')} are in both (A ${ofA}, B ${ofB})`] : []),
    ...(counts.reduced > 0 ? [`of ${countText(counts.reduced)} only reductions were compared`] : []),
  ]
  const all = counted(counts.compared, 'tensor value')
  const verdict =
    counts.compared === 0
      ? nothingCompared(a, b)
      : divergence === null
        ? lacks.length === 0
          ? `The runs do not differ: ${all} were compared, and each is equal in both.`
          : `No difference in what was compared, ${all}: ${lacks.join('; ')}.`
        : `The runs first differ at step ${divergence.step}${some}, in ${divergence.tensor} of ${divergence.worker}: ${divergence.message}.`
  return {
    verdict,
    differ: divergence !== null,
    partial: lacks.length > 0,
    compared: counts.compared,
    suggested: Object.fromEntries(suggestions.map(({ tensor, otherTensor }) => [tensor, otherTensor])),
    apartAt: (worker, tensor, step) => apart.get(`${worker}\n${tensor}`)?.get(step),
  }
}

/** The statistics of two trials together, for the page of a server. */
export const COMPARED_STATISTICS = ['difference', 'changed'] as const satisfies readonly ShownStatistic[]

/** The differences of two trials, with the statistics of the series and steps that the first has. @throws what a scan throws */
export async function comparedView(a: Trial, b: Trial, selection: ScanSelection): Promise<ServedComparison> {
  const { steps, series, tensors, workers } = await Skeleton.of(a, {})
  const { apartAt, ...view } = await differencesOf(a, b, {}, selection)
  const isExact = series.length * steps.length <= MAX_EXACT
  const columns = COMPARED_STATISTICS.map(name => {
    const isThere = new Set<number>()
    const numbers = new Float64Array(series.length * steps.length).fill(Number.NaN)
    for (const [row, { tensor, worker }] of series.entries()) {
      for (const [i, step] of steps.entries()) {
        const apart = apartAt(workers[worker]!, tensors[tensor]!, step)
        const value = name === 'difference' ? apart?.norm : apart?.changed
        if (value == null) continue
        numbers[row * steps.length + i] = value
        isThere.add(row * steps.length + i)
      }
    }
    return packedColumn({ name, every: 1, isExact }, numbers, i => isThere.has(i))
  })
  return { ...view, steps: steps.length, columns }
}

/** The distance of two tensors. @param difference undefined where only reductions were saved, which are `mean` apart */
function apartOf(mean: number, difference: TensorDifference | undefined): Apart {
  if (difference === undefined) return { norm: mean, changed: null }
  if (mean === 0) return { norm: 0, changed: 0 }
  const { relativeNorm, unequalCount, count } = difference
  return { norm: relativeNorm ?? Number.NaN, changed: unequalCount / count }
}

function nothingCompared(a: Trial, b: Trial): string {
  const [ofA, ofB] = [a.workers(), b.workers()]
  const hasWorker = ofA.some(worker => ofB.includes(worker))
  return hasWorker || ofA.length === 0 || ofB.length === 0
    ? 'Nothing was compared: the runs have no tensor at a step in common.'
    : `Nothing was compared: workers are compared by their names, and those of the first run (${ofA.join(', ')}) are called otherwise than those of the second (${ofB.join(', ')}).`
}
