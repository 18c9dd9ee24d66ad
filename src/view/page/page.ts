/** The page about a trial or two: its views, and the way between them. */

import { KINDS } from '../../trial/kinds/kinds.js'
import { EMBEDDING_METHODS, type ReportData, type ShownStatistic } from '../data.js'
import { address, type Field, field, takeOver, tell } from './address.js'
import { h } from './dom.js'
import { moment } from './moment.js'
import { badge } from './names.js'
import { counted, shown } from './text.js'
import type { ShownTrial } from './trials.js'
import { type BoostingChoice, boostingView, isBoosted } from './views/boosting.js'
import { type DistributionsChoice, distributionKinds, distributionsView } from './views/distributions/distributions.js'
import { firstKinds, hasKinds, type KindsChoice, kindsView } from './views/kinds.js'
import { firstChoice, firstOf, type LayersChoice, layers, OF_BOTH } from './views/layers.js'
import type { FlowChoice } from './views/overview/flow.js'
import { overview } from './views/overview/overview.js'
import { classesView } from './views/samples/classes.js'
import { type EmbeddingChoice, embeddingView } from './views/samples/embedding.js'
import { type TensorChoice, tensorView } from './views/tensor.js'
import { unitsView } from './views/units.js'
import type { View } from './views/view.js'

type ViewName =
  | 'overview'
  | 'layers'
  | 'kinds'
  | 'distributions'
  | 'tensor'
  | 'units'
  | 'classes'
  | 'boosting'
  | 'embedding'

/** The views: their names, the texts of their tabs, and a test whether a trial has anything to show in them. */
const VIEWS: readonly (readonly [name: ViewName, text: string, isThere: (trials: readonly ShownTrial[]) => boolean])[] =
  [
    ['overview', 'Overview', () => true],
    ['layers', 'Layers × steps', () => true],
    ['kinds', 'Layers × kinds', hasKinds],
    ['distributions', 'Distributions', trials => distributionKinds(trials).length > 0],
    ['tensor', 'Tensors', () => true],
    ['units', 'Units', trials => trials.some(({ view }) => view.hasUnits)],
    ['classes', 'Classes', trials => trials.some(({ view }) => view.hasClasses)],
    ['boosting', 'Features', trials => trials.some(isBoosted)],
    [
      'embedding',
      'Embedding',
      trials => trials.some(({ view, source }) => source.embedsAny || view.embedding !== null),
    ],
  ]

/** Milliseconds after a choice until the address has it. */
const TELL_MS = 200

export interface PageOptions {
  readonly title: string
  readonly version: string
  /** Further elements in the head. */
  readonly extras: readonly HTMLElement[]
  /** For two runs: the first difference. */
  readonly comparison?: ReportData['comparison']
  /** The end of the page's last line. */
  readonly foot: string
}

export class Page {
  #trials: readonly ShownTrial[]
  #options: PageOptions
  readonly #layersChoice: LayersChoice
  readonly #kindsChoice: KindsChoice
  readonly #tensorChoice: TensorChoice
  readonly #distributionsChoice: DistributionsChoice = {
    kind: 'gradients',
    shape: 'outlines',
    axes: '',
    axis: 'linear',
    pair: '',
    scales: 'same',
    filter: '',
  }
  readonly #content = h('div', { id: 'view', tabindex: -1 })
  readonly #embeddingChoice: EmbeddingChoice = { method: 'tsne', tensor: '' }
  readonly #boostingChoice: BoostingChoice = { measure: '' }
  readonly #tabs: ReadonlyMap<ViewName, HTMLElement>
  readonly #foot = h('footer', {})
  readonly #flowChoice: FlowChoice = { flow: 'gradients' }
  #telling: ReturnType<typeof setTimeout> | undefined
  #view: (View & { readonly isOf: ViewName }) | null = null

  constructor(trials: readonly ShownTrial[], options: PageOptions) {
    this.#trials = trials
    this.#options = options
    const tabs = VIEWS.filter(([, , isThere]) => isThere(trials))
    this.#tabs = new Map(tabs.map(([name, text]) => [name, h('a', { href: `#${name}` }, text)]))
    this.#layersChoice = firstChoice(trials)
    this.#kindsChoice = firstKinds(trials)
    const { statistic } = this.#layersChoice
    this.#tensorChoice = {
      name: firstTensor(trials),
      statistic: OF_BOTH.has(statistic) ? firstOf(trials, ['l2']) : statistic,
      scale: 'linear',
      shape: 'ridges',
      range: 'own',
      axis: 'linear',
    }
  }

  async start(): Promise<void> {
    const report = document.getElementById('report')!
    addEventListener('hashchange', () => void this.#show())
    for (const event of ['change', 'input']) this.#content.addEventListener(event, () => this.#tellSoon())
    moment.onPoint = () => this.#tellSoon()
    this.#content.addEventListener('keydown', event => this.#press(event))
    await this.#show(true)
    report.replaceChildren(this.#head(), this.#content, this.#foot)
    report.removeAttribute('aria-busy')
  }

  /** Shows newer trials where the old ones are. */
  update(trials: readonly ShownTrial[]): Promise<void> {
    this.#trials = trials
    return this.#redraw()
  }

  /** Shows the differences of two trials once they have been computed. */
  compare(trials: readonly ShownTrial[], comparison: ReportData['comparison']): Promise<void> {
    this.#options = { ...this.#options, comparison: comparison ?? null }
    this.#trials = trials
    // The fields may have new choices, so the view is rebuilt, unless the reader is typing in it.
    const isWritten = this.#content.querySelector(':is(input, select):focus') !== null
    return isWritten ? this.#redraw() : this.#show(true)
  }

  /** Draws the view again, but keeps a field that has the focus. */
  async #redraw(): Promise<void> {
    const { scrollX, scrollY } = window
    this.#content.style.minHeight = `${this.#content.offsetHeight}px`
    if (this.#view?.isOf === this.#viewInAddress()) await this.#view.update(this.#trials)
    else await this.#show(true)
    this.#content.style.minHeight = ''
    this.#tell()
    scrollTo(scrollX, scrollY)
  }

  /** Moves through the steps of the first picture that has a player; fields and pictures have keys of their own. */
  #press(event: KeyboardEvent): void {
    const player = this.#content.querySelector('.player')
    const isTaken = (event.target as Element).closest('a, button, input, select, summary, canvas') !== null
    if (player === null || isTaken || event.ctrlKey || event.metaKey || event.altKey) return
    const slider = player.querySelector('input')
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
    if (event.key === ' ') player.querySelector('button')?.click()
    else if (by !== undefined && slider !== null) {
      slider.value = String(Number(slider.value) + by)
      slider.dispatchEvent(new Event('input', { bubbles: true }))
    } else return
    event.preventDefault()
  }

  #open(name: string): void {
    location.hash = `tensor=${encodeURIComponent(name)}`
  }

  /** The view that the address names. */
  #viewInAddress(): ViewName {
    const { view, name } = address()
    if (view === 'tensor' && name !== null && this.#trials.some(({ tensorOf }) => tensorOf.has(name))) {
      this.#tensorChoice.name = name
    }
    return [...this.#tabs.keys()].find(name => name === view) ?? 'overview'
  }

  /** The choices of a view that are part of its address. */
  #fields(view: ViewName): Readonly<Record<string, Field>> {
    const statistics = [...new Set(this.#trials.flatMap(({ statistics }) => statistics))]
    const scales = ['linear', 'log']
    const [ofLayers, ofTensor] = [this.#layersChoice, this.#tensorChoice]
    if (view === 'overview') return { show: field(this.#flowChoice, 'flow', ['gradients', 'updates']) }
    if (view === 'layers') {
      return {
        kind: field(ofLayers, 'kind', ['all', ...KINDS]),
        show: statisticField(ofLayers, statistics),
        scale: field(ofLayers, 'scale', scales),
        mode: field(ofLayers, 'mode', ['TRAIN', 'EVAL', 'PREDICT', 'GLOBAL']),
        name: field(ofLayers, 'filter'),
        tensor: field(ofLayers, 'tensor'),
      }
    }
    if (view === 'distributions') {
      return {
        kind: field(this.#distributionsChoice, 'kind', KINDS),
        shape: field(this.#distributionsChoice, 'shape', ['outlines', 'ridges']),
        axes: field(this.#distributionsChoice, 'axes', ['', 'own', 'step', 'shared']),
        axis: field(this.#distributionsChoice, 'axis', ['linear', 'symlog']),
        pair: field(this.#distributionsChoice, 'pair', ['', 'beside', 'over']),
        ...(this.#trials.length > 1 && { scales: field(this.#distributionsChoice, 'scales', ['same', 'apart']) }),
        name: field(this.#distributionsChoice, 'filter'),
      }
    }
    if (view === 'kinds') return { show: statisticField(this.#kindsChoice, statistics) }
    if (view === 'tensor') {
      return {
        show: field(ofTensor, 'statistic', statistics),
        scale: field(ofTensor, 'scale', scales),
        shape: field(ofTensor, 'shape', ['ridges', 'heat map']),
        range: field(ofTensor, 'range', ['own', 'step']),
        axis: field(ofTensor, 'axis', ['linear', 'symlog']),
      }
    }
    if (view === 'embedding') return { method: field(this.#embeddingChoice, 'method', EMBEDDING_METHODS) }
    return {}
  }

  /** Updates the address, a moment after the last choice. */
  #tellSoon(): void {
    clearTimeout(this.#telling)
    this.#telling = setTimeout(() => {
      const { isOf = 'overview' } = this.#view ?? {}
      tell(isOf, isOf === 'tensor' ? this.#tensorChoice.name : null, this.#fields(isOf))
    }, TELL_MS)
  }

  async #viewOf(name: ViewName): Promise<View> {
    const trials = this.#trials
    const open = (tensor: string) => this.#open(tensor)
    if (trials.every(({ view }) => view.series.length === 0)) {
      // A training that has just begun may have tensors later.
      return { element: h('p', {}, 'There is no tensor to show.'), update: () => this.#show(true) }
    }
    if (this.#tensorChoice.name === '') this.#tensorChoice.name = firstTensor(trials)
    // What differs comes first once it has been computed, unless the reader has chosen another number.
    for (const [choice, first] of [
      [this.#layersChoice, firstChoice],
      [this.#kindsChoice, firstKinds],
    ] as const) {
      if (!choice.isChosen) choice.statistic = first(trials).statistic
    }
    if (name === 'layers') return layers(trials, this.#layersChoice, open)
    if (name === 'kinds') return kindsView(trials, this.#kindsChoice, open)
    if (name === 'distributions') return distributionsView(trials, this.#distributionsChoice, open)
    if (name === 'tensor') return tensorView(trials, this.#tensorChoice, open)
    if (name === 'units') return unitsView(trials, open)
    if (name === 'classes') return classesView(trials)
    if (name === 'boosting') return boostingView(trials, this.#boostingChoice)
    if (name === 'embedding') return embeddingView(trials, this.#embeddingChoice)
    const openDifferences = () => {
      Object.assign(this.#layersChoice, {
        kind: 'all',
        statistic: 'difference',
        isChosen: true,
        scale: 'log',
      } satisfies Partial<LayersChoice>)
    }
    return overview(trials, this.#flowChoice, open, () => {
      const { comparison = null } = this.#options
      return comparison && { ...comparison, open: openDifferences }
    })
  }

  async #show(isFirst = false): Promise<void> {
    const name = this.#viewInAddress()
    takeOver(address(), this.#fields(name))
    for (const [tabName, tab] of this.#tabs) {
      if (tabName === name) tab.setAttribute('aria-current', 'page')
      else tab.removeAttribute('aria-current')
    }
    this.#view = { ...(await this.#viewOf(name)), isOf: name }
    this.#content.replaceChildren(this.#view.element)
    this.#tell()
    if (isFirst) return
    // A tab returns to its view as the reader left it; the address has the choices.
    this.#tellSoon()
    scrollTo(0, 0)
    this.#content.focus({ preventScroll: true })
  }

  #head(): HTMLElement {
    const { title, extras } = this.#options
    const trials = this.#trials
    return h(
      'header',
      {},
      h(
        'h1',
        {},
        ...(trials.length === 1 ? [shown(title)] : trials.flatMap(({ view }, i) => [badge(i), `${shown(view.name)} `])),
      ),
      ...extras,
      h('nav', { 'aria-label': 'Views' }, ...this.#tabs.values()),
    )
  }

  #tell(): void {
    const { version, foot } = this.#options
    const values = this.#trials.reduce((sum, { view }) => sum + view.values, 0)
    const by = version === '' ? 'trialscan' : `trialscan ${version}`
    this.#foot.textContent = `${counted(values, 'tensor value')}, by ${by}. ${foot}`
  }
}

/** A statistic, which is part of the address once the reader has chosen it. */
function statisticField(choice: LayersChoice | KindsChoice, statistics: readonly ShownStatistic[]): Field {
  const set = (statistic: string) => Object.assign(choice, { statistic, isChosen: true })
  return { value: choice.isChosen ? choice.statistic : '', set, allowed: statistics }
}

/**
 * The first tensor that may have several elements: of a cause, else a weight, else any. Without such a tensor the first of the trial, and an
 * empty text if it has none.
 */
function firstTensor(trials: readonly ShownTrial[]): string {
  const [{ view, inOrder }] = trials as readonly [ShownTrial]
  const { tensors, findings } = view
  const causes = findings.flatMap(({ tensor, cause }) => (tensor !== null && cause === null ? [tensor] : []))
  const weights = inOrder.filter(i => tensors[i]!.kind === 'weights')
  const hasSeveral = (i: number) => tensors[i]!.shape?.every(length => length === 1) !== true
  return tensors[[...causes, ...weights, ...inOrder].find(hasSeveral) ?? 0]?.name ?? ''
}
