/** The app's page: a person picks a trial and looks at it. index.html has the first screen. */

import { button, h } from '../../view/page/dom.js'
import { followed } from '../../view/page/live.js'
import { shown } from '../../view/page/text.js'
import { within } from './found.js'
import type { Picked, Refusal } from './messages.js'
import { Opened } from './opened.js'
import { droppedIn, pickedIn, pickFolder } from './picking.js'

/** The build puts it in. */
declare const VERSION: string

const start = document.getElementById('start')!
const state = document.getElementById('state')!
const folderField = document.getElementById('folder') as HTMLInputElement
const filesField = document.getElementById('files') as HTMLInputElement
const urlField = document.getElementById('url') as HTMLInputElement
let isOpening = false

document.getElementById('version')!.textContent = `trialscan ${VERSION}`
document.getElementById('pick-folder')!.onclick = () => void openFrom(() => pickFolder(folderField))
document.getElementById('pick-files')!.onclick = () => filesField.click()
for (const field of [folderField, filesField]) {
  field.onchange = () => {
    void openFrom(async () => pickedIn(field))
    // The same can be picked again.
    field.value = ''
  }
}
document.ondragover = event => {
  event.preventDefault()
  start.classList.add('over')
}
document.ondragleave = event => {
  if (event.relatedTarget === null) start.classList.remove('over')
}
document.ondrop = event => {
  event.preventDefault()
  start.classList.remove('over')
  const { dataTransfer } = event
  if (dataTransfer !== null) void openFrom(() => droppedIn(dataTransfer))
}

const url = new URLSearchParams(location.search).get('open')
if (url !== null) {
  urlField.value = url
  void openFrom(async () => ({ kind: 'url', url: new URL(url.trim(), document.baseURI).href }))
}
// Where a browser allows none, all works but for being offline.
addEventListener('load', () => void navigator.serviceWorker?.register('service-worker.js').catch(() => {}))

async function openFrom(pick: () => Promise<Picked | null>): Promise<void> {
  if (isOpening) return
  isOpening = true
  try {
    const picked = await pick()
    if (picked !== null) await open(picked)
  } catch (error) {
    refuse([h('p', {}, shown(error instanceof Error ? error.message : String(error)))])
  }
  isOpening = false
}

async function open(picked: Picked): Promise<void> {
  start.setAttribute('aria-busy', 'true')
  state.replaceChildren(h('p', { class: 'opening', role: 'status' }, `Opening ${shown(nameOf(picked))} …`))
  const opened = await Opened.open(picked)
  if (!(opened instanceof Opened)) return refuse(reasons(picked, opened))
  try {
    await followed({
      loads: [() => opened.load()],
      listen: onChange => opened.listen(change => onChange(0, change)),
      version: VERSION,
      extras: [h('a', { href: location.pathname, class: 'back' }, 'Open another')],
    })
  } catch (error) {
    opened.close()
    throw error
  }
  // What is dropped now is not opened, by the browser neither: that would leave the page.
  document.ondragleave = null
  document.ondragover = document.ondrop = event => event.preventDefault()
  document.getElementById('view')!.focus({ preventScroll: true })
  document.title = `${shown(nameOf(picked))} – trialscan`
}

function nameOf(picked: Picked): string {
  if (picked.kind === 'folder') return picked.folder.name
  if (picked.kind === 'url') return picked.url
  const [[first]] = [...picked.files.keys()].map(path => path.split('/')) as [[string]]
  return picked.files.size === 1 || [...picked.files.keys()][0] !== first ? first : `${picked.files.size} files`
}

function refuse(reasons: readonly HTMLElement[]): void {
  start.removeAttribute('aria-busy')
  state.replaceChildren(h('div', { class: 'verdict bad', role: 'alert' }, ...reasons))
  state.scrollIntoView({ block: 'nearest' })
}

/** Why it was not opened, and what in it can be. */
function reasons(picked: Picked, { message, trials }: Refusal): HTMLElement[] {
  const name = shown(nameOf(picked))
  const why = h('p', {}, shown(message))
  if (trials.length > 0) {
    const open = (directory: string) => void openFrom(() => within(picked, directory))
    const buttons = trials.map(directory => button(shown(directory), () => open(directory)))
    why.className = 'muted'
    return [h('h2', {}, `Which one in ${name}?`), h('p', { class: 'instead' }, ...buttons), why]
  }
  const heading = h('h2', {}, `${name} can’t be opened`)
  if (picked.kind !== 'url') return [heading, why]
  const hint = 'Of a folder, listing.txt in it must name the files, since HTTP lists none: find . -type f > listing.txt'
  return [heading, why, h('p', { class: 'muted' }, hint)]
}
