/** Trials of a server, as they grow. */

import type { TrialView } from '../data.js'
import { type Change, listen } from './changes.js'
import { h } from './dom.js'
import { Page } from './page.js'
import { shown } from './text.js'
import { type LiveData, liveSource, ShownTrial } from './trials.js'

export async function followed(data: LiveData): Promise<void> {
  const bases = data.live.map(id => `/api/trials/${encodeURIComponent(id)}`)
  const state = h('span', { class: 'live', role: 'status' })
  const back = data.isOnly ? [] : [h('a', { href: '/', class: 'back' }, 'All trials')]
  const versions = new Map<string, number>()
  const load = async (base: string): Promise<ShownTrial> => {
    const view = await loaded(base)
    versions.set(base, view.version)
    return new ShownTrial(view, liveSource(base, view))
  }
  let trials: ShownTrial[]
  try {
    trials = await Promise.all(bases.map(load))
  } catch (error) {
    return failed(error, back)
  }
  const page = new Page(trials, {
    title: trials.map(({ view }) => view.name).join(' and '),
    version: data.version,
    extras: [...back, state],
    foot: 'What is looked at is read from the trial at that time.',
  })
  await page.start()
  const changes = new Map<string, Change>()
  let isLoading = false
  const stale = new Set<string>()
  const tell = (text: string | null, isLive: boolean) => {
    const steps = Math.max(0, ...[...changes.values()].map(({ steps }) => steps))
    const isOver = [...changes.values()].every(({ isEnded }) => isEnded)
    state.textContent = text ?? (isOver ? `ended after ${steps} steps` : `live: ${steps} steps`)
    state.classList.toggle('on', isLive && !isOver)
  }
  const renew = async () => {
    if (isLoading) return
    isLoading = true
    try {
      while (stale.size > 0) {
        const due = [...stale]
        stale.clear()
        for (const base of due) trials[bases.indexOf(base)] = await load(base)
        await page.update([...trials])
      }
    } catch (error) {
      tell(error instanceof Error ? shown(error.message) : String(error), false)
    }
    isLoading = false
  }
  const onChange = (change: Change) => {
    const base = bases[data.live.indexOf(change.id)]!
    changes.set(base, change)
    tell(null, true)
    // The first is about what has been loaded, or about what came since.
    if (change.version === versions.get(base)) return
    stale.add(base)
    void renew()
  }
  listen(data.live, onChange, () => tell('the server does not answer', false))
}

async function loaded(base: string): Promise<TrialView & { readonly version: number }> {
  const response = await fetch(`${base}/view`)
  if (response.ok) return (await response.json()) as TrialView & { readonly version: number }
  const { error } = (await response.json()) as { readonly error: { readonly message: string } }
  throw new Error(error.message)
}

function failed(error: unknown, back: readonly HTMLElement[]): void {
  const report = document.getElementById('report')!
  const message = error instanceof Error ? error.message : String(error)
  report.append(
    h('header', {}, h('h1', {}, 'This trial can’t be opened'), ...back),
    h('p', { class: 'verdict bad' }, shown(message)),
  )
  report.removeAttribute('aria-busy')
}
