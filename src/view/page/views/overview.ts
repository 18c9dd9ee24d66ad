/** The overview: what was trained, what is wrong with it, and the course of its losses. */

import type { Kind } from '../../../trial/kinds/kinds.js'
import type { FindingView } from '../../data.js'
import { h, term } from '../dom.js'
import { actions, type Line, lineChart, timeline } from '../pictures/charts.js'
import { isDashed, modeColor, runColor } from '../pictures/colors.js'
import { counted, KIND_NAMES, sentence, short, shortened, shown } from '../text.js'
import type { ShownTrial } from '../trials.js'
import type { View } from './view.js'

/** Opens a tensor's view. */
export type OpenTensor = (name: string) => void

const MAX_CHARTS = 12
const MAX_GROUPS = 40

/** The first difference of two runs, and the progress until their layers are shown. */
export interface Comparison {
  readonly verdict: string
  readonly differ: boolean
  /** Tensor values that were compared. */
  readonly compared: number
  readonly open: () => void
}

export async function overview(
  trials: readonly ShownTrial[],
  open: OpenTensor,
  comparison: Comparison | null,
): Promise<View> {
  const element = h('section', { class: 'overview' })
  const update = async (trials: readonly ShownTrial[]) => {
    const parts = [
      comparison && comparisonText(comparison),
      ...trials.map((trial, i) => verdict(trial, trials.length > 1 ? i : null, open)),
      await curves(trials, 'losses', open),
      await curves(trials, 'metrics', open),
    ]
    element.replaceChildren(...parts.filter(part => part !== null))
  }
  await update(trials)
  return { element, update }
}

function comparisonText({ verdict, differ, compared, open }: Comparison): HTMLElement {
  return h(
    'article',
    {},
    h('h2', {}, badge(0), badge(1), 'Compared'),
    h('p', { class: compared === 0 ? 'verdict' : `verdict ${differ ? 'bad' : 'good'}` }, shown(verdict)),
    differ ? h('p', {}, h('a', { href: '#layers', onclick: open }, 'How much, layer by layer')) : null,
  )
}

function verdict(trial: ShownTrial, place: number | null, open: OpenTensor): HTMLElement {
  const { view } = trial
  return h(
    'article',
    {},
    place === null ? null : h('h2', {}, badge(place), shown(view.name)),
    verdictText(trial),
    facts(trial),
    ...findings(trial, open),
    view.problems.length === 0
      ? null
      : h(
          'details',
          { class: 'problems', open: true },
          h('summary', {}, `${counted(view.problems.length, 'thing')} could not be read`),
          h('ul', {}, ...view.problems.map(problem => h('li', {}, shown(problem)))),
        ),
  )
}

/** `A` or `B`, in its colour. */
export function badge(place: number): HTMLElement {
  return h('span', { class: 'badge', style: `background: ${runColor(place)}` }, 'AB'[place] ?? '')
}

function verdictText({ view }: ShownTrial): HTMLElement {
  const causes = view.findings.filter(({ cause }) => cause === null)
  const [first] = causes
  const { state, steps } = view.judged
  const rules = counted(view.rules.length, 'rule')
  const judged = `${steps.toLocaleString('en')} of ${counted(view.steps.length, 'step')}`
  if (state === 'waiting') return h('p', { class: 'verdict' }, 'Not judged yet: the rules have not begun.')
  if (view.rules.length === 0) return h('p', { class: 'verdict' }, 'No rule has judged it.')
  if (first === undefined && state === 'judging') {
    return h('p', { class: 'verdict' }, `Not judged yet: ${rules} have judged ${judged}, and none has fired so far.`)
  }
  if (first === undefined) {
    const all = steps < view.steps.length ? judged : counted(steps, 'step')
    const so = view.isEnded || view.checkpoint !== null ? '' : ' so far'
    const isWhole = view.problems.length === 0
    const found = `Nothing was found${so}${isWhole ? '' : ' in what could be read'}`
    return h('p', { class: isWhole ? 'verdict good' : 'verdict' }, `${found}: ${rules} judged ${all}, and none fired.`)
  }
  const step = view.steps[first.step]
  // A name stays as it is spelled.
  const isName = first.tensor !== null && first.message.startsWith(view.tensors[first.tensor]!.name)
  const more = causes.length > 1 ? ` and ${counted(causes.length - 1, 'other cause')}` : ''
  return h(
    'p',
    { class: 'verdict bad' },
    h('strong', {}, `${first.rule} at step ${step}${more}. `),
    `${isName ? `${shown(first.message)}.` : sentence(shown(first.message))} `,
    h(
      'span',
      { class: 'muted' },
      `${counted(view.findingCount, 'finding')} ${state === 'judging' ? `so far, in ${judged}` : 'in all'}.`,
    ),
  )
}

function facts({ view }: ShownTrial): HTMLElement {
  const kinds = new Map<Kind, number>()
  for (const { kind } of view.tensors) kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
  const modes = new Map<string, number>()
  for (const mode of view.mode) modes.set(view.modes[mode]!, (modes.get(view.modes[mode]!) ?? 0) + 1)
  const list = (entries: Iterable<readonly [string, number]>) =>
    [...entries].map(([name, n]) => `${name} ${n}`).join(', ')
  const fact = (name: Node | string, value: string) => h('div', {}, h('dt', {}, name), h('dd', {}, value))
  const { steps } = view
  return h(
    'dl',
    { class: 'facts' },
    fact(
      term('Steps', 'How many steps of the training were saved.'),
      `${steps.length}${modes.size > 0 ? ` (${list(modes)})` : ''}`,
    ),
    fact('From, to', steps.length > 0 ? `${steps[0]} – ${steps.at(-1)}` : '–'),
    fact(term('Workers', 'Processes of the training that saved tensors.'), view.workers.map(shown).join(', ') || '–'),
    fact(
      'Tensors',
      `${view.tensors.length} (${list([...kinds].map(([kind, n]) => [KIND_NAMES[kind]!.toLowerCase(), n] as const))})`,
    ),
    fact('Collections', view.collections.map(({ name, size }) => `${shown(name)} ${size}`).join(', ') || 'none'),
    view.checkpoint === null
      ? fact('The job', view.isEnded ? 'has ended' : 'has not ended')
      : fact('Last checkpoint', shown(view.checkpoint)),
  )
}

/** Findings of one rule about one tensor. */
interface FindingGroup {
  readonly first: FindingView
  readonly tensor: number | null
  count: number
  isCause: boolean
}

function findings(trial: ShownTrial, open: OpenTensor): (HTMLElement | null)[] {
  const { view } = trial
  if (view.findings.length === 0) return []
  const groups = new Map<string, FindingGroup>()
  for (const finding of view.findings) {
    const key = JSON.stringify([finding.rule, finding.tensor])
    const group = groups.get(key) ?? { first: finding, tensor: finding.tensor, count: 0, isCause: false }
    group.count++
    group.isCause ||= finding.cause === null
    groups.set(key, group)
  }
  // Causes first; each part in the order of its steps.
  const all = [...groups.values()].sort((a, b) => Number(b.isCause) - Number(a.isCause))
  const points = view.findings.map(({ step, rule, cause, message }) => ({
    step: view.steps[step]!,
    row: shortened(rule, 30),
    isCause: cause === null,
    text: `${rule}, step ${view.steps[step]}: ${shown(message)}`,
  }))
  const row = ({ first, tensor, count, isCause }: FindingGroup) =>
    h(
      'tr',
      {},
      h('td', {}, isCause ? h('span', { class: 'cause' }, 'cause') : h('span', { class: 'muted' }, 'follows')),
      h('td', {}, first.rule),
      h('td', { class: 'number' }, String(view.steps[first.step])),
      h('td', { class: 'number' }, String(count)),
      h(
        'td',
        {},
        tensor === null ? '' : link(view.tensors[tensor]!.name, open),
        h('div', { class: 'muted' }, shown(first.message)),
      ),
    )
  const rest = all.length - MAX_GROUPS
  return [
    h('h3', {}, 'What the rules found, step by step'),
    timeline(
      points,
      view.steps,
      `Findings of ${shown(view.name)} over the steps: ${counted(points.length, 'point')}, causes filled.`,
    ),
    h(
      'details',
      { open: all.length <= 12 },
      h('summary', {}, `By rule and tensor (${all.length})`),
      h(
        'div',
        { class: 'wide' },
        h(
          'table',
          {},
          h(
            'thead',
            {},
            h(
              'tr',
              {},
              ...['', 'Rule', 'First step', 'Steps', 'Tensor, and the first finding'].map(text =>
                h('th', { scope: 'col' }, text),
              ),
            ),
          ),
          h('tbody', {}, ...all.slice(0, MAX_GROUPS).map(row)),
        ),
      ),
      rest > 0 ? h('p', { class: 'muted' }, `and ${rest} more: trialscan check tells all.`) : null,
      actions(
        `the findings of ${shown(view.name)}`,
        () => [
          ['step', 'rule', 'tensor', 'worker', 'is_cause', 'message'],
          ...view.findings.map(({ step, rule, tensor, worker, cause, message }) => [
            view.steps[step]!,
            rule,
            tensor === null ? '' : view.tensors[tensor]!.name,
            worker ?? '',
            String(cause === null),
            message,
          ]),
        ],
        null,
      ),
    ),
  ]
}

export function link(name: string, open: OpenTensor): HTMLElement {
  const follow = (event: Event, name: string) => {
    event.preventDefault()
    open(name)
  }
  const href = `#tensor=${encodeURIComponent(name)}`
  return h('a', { href, onclick: event => follow(event, name), title: shown(name) }, shortened(name, 60))
}

/** A chart for each tensor of a kind that tells one number a step, of all modes and trials. */
async function curves(trials: readonly ShownTrial[], kind: Kind, open: OpenTensor): Promise<HTMLElement | null> {
  const names = [
    ...new Set(
      trials.flatMap(({ view }) => view.tensors.filter(tensor => tensor.kind === kind).map(({ name }) => name)),
    ),
  ]
  if (names.length === 0) return null
  const charts: HTMLElement[] = []
  for (const name of names.slice(0, MAX_CHARTS)) {
    const lines: Line[] = []
    for (const [i, trial] of trials.entries())
      lines.push(...(await modeLines(trial, kind, name, trials.length > 1 ? i : null)))
    if (lines.length === 0) continue
    const ends = lines.map(({ name, points }) => `${name} from ${short(points[0]!.y)} to ${short(points.at(-1)!.y)}`)
    const label = `${shown(name)} over the steps: ${ends.join('; ')}.`
    charts.push(
      h(
        'div',
        { class: 'card' },
        h('h4', {}, link(name, open)),
        lineChart({ label, lines, height: 220, width: names.length === 1 ? 1100 : 500 }),
      ),
    )
  }
  if (charts.length === 0) return null
  const rest = names.length - MAX_CHARTS
  return h(
    'article',
    {},
    h('h2', {}, KIND_NAMES[kind]!),
    h('div', { class: 'cards' }, ...charts),
    rest > 0 ? h('p', { class: 'muted' }, `and ${rest} more, under Tensors.`) : null,
  )
}

/** The mean over the elements and workers, a line for each mode. */
async function modeLines(trial: ShownTrial, kind: Kind, name: string, place: number | null): Promise<Line[]> {
  const { view } = trial
  const tensor = trial.tensorOf.get(name)
  const column = await trial.column('mean', { kind })
  if (tensor === undefined || column === null) return []
  const lines = new Map<string, { x: number; y: number }[]>()
  for (const [step, number] of view.steps.entries()) {
    if (!column.has(step)) continue
    const there = trial.seriesOf[tensor]!.filter(series => column.isThere(series, step))
    if (there.length === 0) continue
    const y = there.reduce((sum, series) => sum + column.at(series, step), 0) / there.length
    const mode = view.modes[view.mode[step]!]!
    const points = lines.get(mode) ?? []
    points.push({ x: number, y })
    lines.set(mode, points)
  }
  return [...lines].map(([mode, points]) => ({
    name: place === null ? mode : `${'AB'[place]} ${mode}`,
    color: place === null ? modeColor(mode) : runColor(place),
    isDashed: place !== null && isDashed(mode),
    points,
  }))
}
