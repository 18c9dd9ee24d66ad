/** A pickle as values to look at. */

import { expectArgument } from '../../../base/arguments.js'
import { runPickle } from './machine.js'
import { type Handle, KIND, type Pickle } from './tape.js'

/** The content of a pickle. Nothing in it was called, and none of its classes was looked up. */
export type PickleValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | PickleSequence
  | PickleDict
  | PickleGlobal
  | PickleCall
  | PicklePersistent

export interface PickleSequence {
  readonly kind: 'tuple' | 'list' | 'set' | 'frozenset'
  readonly items: readonly PickleValue[]
}

/** Pairs, since keys may be anything; of equal keys Python keeps the last. */
export interface PickleDict {
  readonly kind: 'dict'
  readonly items: readonly (readonly [key: PickleValue, value: PickleValue])[]
}

/** A class or function by its name: `torch._utils`, `_rebuild_tensor_v2`. */
export interface PickleGlobal {
  readonly kind: 'global'
  readonly module: string
  readonly name: string
}

/** A call that Python's unpickler would have made, or an object that it would have built. */
export interface PickleCall {
  readonly kind: 'call'
  readonly callable: PickleValue
  readonly arguments: PickleValue
  readonly keywords?: PickleValue
  /** The state that the object would have been given. */
  readonly state?: PickleValue
  /** The items that would have been appended to it. */
  readonly items?: readonly PickleValue[]
  /** The entries that would have been set in it, by key; of an OrderedDict of Python 2 also those that were its argument. */
  readonly entries?: PickleDict['items']
}

/** A reference to something outside of the pickle: in files of torch, a storage. */
export interface PicklePersistent {
  readonly kind: 'persistent'
  readonly id: PickleValue
}

/**
 * The content of a pickle as data: names of classes and functions instead of these, and notes of calls instead of calls.
 * So any pickle can be looked at, a hostile one as well. A value that several others hold is one object in all of them.
 * Numbers of Python's int beyond 2^53 are bigints.
 * @throws FormatError `BadPickle` for bytes that are no pickle, opcodes that torch.save does not write, cycles, and what
 * is nested more than 1,000 deep
 */
export function readPickle(bytes: Uint8Array): PickleValue {
  expectArgument('readPickle', 'bytes', 'a Uint8Array', bytes, bytes instanceof Uint8Array)
  const pickle = runPickle(bytes)
  const values = new Map<Handle, PickleValue>()
  const valueAt = (handle: Handle): PickleValue => (handle < 0 ? pickle.integer(handle)! : values.get(handle)!)
  for (const handle of pickle.bottomUp('refuse')) values.set(handle, valueFrom(pickle, handle, valueAt))
  return valueAt(pickle.root)
}

function valueFrom(pickle: Pickle, handle: Handle, valueAt: (handle: Handle) => PickleValue): PickleValue {
  const kind = pickle.kind(handle)
  switch (kind) {
    case KIND.none:
    case KIND.cycle:
      return null
    case KIND.true:
    case KIND.false:
      return kind === KIND.true
    case KIND.number:
    case KIND.float:
    case KIND.long:
      return pickle.numeric(handle)!
    case KIND.text:
    case KIND.latin:
      return pickle.exactText(handle)!
    case KIND.bytes:
      return pickle.bytes(handle).slice()
    case KIND.dict:
      return { kind: 'dict', items: pairsOf(pickle, handle, valueAt) }
    case KIND.tuple:
      return { kind: 'tuple', items: itemsOf(pickle, handle, valueAt) }
    case KIND.list:
      return { kind: 'list', items: itemsOf(pickle, handle, valueAt) }
    case KIND.set:
      return { kind: 'set', items: itemsOf(pickle, handle, valueAt) }
    case KIND.frozenset:
      return { kind: 'frozenset', items: itemsOf(pickle, handle, valueAt) }
    case KIND.global: {
      const [module, name] = [0, 1].map(index => pickle.exactText(pickle.link(handle, index))!) as [string, string]
      return { kind: 'global', module, name }
    }
    case KIND.persistent:
      return { kind: 'persistent', id: valueAt(pickle.link(handle, 0)) }
    case KIND.note: {
      const [keywords, state, list, dict] = (['keywords', 'state', 'list', 'dict'] as const).map(part =>
        pickle.part(handle, part),
      )
      return {
        kind: 'call',
        callable: valueAt(pickle.part(handle, 'callable')!),
        arguments: valueAt(pickle.part(handle, 'arguments')!),
        ...(keywords !== undefined && { keywords: valueAt(keywords) }),
        ...(state !== undefined && { state: valueAt(state) }),
        ...(list !== undefined && { items: itemsOf(pickle, list, valueAt) }),
        ...(dict !== undefined && { entries: pairsOf(pickle, dict, valueAt) }),
      }
    }
  }
}

function itemsOf(pickle: Pickle, handle: Handle, valueAt: (handle: Handle) => PickleValue): readonly PickleValue[] {
  return Array.from({ length: pickle.size(handle) }, (_, i) => valueAt(pickle.link(handle, i)))
}

function pairsOf(pickle: Pickle, handle: Handle, valueAt: (handle: Handle) => PickleValue): PickleDict['items'] {
  return Array.from({ length: pickle.size(handle) / 2 }, (_, i) => [
    valueAt(pickle.link(handle, 2 * i)),
    valueAt(pickle.link(handle, 2 * i + 1)),
  ])
}
