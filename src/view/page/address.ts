/** The address of the current view, `#layers?kind=weights&step=40`: a copied link opens the same view. */

import { moment } from './moment.js'

/** A choice of a view that is part of the address. */
export interface Field {
  readonly value: string
  readonly set: (value: string) => void
  /** The allowed texts; null: any. */
  readonly allowed: readonly string[] | null
}

/** A field of a choice. */
export function field<K extends string>(
  choice: Record<K, string>,
  key: K,
  allowed: readonly string[] | null = null,
): Field {
  return { value: choice[key], set: value => (choice[key] = value), allowed }
}

export interface Address {
  readonly view: string
  /** The tensor of `#tensor=NAME`. */
  readonly name: string | null
  readonly choices: URLSearchParams
}

export function address(): Address {
  const [place, query = ''] = location.hash.slice(1).split('?', 2)
  const [view, name] = place!.split('=', 2)
  return { view: view!, name: name === undefined ? null : decoded(name), choices: new URLSearchParams(query) }
}

/** Sets the choices to those in the address. */
export function takeOver({ choices }: Address, fields: Readonly<Record<string, Field>>): void {
  for (const [key, { set, allowed }] of Object.entries(fields)) {
    const value = choices.get(key)
    if (value !== null && (allowed === null || allowed.includes(value))) set(value)
  }
  const step = choices.get('step')
  if (step !== null && /^\d+$/.test(step)) moment.point(Number(step))
}

/** Replaces the address by that of the current view, without an entry in the history. */
export function tell(view: string, name: string | null, fields: Readonly<Record<string, Field>>): void {
  const choices = new URLSearchParams()
  for (const [key, { value }] of Object.entries(fields)) if (value !== '') choices.set(key, value)
  if (moment.step !== null) choices.set('step', String(moment.step))
  const place = name === null ? view : `${view}=${encodeURIComponent(name)}`
  history.replaceState(history.state, '', `#${place}${choices.size === 0 ? '' : `?${choices}`}`)
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}
