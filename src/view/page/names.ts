/** Names of trials and tensors, as a view shows them. */

import { h } from './dom.js'
import { runColor } from './pictures/colors.js'
import { shortened, shown } from './text.js'

/** Opens a tensor's view. */
export type OpenTensor = (name: string) => void

/** The letter `A` or `B` in the trial's colour. */
export function badge(place: number): HTMLElement {
  const style = `background: color-mix(in srgb, ${runColor(place)} 85%, var(--text))`
  return h('span', { class: 'badge', style }, 'AB'[place] ?? '')
}

/** A tensor's name that opens its view. */
export function link(name: string, open: OpenTensor): HTMLElement {
  const follow = (event: Event, name: string) => {
    event.preventDefault()
    open(name)
  }
  const href = `#tensor=${encodeURIComponent(name)}`
  return h('a', { href, onclick: event => follow(event, name), title: shown(name) }, ...breakable(shortened(name, 60)))
}

/** A name that may be broken behind its separators. */
export function breakable(name: string): readonly (string | HTMLElement)[] {
  return name.split(/(?<=[/._:])/).flatMap((part, i) => (i === 0 ? [part] : [h('wbr', {}), part]))
}
