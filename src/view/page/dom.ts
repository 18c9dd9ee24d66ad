/** Short functions that make elements. A text becomes a text node and is never parsed as HTML. */

type Child = Node | string | null

/** Attributes, and listeners as `on…`. */
type Attributes = Readonly<Record<string, string | number | boolean | null | ((event: Event) => void)>>

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name.slice(2), value)
    else if (value === true) element.setAttribute(name, '')
    else if (value !== null && value !== false) element.setAttribute(name, String(value))
  }
  element.append(...children.filter(child => child !== null))
  return element
}

/** A term, which its title explains. */
export function term(text: string, meaning: string): HTMLElement {
  return h('abbr', { title: meaning, tabindex: 0 }, text)
}

/** A drop-down list. */
export function choice<T extends string>(
  label: string,
  values: readonly (readonly [value: T, text: string])[],
  chosen: T,
  onChoose: (value: T) => void,
): HTMLElement {
  const select = h(
    'select',
    { onchange: event => onChoose((event.target as HTMLSelectElement).value as T) },
    ...values.map(([value, text]) => h('option', { value, selected: value === chosen }, text)),
  )
  return h('label', { class: 'choice' }, h('span', {}, label), select)
}

/** An input for a part of tensor names. */
export function nameFilter(value: string, onInput: (text: string) => void): HTMLElement {
  const oninput = (event: Event) => onInput((event.target as HTMLInputElement).value)
  const input = h('input', { type: 'search', value, placeholder: 'any text', oninput })
  return h('label', { class: 'choice' }, h('span', {}, 'Name has'), input)
}

/** Saves a text as a file. */
export function save(name: string, type: string, content: BlobPart): void {
  const url = URL.createObjectURL(new Blob([content], { type }))
  h('a', { href: url, download: name }).click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

export function button(text: string, onclick: () => void, attributes: Attributes = {}): HTMLButtonElement {
  return h('button', { type: 'button', ...attributes, onclick }, text)
}

const SVG = 'http://www.w3.org/2000/svg'

export function svgElement<K extends 'svg' | 'path' | 'g' | 'text' | 'line' | 'rect' | 'title'>(
  name: K,
  attributes: Readonly<Record<string, string | number>>,
  text = '',
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, name)
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value))
  element.textContent = text
  return element
}
