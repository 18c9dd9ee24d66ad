/** The list of a server's trials: searched, sorted, and two of them chosen to be compared. */

import { button, h } from './dom.js'
import { counted, shown } from './text.js'
import type { LiveData } from './trials.js'

/** A trial in the server's list. */
interface Listed {
  readonly id: string
  readonly path: string
  readonly state: 'opening' | 'failed' | 'running' | 'ended'
  readonly error: string | null
  readonly steps?: number
  readonly lastStep?: number | null
  readonly tensors?: number
  readonly workers?: readonly string[]
  readonly findings?: number | null
  readonly cause?: { readonly rule: string; readonly step: number; readonly message: string } | null
}

const POLL_MS = 1000
const STATES = { opening: 'opening …', failed: 'can’t be read', running: 'running', ended: 'ended' } as const

/** The columns, and what they are sorted by. */
const COLUMNS = [
  ['Trial', ({ id }: Listed) => id],
  ['State', ({ state }: Listed) => state],
  ['Steps', ({ steps }: Listed) => steps ?? -1],
  ['Last step', ({ lastStep }: Listed) => lastStep ?? -1],
  ['Tensors', ({ tensors }: Listed) => tensors ?? -1],
  ['Workers', ({ workers }: Listed) => workers?.length ?? -1],
  ['Findings', ({ findings }: Listed) => findings ?? -1],
  ['What the rules say first', ({ cause }: Listed) => cause?.rule ?? ''],
] as const

export async function startPage({ version }: LiveData): Promise<void> {
  const report = document.getElementById('report')!
  let trials: readonly Listed[] = []
  let sorted = { column: 0, isDown: false }
  const chosen = new Set<string>()
  const search = h('input', { type: 'search', placeholder: 'any text', oninput: () => draw() })
  const compare = button('Compare', () => {
    const [a, b] = chosen
    location.href = `/compare/${encodeURIComponent(a!)}/${encodeURIComponent(b!)}`
  })
  const body = h('tbody', {})
  const said = h('p', { class: 'muted', role: 'status' })
  const heads = COLUMNS.map(([text], i) => {
    const sort = button(text, () => {
      sorted = { column: i, isDown: sorted.column === i && !sorted.isDown }
      draw()
    })
    return h('th', { scope: 'col' }, sort)
  })
  const draw = () => {
    const wanted = search.value.toLowerCase()
    const found = trials.filter(one => `${one.id} ${one.path} ${one.cause?.rule ?? ''}`.toLowerCase().includes(wanted))
    const [, key] = COLUMNS[sorted.column]!
    const sign = sorted.isDown ? -1 : 1
    const inOrder = [...found].sort((a, b) => {
      const [x, y] = [key(a), key(b)]
      return sign * (typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y)))
    })
    for (const [i, head] of heads.entries()) {
      if (i === sorted.column) head.setAttribute('aria-sort', sorted.isDown ? 'descending' : 'ascending')
      else head.removeAttribute('aria-sort')
    }
    body.replaceChildren(...inOrder.map(row))
    said.textContent = `${counted(found.length, 'trial')}${found.length < trials.length ? ` of ${trials.length}` : ''}. Choose two to compare them.`
    compare.disabled = chosen.size !== 2
  }
  const choose = (id: string, isChosen: boolean) => {
    if (isChosen) chosen.add(id)
    else chosen.delete(id)
    // The third takes the place of the first.
    for (const first of chosen) if (chosen.size > 2) chosen.delete(first)
    draw()
  }
  const row = (one: Listed): HTMLElement => {
    const { id, path, state, error, steps, lastStep, tensors, workers, findings, cause } = one
    const number = (value: number | null | undefined) =>
      h('td', { class: 'number' }, value == null ? '' : String(value))
    return h(
      'tr',
      {},
      h(
        'td',
        {},
        h('input', {
          type: 'checkbox',
          checked: chosen.has(id),
          'aria-label': `Compare ${shown(id)}`,
          onchange: event => choose(id, (event.target as HTMLInputElement).checked),
        }),
        h('a', { href: `/trials/${encodeURIComponent(id)}` }, shown(id)),
        h('div', { class: 'muted' }, shown(path)),
      ),
      h('td', { class: state === 'failed' ? 'found' : '' }, STATES[state]),
      number(steps),
      number(lastStep),
      number(tensors),
      number(workers?.length),
      number(findings),
      h(
        'td',
        {},
        error !== null
          ? h('span', { class: 'found' }, shown(error))
          : cause
            ? h(
                'span',
                {},
                h('span', { class: 'cause' }, `${shown(cause.rule)} at step ${cause.step}`),
                h('div', { class: 'muted' }, shown(cause.message)),
              )
            : '',
      ),
    )
  }
  const load = async () => {
    try {
      const response = await fetch('/api/trials')
      const text = await response.text()
      if (!response.ok) throw new Error(text)
      const now = JSON.parse(text) as readonly Listed[]
      // What is the same is not drawn again: somebody may be reading it.
      if (JSON.stringify(now) !== JSON.stringify(trials)) {
        trials = now
        draw()
      }
    } catch (error) {
      said.textContent = `The server does not answer: ${shown(String(error))}`
    }
    setTimeout(() => void load(), POLL_MS)
  }
  await load()
  report.append(
    h('header', {}, h('h1', {}, 'Trials')),
    h(
      'form',
      { class: 'controls', onsubmit: event => event.preventDefault() },
      h('label', { class: 'choice wide' }, h('span', {}, 'Search'), search),
      compare,
    ),
    said,
    h('table', { class: 'trials' }, h('thead', {}, h('tr', {}, ...heads)), body),
    h(
      'footer',
      {},
      `trialscan ${version} `,
      h('a', { href: '/api/openapi.json' }, 'API'),
      ' ',
      h('a', { href: '/assets/licenses.txt' }, 'Licences'),
    ),
  )
  report.removeAttribute('aria-busy')
}
