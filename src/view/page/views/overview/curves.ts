/** Losses and metrics over the steps, beside the flow of gradients. */

import type { Kind } from '../../../../trial/kinds/kinds.js'
import { h } from '../../dom.js'
import { link, type OpenTensor } from '../../names.js'
import { columnsFor, type Line, type LineChartOptions, lineChart } from '../../pictures/charts.js'
import { isDashed, modeColor, runColor } from '../../pictures/colors.js'
import { linesOf } from '../../remarks.js'
import { KIND_NAMES, short, shown } from '../../text.js'
import type { ShownTrial } from '../../trials.js'
import type { Flowing } from './flow.js'
import { HIGHER } from './scorecard.js'

const MAX_CHARTS = 12

/** Lines of one chart. */
export interface Curve {
  readonly kind: Kind
  readonly title: string
  /** The tensors. */
  readonly names: readonly string[]
  readonly lines: readonly Line[]
  /** The best value of validation; null if there is none, or if two trials are compared. */
  readonly best: (Line['points'][number] & { readonly name: string }) | null
}

/** Names of a number of the training and of its validation, as XGBoost has them. */
const SPLIT = /^(train|validation|valid|val|eval|test)[-_/](.+)$/

/** The curves of a kind: one for each tensor, and one for a number of the training and its validation together. */
export async function curvesOf(trials: readonly ShownTrial[], kind: Kind): Promise<readonly Curve[]> {
  const isPair = trials.length > 1
  const all = await Promise.all(trials.map(trial => linesOf(trial, kind, 'mean')))
  const groups = new Map<string, string[]>()
  for (const { tensor } of all.flat()) {
    const key = SPLIT.exec(tensor)?.[2] ?? tensor
    const group = groups.get(key) ?? []
    groups.set(key, group.includes(tensor) ? group : [...group, tensor])
  }
  return [...groups].map(([key, names]) => {
    const lines = all.flatMap((linesOfTrial, place) =>
      linesOfTrial
        .filter(({ tensor }) => names.includes(tensor))
        .map(({ tensor, mode, steps, values }) => {
          const part = names.length > 1 ? SPLIT.exec(tensor)?.[1] : undefined
          const shownMode = part === undefined ? mode : part === 'train' ? 'TRAIN' : 'EVAL'
          return {
            name: [isPair ? 'AB'[place]! : '', part ?? mode].filter(Boolean).join(' '),
            color: isPair ? runColor(place) : modeColor(shownMode),
            isDashed: isPair && isDashed(shownMode),
            isValidation: shownMode === 'EVAL',
            points: steps.map((x, i) => ({ x, y: values[i]! })),
          }
        }),
    )
    const validation = kind === 'losses' && !isPair ? lines.find(({ isValidation }) => isValidation) : undefined
    const title = names.length > 1 ? key : names[0]!
    return { kind, title, names, lines, best: bestOf(validation, HIGHER.test(title)) }
  })
}

/** @param isAlone true if it is the only one of its kind @param width of the picture @param marks the causes */
function curveCard(
  { kind, title, names, lines, best }: Curve,
  isAlone: boolean,
  width: number,
  marks: LineChartOptions['marks'] & object,
  open: OpenTensor,
): HTMLElement {
  const ends = lines.map(({ name, points }) => `${name} from ${short(points[0]!.y)} to ${short(points.at(-1)!.y)}`)
  const isLog = kind === 'losses' && spansDecades(lines)
  const label = `${shown(title)} over the steps: ${ends.join('; ')}.`
  const isOne = names.length === 1
  const links = names.flatMap((name, i) => [i === 0 ? '' : ' · ', link(name, open)])
  return h(
    'article',
    { class: 'curve' },
    h('h2', {}, ...(isAlone ? [KIND_NAMES[kind]!] : isOne ? links : [shown(title)])),
    h(
      'div',
      { class: 'card' },
      isAlone || !isOne ? h('h4', {}, ...links) : null,
      lineChart({
        label: best === null ? label : `${label} The best ${best.name} is ${short(best.y)}, at step ${best.x}.`,
        lines,
        height: 300,
        width,
        isLog,
        ...(isLog && { yLabel: 'logarithmic' }),
        ...(kind === 'losses' && { marks }),
        rings: best === null ? [] : [best],
      }),
      best === null ? null : h('p', { class: 'note' }, `○ The best ${best.name}: ${short(best.y)}, at step ${best.x}.`),
    ),
  )
}

/** The best of some finite points. */
function bestOf(line: Line | undefined, isHigher: boolean): Curve['best'] {
  const finite = line?.points.filter(({ y }) => Number.isFinite(y)) ?? []
  const best = finite.reduce<Line['points'][number] | null>(
    (best, point) => (best === null || (isHigher ? point.y > best.y : point.y < best.y) ? point : best),
    null,
  )
  return best && { ...best, name: line!.name }
}

/** True if all numbers are above 0, and the largest is a hundred times the smallest. */
function spansDecades(lines: readonly Line[]): boolean {
  const all = lines.flatMap(({ points }) => points.map(({ y }) => y)).filter(Number.isFinite)
  const [least, most] = [Math.min(...all), Math.max(...all)]
  return least > 0 && most >= 100 * least
}

/** The curves and the flow of gradients, in as many columns as there is room for. */
export function courses(
  trials: readonly ShownTrial[],
  curves: readonly Curve[],
  flowing: Flowing | null,
  open: OpenTensor,
): HTMLElement {
  const drawn = curves.slice(0, MAX_CHARTS)
  const { column, picture } = columnsFor(drawn.length + (flowing === null ? 0 : 1))
  const marks = causesOf(trials)
  const cards = drawn.map(curve =>
    curveCard(curve, curves.filter(({ kind }) => kind === curve.kind).length === 1, picture, marks, open),
  )
  const rest = curves.length - drawn.length
  return h(
    'div',
    {},
    h(
      'div',
      { class: 'courses', style: `--column: ${Math.max(280, column - 40)}px` },
      ...cards.slice(0, 1),
      flowing?.(picture) ?? null,
      ...cards.slice(1),
    ),
    rest > 0 ? h('p', { class: 'muted' }, `and ${rest} more, under Tensors.`) : null,
  )
}

/** The first step at which each rule found a cause, the rules of a step together. */
function causesOf(trials: readonly ShownTrial[]): { readonly x: number; readonly text: string }[] {
  const rules = new Map<number, Set<string>>()
  for (const [i, { view }] of trials.entries()) {
    const seen = new Set<string>()
    for (const { rule, step, cause } of view.findings) {
      if (cause !== null || seen.has(rule)) continue
      seen.add(rule)
      const number = view.steps[step]!
      rules.set(number, (rules.get(number) ?? new Set()).add(trials.length > 1 ? `${'AB'[i]} ${rule}` : rule))
    }
  }
  return [...rules].sort(([a], [b]) => a - b).map(([x, names]) => ({ x, text: shown([...names].join(', ')) }))
}
