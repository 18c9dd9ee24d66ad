/** The tensors in a pickle of torch.save: the path of each, and its elements in a storage. */

import { type Handle, KIND, type Pickle } from '../pickle/tape.js'
import { isNumpyArray, type NumpyArray, numpyArrayAt } from './numpy.js'
import { type ElementType, elementTypeOf, type Storage, storageOf } from './storage.js'

/** A view of a storage. */
export interface View {
  readonly storage: Storage
  readonly type: ElementType
  /** The offset in elements of the type, like the other numbers here. */
  readonly offset: number
  readonly shape: readonly number[]
  readonly stride: readonly number[]
}

export interface FoundTensor {
  /** The keys that lead to it. */
  readonly path: readonly string[]
  /** A text: why it can't be read. An array of numpy lies in the pickle itself. */
  readonly view: View | NumpyArray | string
  /** The kind of a tensor that can't be read. */
  readonly kind: string
  /** True if nothing is wrong with it, but that its kind is not read. */
  readonly isOther?: boolean
}

/** A value that many others hold counts as often. */
const MAX_TENSORS = 1_000_000
/** Items of a tuple that is a key, and characters of each. */
const MAX_KEY_ITEMS = 16
const MAX_KEY_ITEM_LENGTH = 1000
/** Characters of all names: a key may be long, and lead to many. */
const MAX_NAME_LENGTHS = 128 << 20
const MAX_DIMENSIONS = 64
/** The largest number of integers that are read from a tuple: one may hold a million tensors instead. */
const MAX_INTEGERS = 1000
/** Attributes of torch.nn.Module that hold what its state_dict has, under the same names without these. */
const MODULE_PARTS = new Set(['_parameters', '_buffers', '_modules'])

/**
 * The tensors of a pickle, in its order. A value is not looked for inside of itself.
 * @throws FormatError for deep nesting, and for storages with unexpected ids
 */
export function findTensors(pickle: Pickle): readonly FoundTensor[] {
  return new Search(pickle).run()
}

/** The kind of tensor that a call rebuilds; null for another call. */
function rebuiltBy(callee: string | undefined): string | null {
  const match = /^torch(?:\.[\w.]+)?\.(_rebuild_\w+)$/.exec(callee ?? '')
  return match ? match[1]! : null
}

/** From a value to one in it. */
interface Step {
  /** Null: it adds nothing to the name. */
  readonly key: string | null
  readonly value: Handle
}

class Search {
  readonly #pickle: Pickle
  /** The number of tensors below each node. */
  readonly #counts: Float64Array
  readonly #tensors: FoundTensor[] = []
  /** Steps on from a value, which may be reached a million times. */
  readonly #steps = new Map<Handle, readonly Step[]>()
  readonly #views = new Map<Handle, Omit<FoundTensor, 'path'>>()
  #nameLengths = 0

  constructor(pickle: Pickle) {
    this.#pickle = pickle
    this.#counts = new Float64Array(pickle.nodeCount)
    for (const handle of pickle.bottomUp('cut')) {
      let count = 0
      if (this.#isTensor(handle)) count = 1
      else {
        for (let i = 0; i < pickle.size(handle); i++) {
          const child = pickle.link(handle, i)
          // A link to nothing lies above all nodes.
          if (child >= 0) count += this.#counts[child] ?? 0
        }
      }
      this.#counts[handle] = count
    }
  }

  run(): readonly FoundTensor[] {
    const { root } = this.#pickle
    const count = root < 0 ? 0 : this.#counts[root]!
    if (count > MAX_TENSORS) throw this.#pickle.fault(`at most ${MAX_TENSORS} tensors`, `${count}`)
    this.#visit(root, [], 0)
    return this.#tensors
  }

  #isTensor(handle: Handle): boolean {
    const pickle = this.#pickle
    if (pickle.kind(handle) === KIND.persistent) {
      if (storageOf(pickle, handle) !== null) return true
      if (pickle.globalName(handle) !== undefined) return false
      throw pickle.fault('ids of storages', 'a persistent id of something else')
    }
    return rebuiltBy(pickle.calleeName(handle)) !== null || isNumpyArray(pickle, handle)
  }

  /** Visits a value and the values in it. @param length of the path as a name */
  #visit(handle: Handle, path: readonly string[], length: number): void {
    if (handle < 0 || this.#counts[handle] === 0) return
    if (this.#isTensor(handle)) {
      this.#nameLengths += length
      if (this.#nameLengths > MAX_NAME_LENGTHS) {
        throw this.#pickle.fault(`names of at most ${MAX_NAME_LENGTHS} characters together`, 'more')
      }
      const view = this.#views.get(handle) ?? viewOf(this.#pickle, handle)
      this.#views.set(handle, view)
      this.#tensors.push({ path, ...view })
      return
    }
    const steps = this.#steps.get(handle) ?? this.#stepsFrom(handle)
    this.#steps.set(handle, steps)
    for (const { key, value } of steps) {
      // A step that adds nothing to a name counts, too: each is work.
      if (key === null) this.#visit(value, path, length + 1)
      else this.#visit(value, [...path, key], length + key.length + 1)
    }
  }

  /** The values in another that lead to tensors. */
  #stepsFrom(handle: Handle): readonly Step[] {
    const pickle = this.#pickle
    const leads = (value: Handle | undefined): value is Handle => value !== undefined && this.#countOf(value) > 0
    const steps: Step[] = []
    if (pickle.isDict(handle)) return this.#stepsOfDict(handle)
    if (pickle.isSequence(handle)) {
      for (let i = 0; i < pickle.size(handle); i++) {
        const value = pickle.link(handle, i)
        if (leads(value)) steps.push({ key: `${i}`, value })
      }
    } else if (pickle.isNote(handle)) {
      for (const part of ['arguments', 'list', 'dict', 'keywords', 'state'] as const) {
        const value = pickle.part(handle, part)
        if (leads(value)) steps.push({ key: null, value })
      }
    }
    return steps
  }

  #countOf(handle: Handle): number {
    return handle < 0 ? 0 : this.#counts[handle]!
  }

  #stepsOfDict(dict: Handle): readonly Step[] {
    const pickle = this.#pickle
    // Of equal keys Python keeps the last. 1 and "1" are two, though their tensors have one name.
    const last = new Map<unknown, { readonly key: string; readonly value: Handle }>()
    for (let i = 0; i < pickle.size(dict); i += 2) {
      const [handle, value] = [pickle.link(dict, i), pickle.link(dict, i + 1)]
      if (this.#countOf(value) === 0) continue
      const key = keyText(pickle, handle)
      last.set(pickle.isText(handle) ? key : (pickle.numeric(handle) ?? {}), { key, value })
    }
    return [...last.values()].map(({ key, value }) => {
      const isModulePart = MODULE_PARTS.has(key) && pickle.dictOf(value) !== undefined
      return { key: isModulePart ? null : key, value }
    })
  }
}

/** A key as a part of a name. */
function keyText(pickle: Pickle, key: Handle): string {
  const text = pickle.text(key) ?? pickle.numeric(key) ?? pickle.globalName(key)
  if (text !== undefined) return `${text}`
  if (!pickle.isSequence(key) || pickle.size(key) > MAX_KEY_ITEMS) return pickle.describe(key)
  return Array.from({ length: pickle.size(key) }, (_, i) => {
    const item = pickle.link(key, i)
    return `${pickle.text(item) ?? pickle.numeric(item) ?? pickle.describe(item)}`.slice(0, MAX_KEY_ITEM_LENGTH)
  }).join(',')
}

/** The tensor at a place of a pickle; null if there is none. */
export function tensorAt(pickle: Pickle, handle: Handle): Omit<FoundTensor, 'path'> | null {
  const isTensor = storageOf(pickle, handle) !== null || rebuiltBy(pickle.calleeName(handle)) !== null
  return isTensor || isNumpyArray(pickle, handle) ? viewOf(pickle, handle) : null
}

/** The storage and view of a tensor. Nested wrappings are passed through. */
function viewOf(pickle: Pickle, handle: Handle): Omit<FoundTensor, 'path'> {
  const storage = storageOf(pickle, handle)
  if (storage !== null) {
    const { type, byteLength, viewOffset } = storage
    const shape = [byteLength / type.byteLength]
    return { view: { storage, type, offset: viewOffset, shape, stride: [1] }, kind: 'storage' }
  }
  if (isNumpyArray(pickle, handle)) return { view: numpyArrayAt(pickle, handle), kind: 'numpy.ndarray' }
  const kind = rebuiltBy(pickle.calleeName(handle)) ?? ''
  const list = pickle.part(handle, 'arguments')!
  return rebuilt(pickle, kind, list)
}

function rebuilt(pickle: Pickle, kind: string, list: Handle): Omit<FoundTensor, 'path'> {
  const argument = (index: number): Handle | undefined =>
    pickle.isSequence(list) && index < pickle.size(list) ? pickle.link(list, index) : undefined
  switch (kind) {
    case '_rebuild_tensor':
    case '_rebuild_tensor_v2':
      return turned(pickle, argument(6)) ?? { view: plainView(pickle, argument, undefined), kind }
    case '_rebuild_tensor_v3': {
      const other = turned(pickle, argument(7))
      if (other !== null) return other
      const dtype = argument(6)
      const name = dtype === undefined ? undefined : pickle.globalName(dtype)
      const isOther = name !== undefined && elementTypeOf(name) === undefined
      const tensor = {
        view: plainView(pickle, argument, name ?? 'no dtype'),
        kind: name?.replace(/^torch\./, '') ?? kind,
      }
      return isOther ? { ...tensor, isOther } : tensor
    }
    case '_rebuild_parameter':
    case '_rebuild_parameter_with_state': {
      const inner = argument(0)
      return inner !== undefined && rebuiltBy(pickle.calleeName(inner)) !== null
        ? viewOf(pickle, inner)
        : { view: 'a parameter of no tensor', kind }
    }
    case '_rebuild_from_type':
    case '_rebuild_from_type_v2': {
      const [builder, values, state] = [argument(0), argument(2), argument(3)]
      const local = state === undefined ? undefined : localTensor(pickle, state)
      if (local !== undefined) return viewOf(pickle, local)
      const inner = builder === undefined ? null : rebuiltBy(pickle.globalName(builder))
      return inner !== null && values !== undefined && !inner.startsWith('_rebuild_from_type')
        ? rebuilt(pickle, inner, values)
        : { view: 'a tensor of an unknown class', kind }
    }
    default:
      return { view: `another kind: ${kind} is not read`, kind, isOther: true }
  }
}

/** The note on a tensor whose elements are conjugates or negatives of those in its storage; null for another. */
function turned(pickle: Pickle, metadata: Handle | undefined): Omit<FoundTensor, 'path'> | null {
  for (const [key, kind] of [
    ['conj', 'conjugate'],
    ['neg', 'negative'],
  ] as const) {
    const value = metadata === undefined ? undefined : pickle.get(metadata, key)
    if (value === undefined || pickle.kind(value) !== KIND.true) continue
    return { view: `the ${kind} of its storage: save resolve_${key}() of it`, kind, isOther: true }
  }
  return null
}

/** The part of a DTensor that its rank has. Its state is a dict, or a pair of one and of slots. */
function localTensor(pickle: Pickle, state: Handle): Handle | undefined {
  const parts = pickle.isSequence(state)
    ? Array.from({ length: Math.min(2, pickle.size(state)) }, (_, i) => pickle.link(state, i))
    : [state]
  for (const part of parts) {
    const local = pickle.get(part, '_local_tensor')
    if (local !== undefined && rebuiltBy(pickle.calleeName(local)) !== null) return local
  }
  return undefined
}

function plainView(
  pickle: Pickle,
  argument: (index: number) => Handle | undefined,
  dtype: string | undefined,
): View | string {
  const first = argument(0)
  const storage = first === undefined ? null : storageOf(pickle, first)
  if (storage === null) return 'a tensor without a storage'
  const type = dtype === undefined ? storage.type : elementTypeOf(dtype)
  if (type === undefined) return `elements of ${dtype}, which is not known`
  const offset = integerOf(pickle, argument(1))
  const [shape, stride] = [integersOf(pickle, argument(2)), integersOf(pickle, argument(3))]
  if (offset === undefined || shape === undefined || stride === undefined || shape.length !== stride.length) {
    return 'a tensor whose offset, size and stride do not fit together'
  }
  if (shape.length > MAX_DIMENSIONS) return `a tensor of ${shape.length} dimensions`
  return { storage, type, offset: offset + storage.viewOffset, shape, stride }
}

function integerOf(pickle: Pickle, handle: Handle | undefined): number | undefined {
  const value = handle === undefined ? undefined : pickle.integer(handle)
  return value !== undefined && value >= 0 ? value : undefined
}

/** A tuple of integers, or torch.Size of one. */
export function integersOf(pickle: Pickle, handle: Handle | undefined): readonly number[] | undefined {
  if (handle === undefined || handle < 0) return undefined
  if (pickle.calleeName(handle) === 'torch.Size') return integersOf(pickle, pickle.argument(handle, 0))
  if (!pickle.isSequence(handle) || pickle.size(handle) > MAX_INTEGERS) return undefined
  const integers: number[] = []
  for (let i = 0; i < pickle.size(handle); i++) {
    const value = integerOf(pickle, pickle.link(handle, i))
    if (value === undefined) return undefined
    integers.push(value)
  }
  return integers
}

/** True if the elements of a view are dense in C order. */
export function isContiguous({ shape, stride }: View): boolean {
  let wanted = 1
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    if (shape[axis] !== 1 && stride[axis] !== wanted) return false
    wanted *= shape[axis]!
  }
  return true
}

/** The highest element of its storage that a view has. */
export function lastElement({ offset, shape, stride }: View): number {
  return shape.reduce((last, size, axis) => last + (size - 1) * stride[axis]!, offset)
}
