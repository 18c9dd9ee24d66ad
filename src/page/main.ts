/** The page of a report: three views of what one scan has told. */

import { h } from './dom.js'
import { firstChoice, layers } from './layers.js'
import { badge, overview } from './overview.js'
import { type TensorChoice, tensorView } from './tensor.js'
import { counted, shown } from './text.js'
import { readData } from './trials.js'

const VIEWS = [
  ['overview', 'Overview'],
  ['layers', 'Layers × steps'],
  ['tensor', 'Tensors'],
] as const
type ViewName = (typeof VIEWS)[number][0]

const { data, trials } = readData()
const layersChoice = firstChoice(trials)
const tensorChoice: TensorChoice = { name: firstTensor(), statistic: layersChoice.statistic, scale: 'linear' }
const content = h('div', { id: 'view', tabindex: -1 })
const tabs = VIEWS.map(([name, text]) => h('a', { href: `#${name}` }, text))

/** A gradient or a weight, if there is one. */
function firstTensor(): string {
  const tensors = trials[0]!.view.tensors
  const found = trials[0]!.view.findings.find(({ tensor, cause }) => tensor !== null && cause === null)?.tensor
  const best = found ?? tensors.findIndex(({ kind }) => kind === 'gradients' || kind === 'weights')
  return tensors[Math.max(0, best)]?.name ?? ''
}

function open(name: string): void {
  location.hash = `tensor=${encodeURIComponent(name)}`
}

/** What the address asks for. */
function asked(): ViewName {
  const [view, name] = location.hash.slice(1).split('=', 2)
  if (view === 'tensor' && name !== undefined) {
    const decoded = decodeURIComponent(name)
    if (trials.some(({ tensorOf }) => tensorOf.has(decoded))) tensorChoice.name = decoded
  }
  return VIEWS.find(([name]) => name === view)?.[0] ?? 'overview'
}

async function viewOf(name: ViewName): Promise<HTMLElement> {
  if (trials.every(({ view }) => view.series.length === 0)) return h('p', {}, 'There is no tensor to show.')
  if (name === 'layers') return layers(trials, layersChoice, open)
  if (name === 'tensor') return tensorView(trials, tensorChoice, open)
  return overview(trials, open)
}

async function show(isFirst = false): Promise<void> {
  const name = asked()
  for (const [i, tab] of tabs.entries()) {
    if (VIEWS[i]![0] === name) tab.setAttribute('aria-current', 'page')
    else tab.removeAttribute('aria-current')
  }
  content.replaceChildren(await viewOf(name))
  if (isFirst) return
  scrollTo(0, 0)
  content.focus({ preventScroll: true })
}

function head(): HTMLElement {
  return h(
    'header',
    {},
    h(
      'h1',
      {},
      ...(trials.length === 1
        ? [shown(data.title)]
        : trials.flatMap(({ view }, i) => [badge(i), `${shown(view.name)} `])),
    ),
    h('nav', { 'aria-label': 'Views' }, ...tabs),
  )
}

function foot(): HTMLElement {
  const values = trials.reduce((sum, { view }) => sum + view.values, 0)
  const version = data.version === '' ? '' : ` ${data.version}`
  return h(
    'footer',
    {},
    `${counted(values, 'tensor value')} read by trialscan${version}. The file has all it needs: nothing is loaded from elsewhere.`,
  )
}

async function start(): Promise<void> {
  const report = document.getElementById('report')!
  addEventListener('hashchange', () => void show())
  await show(true)
  report.append(head(), content, foot())
  report.removeAttribute('aria-busy')
}

void start()
