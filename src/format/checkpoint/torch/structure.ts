/** The content of a pickle as a tree for people: tensors with dtype and shape, objects with their class, other values as they are. */

import { type Handle, KIND, type Pickle } from '../pickle/tape.js'
import { bytesAt, numpyScalarAt } from './numpy.js'
import { type FoundTensor, integersOf, tensorAt } from './tensors.js'

/** JSON: dicts are objects, and `{ tensor, shape }`, `{ class, … }`, `{ bytes }`, `{ more }`, `{ cycle }` stand for what JSON has no word for. */
export type StructureValue =
  | null
  | boolean
  | number
  | string
  | readonly StructureValue[]
  | { readonly [key: string]: StructureValue }

const MAX_TEXT_LENGTH = 1000
/** Values beyond that are counted only. */
const MAX_VALUES = 20_000

/** The structure of a pickle. @throws FormatError for nesting that is too deep */
export function structureOf(pickle: Pickle): StructureValue {
  pickle.bottomUp('cut')
  return new Structure(pickle).value(pickle.root)
}

class Structure {
  readonly #pickle: Pickle
  #remaining = MAX_VALUES

  constructor(pickle: Pickle) {
    this.#pickle = pickle
  }

  value(handle: Handle): StructureValue {
    const pickle = this.#pickle
    this.#remaining--
    const number = pickle.numeric(handle)
    if (number !== undefined) return numberValue(number)
    const text = pickle.text(handle)
    if (text !== undefined) return text.length > MAX_TEXT_LENGTH ? `${text.slice(0, MAX_TEXT_LENGTH)}…` : text
    switch (pickle.kind(handle)) {
      case KIND.none:
        return null
      case KIND.true:
        return true
      case KIND.false:
        return false
      case KIND.bytes:
        return { bytes: pickle.bytes(handle).length }
      case KIND.global:
        return { class: pickle.globalName(handle)! }
      case KIND.cycle:
        return { cycle: true }
      case KIND.dict:
        return this.#dict(handle)
      case KIND.note:
      case KIND.persistent:
        return this.#object(handle)
      default:
        return this.#items(handle)
    }
  }

  #items(handle: Handle): readonly StructureValue[] {
    const pickle = this.#pickle
    const items: StructureValue[] = []
    const size = pickle.size(handle)
    for (let i = 0; i < size; i++) {
      if (this.#remaining <= 0) return [...items, { more: size - i }]
      items.push(this.value(pickle.link(handle, i)))
    }
    return items
  }

  #dict(handle: Handle): { readonly [key: string]: StructureValue } {
    const pickle = this.#pickle
    const entries: [string, StructureValue][] = []
    const size = pickle.size(handle)
    for (let i = 0; i < size; i += 2) {
      if (this.#remaining <= 0) {
        entries.push(['more', (size - i) / 2])
        break
      }
      const key = this.value(pickle.link(handle, i))
      entries.push([typeof key === 'string' ? key : JSON.stringify(key), this.value(pickle.link(handle, i + 1))])
    }
    // Own properties, whatever they are called.
    return Object.fromEntries(entries)
  }

  #object(handle: Handle): StructureValue {
    const pickle = this.#pickle
    const tensor = tensorAt(pickle, handle)
    if (tensor !== null) return tensorValue(tensor)
    const type = pickle.globalName(handle)
    if (type !== undefined) return { class: type }
    if (pickle.kind(handle) === KIND.persistent) return { id: this.value(pickle.link(handle, 0)) }
    const scalar = numpyScalarAt(pickle, handle)
    if (scalar !== undefined) return typeof scalar === 'boolean' ? scalar : numberValue(scalar)
    const bytes = bytesAt(pickle, handle)
    if (bytes !== undefined) return { bytes: bytes.length }
    const name = pickle.calleeName(handle)
    const size = name === 'torch.Size' ? integersOf(pickle, handle) : undefined
    if (size !== undefined) return size
    const [list, dict, state, keywords] = (['list', 'dict', 'state', 'keywords'] as const).map(part =>
      pickle.part(handle, part),
    )
    const values = pickle.part(handle, 'arguments')!
    // An OrderedDict is shown as a dict.
    if (name === 'collections.OrderedDict' && pickle.size(values) === 0)
      return dict === undefined ? {} : this.#dict(dict)
    const called = name ?? this.value(pickle.part(handle, 'callable')!)
    return {
      class: called,
      ...(pickle.size(values) > 0 && { arguments: this.value(values) }),
      ...(keywords !== undefined && { keywords: this.value(keywords) }),
      ...(state !== undefined && { state: this.value(state) }),
      ...(list !== undefined && { items: this.#items(list) }),
      ...(dict !== undefined && { entries: this.#dict(dict) }),
    }
  }
}

function numberValue(value: number | bigint): StructureValue {
  return typeof value === 'number' && Number.isFinite(value) ? value : `${value}`
}

function tensorValue({ view, kind }: Omit<FoundTensor, 'path'>): StructureValue {
  return typeof view === 'string' ? { tensor: kind, unread: view } : { tensor: view.type.name, shape: view.shape }
}
