/** The overview: the training's facts, the findings, and the course of the losses. */

import type { Kind } from '../../../../trial/kinds/kinds.js'
import type { FindingView } from '../../../data.js'
import { h, term } from '../../dom.js'
import { badge, link, type OpenTensor } from '../../names.js'
import { actions, columnsFor, timeline } from '../../pictures/charts.js'
import { remarksOf } from '../../remarks.js'
import { counted, KIND_NAMES, sentence, shortened, shown, told, toldWithout } from '../../text.js'
import type { ShownTrial } from '../../trials.js'
import type { View } from '../view.js'
import { courses, curvesOf } from './curves.js'
import { type FlowChoice, gradientFlow } from './flow.js'
import { nanPath } from './nan-path.js'
import { scorecard } from './scorecard.js'

const MAX_GROUPS = 40

/** The first difference of two runs, and the progress until their layers are shown. */
export interface Comparison {
  readonly verdict: string
  readonly differ: boolean
  readonly partial: boolean
  /** Tensor values that were compared. */
  readonly compared: number
  /** Names of the first run, each with the one in the second that may be the same. */
  readonly suggested: Readonly<Record<string, string>>
  readonly open: () => void
}

export async function overview(
  trials: readonly ShownTrial[],
  flow: FlowChoice,
  open: OpenTensor,
  /** The comparison, if it is known: a server's comes later. */
  compared: () => Comparison | null,
): Promise<View> {
  const element = h('section', { class: 'overview' })
  const update = async (trials: readonly ShownTrial[]) => {
    const isPair = trials.length > 1
    const comparison = compared()
    // All requests to the server start at once.
    const [losses, flowing, metrics, scores, ...reports] = await Promise.all([
      curvesOf(trials, 'losses'),
      gradientFlow(trials, flow, open),
      curvesOf(trials, 'metrics'),
      isPair ? scorecard(trials, comparison?.suggested ?? {}, open) : null,
      ...trials.map((trial, i) => report(trial, isPair ? i : null, open)),
    ])
    const parts = [
      comparison && comparisonText(comparison),
      h('div', { class: 'courses' }, ...trials.map((trial, i) => verdict(trial, isPair ? i : null))),
      scores,
      courses(trials, [...losses, ...metrics], flowing, open),
      ...(isPair ? [h('div', { class: 'courses', style: '--column: 480px' }, ...reports)] : reports),
    ]
    const wereOpen = new Map(
      [...element.querySelectorAll('details')].map(details => [details.dataset.part, details.open] as const),
    )
    element.replaceChildren(...parts.filter(part => part != null))
    for (const details of element.querySelectorAll('details'))
      details.open = wereOpen.get(details.dataset.part) ?? details.open
  }
  await update(trials)
  return { element, update }
}

function comparisonText({ verdict, differ, partial, compared, open }: Comparison): HTMLElement {
  const isKnown = differ || (compared > 0 && !partial)
  return h(
    'article',
    {},
    h('h2', {}, badge(0), badge(1), 'Compared'),
    h('p', { class: isKnown ? `verdict ${differ ? 'bad' : 'good'}` : 'verdict' }, told(verdict)),
    differ ? h('p', {}, h('a', { href: '#layers', onclick: open }, 'How much, layer by layer')) : null,
  )
}

function verdict(trial: ShownTrial, place: number | null): HTMLElement {
  const { view } = trial
  return h(
    'article',
    {},
    place === null ? null : h('h2', {}, badge(place), shown(view.name)),
    verdictText(trial),
    view.problems.length === 0
      ? null
      : h(
          'details',
          { class: 'problems', open: true, 'data-part': `problems ${place}` },
          h('summary', {}, `${counted(view.problems.length, 'thing')} could not be read`),
          h('ul', {}, ...view.problems.map(problem => h('li', {}, shown(problem)))),
        ),
  )
}

/** Sentences about a trial: causes and advice, its numbers, the findings, the facts. */
async function report(trial: ShownTrial, place: number | null, open: OpenTensor): Promise<HTMLElement> {
  const { view } = trial
  const [said, path] = await Promise.all([view.remarks ?? remarksOf(trial), nanPath(trial, open)])
  return h(
    'section',
    {},
    place === null ? null : h('h2', {}, badge(place), 'Details'),
    h('div', { class: 'courses' }, advice(trial), sentences('What the numbers say', said)),
    path,
    ...findings(trial, place, open),
    facts(trial, place),
  )
}

function sentences(title: string, all: readonly string[]): HTMLElement | null {
  if (all.length === 0) return null
  return h('div', { class: 'said' }, h('h3', {}, title), h('ul', {}, ...all.map(text => h('li', {}, told(text)))))
}

/** The advice for each rule that found a cause: its first step, its meaning, and what to do. */
function advice({ view }: ShownTrial): HTMLElement | null {
  const causes = new Map<string, FindingView>()
  for (const finding of view.findings) {
    if (finding.cause === null && !causes.has(finding.rule)) causes.set(finding.rule, finding)
  }
  const reasons = [...new Set(view.notJudged.map(({ missing }) => missing))].map(missing => {
    const rules = view.notJudged.filter(entry => entry.missing === missing).map(({ rule }) => rule)
    return `Not judged by ${rules.join(', ')}, which ${rules.length === 1 ? 'needs' : 'need'} ${missing}.`
  })
  const besides = view.besides.map(text => sentence(`beside that, ${text}`))
  if (causes.size === 0) return sentences('What the rules could not judge', reasons)
  return h(
    'div',
    { class: 'said advice' },
    h('h3', {}, 'Causes, and what to do'),
    ...[...causes.values()].map(({ rule, step, message }) => {
      const known = view.advice.find(entry => entry.rule === rule)
      return h(
        'section',
        {},
        h('h4', {}, h('span', { class: 'cause' }, shown(rule)), ` from step ${view.steps[step]}: ${told(message)}`),
        known === undefined
          ? null
          : h('p', {}, `${told(known.meaning)} `, h('strong', {}, 'What to do: '), told(known.advice)),
      )
    }),
    ...[...besides, ...reasons].map(text => h('p', { class: 'muted' }, told(text))),
  )
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
    const verdictLine = `Nothing was found${so}${isWhole ? '' : ' in what could be read'}`
    return h(
      'p',
      { class: isWhole ? 'verdict good' : 'verdict' },
      `${verdictLine}: ${rules} judged ${all}, and none fired.`,
    )
  }
  const step = view.steps[first.step]
  // A message that begins with a tensor's name keeps its spelling.
  const isName = first.tensor !== null && first.message.startsWith(view.tensors[first.tensor]!.name)
  const more = causes.length > 1 ? ` and ${counted(causes.length - 1, 'other cause')}` : ''
  return h(
    'p',
    { class: 'verdict bad' },
    h('strong', {}, `${first.rule} at step ${step}${more}. `),
    `${isName ? `${told(first.message)}.` : sentence(told(first.message))} `,
    h(
      'span',
      { class: 'muted' },
      `${counted(view.findingCount, 'finding')} ${state === 'judging' ? `so far, in ${judged}` : 'in all'}.`,
    ),
  )
}

function facts({ view }: ShownTrial, place: number | null): HTMLElement {
  const kinds = new Map<Kind, number>()
  for (const { kind } of view.tensors) kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
  const modes = new Map<string, number>()
  for (const mode of view.mode) modes.set(view.modes[mode]!, (modes.get(view.modes[mode]!) ?? 0) + 1)
  const list = (entries: Iterable<readonly [string, number]>) =>
    [...entries].map(([name, n]) => `${name} ${n}`).join(', ')
  const fact = (name: Node | string, value: string) => h('div', {}, h('dt', {}, name), h('dd', {}, value))
  const { steps } = view
  const ended = view.checkpoint !== null ? '' : view.isEnded ? ', the job has ended' : ', the job has not ended'
  const all = h(
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
  const text = `Facts: ${counted(steps.length, 'step')}, ${counted(view.tensors.length, 'tensor')}, ${counted(view.workers.length, 'worker')}${ended}`
  return h('details', { 'data-part': `facts ${place}` }, h('summary', {}, text), all)
}

/** Findings of one rule about one tensor. */
interface FindingGroup {
  readonly first: FindingView
  readonly tensor: number | null
  count: number
  isCause: boolean
}

function findings(trial: ShownTrial, place: number | null, open: OpenTensor): (HTMLElement | null)[] {
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
  // Causes come first; each part is in the order of its steps.
  const all = [...groups.values()].sort((a, b) => Number(b.isCause) - Number(a.isCause))
  const points = view.findings.map(({ step, rule, cause, message }) => ({
    step: view.steps[step]!,
    row: shortened(rule, 30),
    isCause: cause === null,
    text: `${rule}, step ${view.steps[step]}: ${told(message)}`,
  }))
  const row = ({ first, tensor, count, isCause }: FindingGroup) => {
    const name = tensor === null ? undefined : view.tensors[tensor]!.name
    return h(
      'tr',
      {},
      h('td', {}, isCause ? h('span', { class: 'cause' }, 'cause') : h('span', { class: 'muted' }, 'follows')),
      h('td', {}, first.rule),
      h('td', { class: 'number', 'data-name': 'from step' }, String(view.steps[first.step])),
      h('td', { class: 'number', 'data-name': 'steps' }, String(count)),
      h(
        'td',
        {},
        name === undefined ? '' : link(name, open),
        h('div', { class: 'muted' }, name === undefined ? told(first.message) : toldWithout(name, first.message)),
      ),
    )
  }
  const rest = all.length - MAX_GROUPS
  return [
    h('h3', {}, 'What the rules found, step by step'),
    timeline(
      points,
      view.steps,
      `Findings of ${shown(view.name)} over the steps: ${counted(points.length, 'point')}, causes filled.`,
      ...(place === null ? [] : [columnsFor(2).column]),
    ),
    h(
      'details',
      { open: all.length <= 12, 'data-part': `findings ${place}` },
      h('summary', {}, `By rule and tensor (${all.length})`),
      h(
        'div',
        { class: 'wide' },
        h(
          'table',
          { class: 'stacked' },
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
