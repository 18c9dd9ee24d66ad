/** Trials that may grow while the page is open. */

import type { ServedComparison, TrialView } from '../data.js'
import { type Change, listen } from './changes.js'
import { h } from './dom.js'
import { Page } from './page.js'
import { shown } from './text.js'
import { type LiveData, liveSource, ShownTrial, type Source, withDifferences } from './trials.js'

type FollowedChange = Pick<Change, 'version' | 'steps' | 'isEnded'>

/** A loaded trial, at its present version. */
export interface LoadedTrial {
  readonly view: TrialView & { readonly version: number }
  readonly source: Source
}

/** The trials of a page, and how to load, compare and follow them. */
export interface Followed {
  /** Loads each trial as it is at that time. */
  readonly loads: readonly (() => Promise<LoadedTrial>)[]
  /** Compares two trials. Null: no comparison is possible. */
  readonly compare?: () => Promise<ServedComparison | null>
  /** Listens to changes. @param onChange gets the index of the trial */
  listen(onChange: (at: number, change: FollowedChange) => void, onSilence: (text: string) => void): void
  readonly version: string
  /** Further elements in the head. */
  readonly extras: readonly HTMLElement[]
}

/** Shows trials of a server. */
export async function served(data: LiveData): Promise<void> {
  const back = data.isOnly ? [] : [h('a', { href: '/', class: 'back' }, 'All trials')]
  const loads = data.live.map(id => async () => {
    const base = `/api/trials/${encodeURIComponent(id)}`
    const view = await viewOf(base)
    return { view, source: liveSource(base, view) }
  })
  const compare = async () => {
    const response = await fetch(`/api/compare/${data.live.map(encodeURIComponent).join('/')}`)
    return response.ok ? ((await response.json()) as ServedComparison) : null
  }
  try {
    await followed({
      loads,
      ...(loads.length === 2 && { compare }),
      listen: (onChange, onSilence) =>
        listen(
          data.live,
          change => onChange(data.live.indexOf(change.id), change),
          () => onSilence('the server does not answer'),
        ),
      version: data.version,
      extras: back,
    })
  } catch (error) {
    failed(error, back)
  }
}

/** Shows trials, and updates the page when they change. @throws what loading throws at first */
export async function followed({ loads, compare, listen, version, extras }: Followed): Promise<void> {
  const state = h('span', { class: 'live', role: 'status' })
  const versions: number[] = []
  const loaded: LoadedTrial[] = []
  let comparison: ServedComparison | null = null
  const shownAt = (at: number): ShownTrial => {
    const { view, source } = loaded[at]!
    return new ShownTrial(view, at === 0 && comparison !== null ? withDifferences(source, comparison) : source)
  }
  const load = async (at: number): Promise<ShownTrial> => {
    loaded[at] = await loads[at]!()
    versions[at] = loaded[at].view.version
    return shownAt(at)
  }
  const trials = await Promise.all(loads.map((_, at) => load(at)))
  const page = new Page(trials, {
    title: trials.map(({ view }) => view.name).join(' and '),
    version,
    extras: [...extras, state],
    foot: 'What is looked at is read from the trial at that time.',
  })
  await page.start()
  /** Compares the trials now. It reads both, so it runs at the start and once both have ended. */
  const compareNow = async () => {
    comparison = (await compare?.()) ?? comparison
    if (comparison === null) return
    trials[0] = shownAt(0)
    await page.compare([...trials], comparison)
  }
  const changes = new Map<number, FollowedChange>()
  let isLoading = false
  const stale = new Set<number>()
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
        for (const at of due) trials[at] = await load(at)
        await page.update([...trials])
      }
      const isLast = [...changes.values()].every(({ isEnded }) => isEnded)
      if (isLast && comparison !== null && comparison.steps < trials[0]!.view.steps.length) await compareNow()
    } catch (error) {
      tell(error instanceof Error ? shown(error.message) : String(error), false)
    }
    isLoading = false
  }
  const onChange = (at: number, change: FollowedChange) => {
    changes.set(at, change)
    tell(null, true)
    // The first event may describe the version that is loaded already.
    if (change.version === versions[at]) return
    stale.add(at)
    void renew()
  }
  listen(onChange, text => tell(text, false))
  if (trials.length === 2)
    compareNow().catch(error => tell(error instanceof Error ? shown(error.message) : String(error), false))
}

async function viewOf(base: string): Promise<TrialView & { readonly version: number }> {
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
