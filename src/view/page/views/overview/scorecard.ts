/** Two trials on one screen: their final losses and accuracies, the layers that changed most, and what only one of them has. */

import type { Kind } from '../../../../trial/kinds/kinds.js'
import { h } from '../../dom.js'
import { badge, breakable, link, type OpenTensor } from '../../names.js'
import { actions } from '../../pictures/charts.js'
import { linesOf } from '../../remarks.js'
import { counted, even, short, shown } from '../../text.js'
import type { ShownTrial } from '../../trials.js'
import { accuracies } from '../samples/classes.js'

const MAX_ROWS = 12
const MAX_LAYERS = 10
const MAX_NAMES = 4

/** Names of numbers of which higher is better. */
export const HIGHER = /acc|auc|f1|precision|recall|top_?k|bleu/i

/** A number of a mode in both trials. */
interface Score {
  readonly name: string
  readonly mode: string
  /** The last and the best value of A, then of B; null if there are none. */
  readonly ends: readonly (End | null)[]
}

interface End {
  readonly last: number
  readonly best: number
  readonly bestStep: number
}

/** @param suggested names of A, each with the one in B that may be the same */
export async function scorecard(
  trials: readonly ShownTrial[],
  suggested: Readonly<Record<string, string>>,
  open: OpenTensor,
): Promise<HTMLElement> {
  const [scores, changed] = await Promise.all([scoresOf(trials), mostChanged(trials[0]!, open)])
  return h(
    'section',
    { class: 'courses', style: '--column: 560px' },
    scores.length === 0 ? null : scoreTable(scores),
    changed,
    unmatched(trials, suggested, scores.length > 0),
  )
}

async function scoresOf(trials: readonly ShownTrial[]): Promise<readonly Score[]> {
  const scores = new Map<string, Score & { ends: (End | null)[] }>()
  for (const [place, trial] of trials.entries()) {
    const lines = [...(await named(trial, 'losses')), ...(await named(trial, 'metrics')), ...(await accuracies(trial))]
    for (const { name, mode, steps, values } of lines) {
      const key = JSON.stringify([name, mode])
      const score = scores.get(key) ?? { name, mode, ends: [null, null] }
      scores.set(key, score)
      score.ends[place] = endOf(steps, values, HIGHER.test(name))
    }
  }
  return [...scores.values()]
}

async function named(trial: ShownTrial, kind: Kind) {
  return (await linesOf(trial, kind, 'mean')).map(({ tensor: name, mode, steps, values }) => ({
    name,
    mode,
    steps,
    values,
  }))
}

function endOf(steps: readonly number[], values: readonly number[], isHigher: boolean): End {
  let at = -1
  for (const [i, value] of values.entries()) {
    if (Number.isFinite(value) && (at < 0 || (isHigher ? value > values[at]! : value < values[at]!))) at = i
  }
  return { last: values.at(-1)!, best: values[at] ?? Number.NaN, bestStep: steps[at] ?? Number.NaN }
}

function scoreTable(scores: readonly Score[]): HTMLElement {
  const cell = (value: number | undefined, other: number | undefined, isHigher: boolean, title = '') => {
    const isBetter = value !== undefined && other !== undefined && (isHigher ? value > other : value < other)
    return h(
      'td',
      {
        class: isBetter ? 'number better' : 'number',
        ...(value !== undefined && { title: `${short(value)}${title}` }),
      },
      value === undefined ? '–' : even(value),
    )
  }
  const rows = scores.slice(0, MAX_ROWS).map(({ name, mode, ends: [a, b] }) => {
    const isHigher = HIGHER.test(name)
    const at = (end: End | null | undefined) => (end ? ` at step ${end.bestStep}` : '')
    return h(
      'tr',
      {},
      h('th', { scope: 'row', title: shown(name) }, ...breakable(shown(name)), h('div', { class: 'muted' }, mode)),
      cell(a?.last, b?.last, isHigher),
      cell(b?.last, a?.last, isHigher),
      cell(a?.best, b?.best, isHigher, at(a)),
      cell(b?.best, a?.best, isHigher, at(b)),
    )
  })
  const heads = ['', 'A final', 'B final', 'A best', 'B best']
  return h(
    'div',
    {},
    h('h3', {}, 'Final and best'),
    h(
      'div',
      { class: 'wide' },
      h(
        'table',
        { class: 'scores' },
        h('thead', {}, h('tr', {}, ...heads.map(text => h('th', { scope: 'col' }, text)))),
        h('tbody', {}, ...rows),
      ),
    ),
    scores.length > MAX_ROWS ? h('p', { class: 'muted' }, `and ${scores.length - MAX_ROWS} more, in the CSV`) : null,
    actions(
      'the final and best numbers of A and B',
      () => [
        ['number', 'mode', 'A final', 'B final', 'A best', 'A best step', 'B best', 'B best step'],
        ...scores.map(({ name, mode, ends: [a, b] }) => [
          name,
          mode,
          a?.last ?? '',
          b?.last ?? '',
          a?.best ?? '',
          a?.bestStep ?? '',
          b?.best ?? '',
          b?.bestStep ?? '',
        ]),
      ],
      null,
    ),
  )
}

/** The tensors that are furthest apart at the last step that both have. Null: they were not compared. */
async function mostChanged(a: ShownTrial, open: OpenTensor): Promise<HTMLElement | null> {
  if (!a.statistics.includes('difference')) return null
  const { view } = a
  const column = await a.column('difference', { kind: 'all' })
  if (column === null) return null
  const furthest = (kinds: readonly Kind[]) => {
    const steps = [...view.steps.keys()].filter(step => column.has(step)).reverse()
    for (const step of steps) {
      const rows = [...view.series.keys()]
        .filter(
          series => kinds.includes(view.tensors[view.series[series]!.tensor]!.kind) && column.isThere(series, step),
        )
        .map(series => ({ series, apart: column.at(series, step) }))
      // NaN comes first: it stands for a distance from non-finite values.
      if (rows.length > 0) return { step, rows: rows.sort((x, y) => rank(y.apart) - rank(x.apart)) }
    }
    return null
  }
  const changes = furthest(['weights']) ?? furthest(['gradients', 'biases', 'outputs', 'inputs']) ?? furthest(['other'])
  if (changes === null) return null
  const { step, rows } = changes
  const apart = rows.filter(({ apart }) => apart !== 0)
  const tensorsOf = (some: typeof rows) => new Set(some.map(({ series }) => view.series[series]!.tensor)).size
  // A tensor is equal if it is so in all workers.
  const equal = tensorsOf(rows) - tensorsOf(apart)
  return h(
    'div',
    {},
    h('h3', {}, `Most changed at step ${a.stepText(step)}: ‖A − B‖ / ‖A‖`),
    h(
      'table',
      { class: 'changed' },
      h(
        'tbody',
        {},
        ...apart.slice(0, MAX_LAYERS).map(({ series, apart }) => {
          const { tensor, worker } = view.series[series]!
          return h(
            'tr',
            {},
            h(
              'th',
              { scope: 'row' },
              link(view.tensors[tensor]!.name, open),
              view.workers.length > 1 ? h('div', { class: 'muted' }, shown(view.workers[worker]!)) : null,
            ),
            h('td', { class: 'number' }, short(apart)),
          )
        }),
      ),
    ),
    equal === 0 ? null : h('p', { class: 'muted' }, `Unchanged: ${counted(equal, 'tensor')}.`),
  )
}

function rank(apart: number): number {
  return Number.isNaN(apart) ? Number.POSITIVE_INFINITY : apart
}

function unmatched(
  [a, b]: readonly ShownTrial[],
  suggested: Readonly<Record<string, string>>,
  hasScores: boolean,
): HTMLElement {
  const lists = [
    { place: 0, names: a!.view.tensors.map(({ name }) => name).filter(name => !b!.tensorOf.has(name)) },
    { place: 1, names: b!.view.tensors.map(({ name }) => name).filter(name => !a!.tensorOf.has(name)) },
  ]
  const both = a!.view.tensors.length - lists[0]!.names.length
  const map = Object.entries(suggested)
  return h(
    'div',
    { class: 'said unmatched' },
    h('h3', {}, 'Names in A and in B'),
    h('p', {}, `${counted(both, 'name')} ${both === 1 ? 'is' : 'are'} in both.`),
    ...lists
      .filter(({ names }) => names.length > 0)
      .map(({ place, names }) => {
        const rest = names.length - MAX_NAMES
        const more = rest > 0 ? ` and ${rest} more` : ''
        return h('p', {}, badge(place), `${names.length}: ${names.slice(0, MAX_NAMES).map(shown).join(', ')}${more}`)
      }),
    lists.every(({ names }) => names.length > 0)
      ? h(
          'p',
          { class: 'muted' },
          map.length === 0
            ? 'Where names differ, --map tells which is which.'
            : 'Some may be the same under another name. This map says so: save it as map.json, and give --map map.json.',
        )
      : null,
    map.length === 0 ? null : h('pre', {}, shownJson(suggested)),
    hasScores ? null : h('p', { class: 'muted' }, 'No loss was saved: there are no scores.'),
  )
}

/** JSON whose invisible marks are spelled out as JSON does. */
function shownJson(value: unknown): string {
  return JSON.stringify(value, null, 2).replace(
    /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    mark => `\\u${mark.codePointAt(0)!.toString(16).padStart(4, '0')}`,
  )
}
