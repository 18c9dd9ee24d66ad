/** The curve of true over false positives (ROC), and the area below it. */

import * as Plot from '@observablehq/plot'
import type { ClassesStep } from '../../../data.js'
import { h } from '../../dom.js'
import { actions, describe, STYLE } from '../../pictures/charts.js'
import { short } from '../../text.js'

/** The ROC curve of two classes: true positives over false positives. @param at the step */
export function roc(
  { samples, scores, counts, undecided }: ClassesStep,
  classes: readonly number[],
  at: string,
  width: number,
  color: string,
): HTMLElement[] {
  const points = rocOf(
    samples.map(([label]) => label === 1),
    scores,
  )
  if (points === null)
    return [h('p', { class: 'muted' }, 'There is no ROC of samples of one class, or with a score that is NaN.')]
  const area = areaBelow(points)
  const total = counts.reduce((sum, count) => sum + count, undecided)
  const some = samples.length < total ? `, of the first ${samples.length} of ${total} samples` : ''
  const label = `ROC of class ${classes[1]} at step ${at}${some}: the area below it (AUC) is ${short(Number(area.toPrecision(4)))}`
  const svg = Plot.plot({
    width,
    height: Math.min(width, 350),
    marginTop: 30,
    marginLeft: 56,
    marginBottom: 40,
    style: STYLE,
    x: { label: 'false positives, of all negatives', labelOffset: 36, domain: [0, 1], ticks: 5 },
    y: { label: 'true positives, of all positives', domain: [0, 1], ticks: 5 },
    marks: [
      Plot.line(
        [
          { x: 0, y: 0 },
          { x: 1, y: 1 },
        ],
        { x: 'x', y: 'y', strokeOpacity: 0.3 },
      ),
      Plot.line(points, { x: 'x', y: 'y', stroke: color, strokeWidth: 1.75 }),
    ],
  })
  describe(svg, label)
  const rows = () => [['false positives', 'true positives'], ...points.map(({ x, y }) => [x, y])]
  return [h('h4', {}, `${label}.`), svg as unknown as HTMLElement, actions(label, rows, svg)]
}

/** The points of a ROC curve. Null: there are no scores, or all samples are of one class. */
function rocOf(
  isPositive: readonly boolean[],
  scores: readonly number[],
): { readonly x: number; readonly y: number }[] | null {
  const order = [...scores.keys()].sort((a, b) => scores[b]! - scores[a]!)
  const positives = order.filter(i => isPositive[i]).length
  const negatives = order.length - positives
  if (positives === 0 || negatives === 0 || scores.some(Number.isNaN)) return null
  let [hits, misses] = [0, 0]
  const points = [{ x: 0, y: 0 }]
  for (const [at, i] of order.entries()) {
    if (isPositive[i]) hits++
    else misses++
    // Samples with equal scores make one point.
    if (scores[order[at + 1] ?? -1] !== scores[i]) points.push({ x: misses / negatives, y: hits / positives })
  }
  return points
}

function areaBelow(points: readonly { readonly x: number; readonly y: number }[]): number {
  return points.slice(1).reduce((sum, { x, y }, i) => sum + ((x - points[i]!.x) * (y + points[i]!.y)) / 2, 0)
}
