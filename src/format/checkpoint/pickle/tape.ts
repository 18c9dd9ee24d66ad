/** The content of a pickle in columns of numbers. */

import { FormatError } from '../../../base/errors.js'

/** A value of a pickle: from 0 on the number of a node, below 0 an integer. */
export type Handle = number

export const KIND = {
  none: 0,
  true: 1,
  false: 2,
  number: 3,
  float: 4,
  long: 5,
  text: 6,
  latin: 7,
  bytes: 8,
  tuple: 9,
  list: 10,
  dict: 11,
  set: 12,
  frozenset: 13,
  global: 14,
  note: 15,
  persistent: 16,
  /** A value inside of itself, where cycles are cut. */
  cycle: 17,
} as const

type Kind = (typeof KIND)[keyof typeof KIND]

export const NONE: Handle = 0
export const SINGLES = { true: 1, false: 2, emptyTuple: 3, cycle: 4 } as const

/** The parts of a note, in the order of its links. A plain call has the first two alone. */
const PARTS = ['callable', 'arguments', 'state', 'list', 'dict', 'keywords'] as const
type Part = (typeof PARTS)[number]
const PLAIN_PARTS = 2

const MAX_DEPTH = 1000
/** A dict of more links has an index. */
const MAX_SEARCHED_LINKS = 64
/** Texts and names that are kept: most of those that are asked for again are few. */
const MAX_KEPT = 1 << 14
/** A link to nothing. */
const NO_LINK = 0x7fff_ffff

/** The handle of an integer from 0 to 2^31 - 1. */
export function integer(value: number): Handle {
  return -1 - value
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
const exactDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export class Pickle {
  readonly url: string
  readonly #bytes: Uint8Array
  #kinds: Uint8Array
  /** For a container its first link; for a text its first byte; for a number its index. */
  #at: Int32Array
  #length: Int32Array
  /** The square root of how many links a node has room for, where they were moved. */
  #room: Uint16Array
  #count = 0
  #links: Int32Array
  #linkCount = 0
  #numbers: number[] = []
  readonly #texts = new Map<Handle, string>()
  readonly #globals = new Map<Handle, string>()
  /** The names of all classes and functions, also of those that nothing holds in the end. */
  readonly globalNames = new Set<string>()
  readonly #indices = new Map<Handle, Map<string, Handle>>()
  /** The dicts of lists that OrderedDicts were called with; null: of other values than pairs. */
  readonly #entries = new Map<Handle, Handle | null>()
  #root: Handle = NONE
  #end = 0

  constructor(bytes: Uint8Array, url: string, byteLength: number) {
    this.#bytes = bytes
    this.url = url
    // This is more than most pickles need; untouched memory costs nothing.
    const capacity = Math.max(32, Math.min(byteLength, 1 << 26) >> 2)
    // One piece for all columns, for there may be very many pickles.
    const memory = new ArrayBuffer(capacity * 19)
    this.#at = new Int32Array(memory, 0, capacity)
    this.#length = new Int32Array(memory, capacity * 4, capacity)
    this.#links = new Int32Array(memory, capacity * 8, capacity * 2)
    this.#room = new Uint16Array(memory, capacity * 16, capacity)
    this.#kinds = new Uint8Array(memory, capacity * 18, capacity)
    for (const kind of [KIND.none, KIND.true, KIND.false, KIND.tuple, KIND.cycle]) this.node(kind)
  }

  get root(): Handle {
    return this.#root
  }

  /** The end of the pickle in its bytes. */
  get end(): number {
    return this.#end
  }

  /** The number of nodes. Handles of nodes are below it. */
  get nodeCount(): number {
    return this.#count
  }

  finish(root: Handle, end: number): void {
    this.#root = root
    this.#end = end
  }

  // Writers, for the machine.

  node(kind: Kind): Handle {
    if (this.#count === this.#kinds.length) {
      const capacity = this.#count + (this.#count >> 1)
      this.#kinds = enlarged(this.#kinds, new Uint8Array(capacity))
      this.#at = enlarged(this.#at, new Int32Array(capacity))
      this.#length = enlarged(this.#length, new Int32Array(capacity))
      this.#room = enlarged(this.#room, new Uint16Array(capacity))
    }
    this.#kinds[this.#count] = kind
    return this.#count++
  }

  number(value: number, kind: typeof KIND.number | typeof KIND.float = KIND.number): Handle {
    const node = this.node(kind)
    this.#at[node] = this.#numbers.push(value) - 1
    return node
  }

  /** An integer of Python: two's complement, little-endian. */
  long(at: number, byteLength: number): Handle {
    if (byteLength <= 6) {
      let value = 0
      for (let i = byteLength - 1; i >= 0; i--) value = value * 256 + this.#bytes[at + i]!
      if (byteLength > 0 && this.#bytes[at + byteLength - 1]! >= 0x80) value -= 256 ** byteLength
      return value >= 0 && value < 2 ** 31 ? integer(value) : this.number(value)
    }
    return this.bytesAt(KIND.long, at, byteLength)
  }

  bytesAt(kind: Kind, at: number, byteLength: number): Handle {
    const node = this.node(kind)
    this.#at[node] = at
    this.#length[node] = byteLength
    return node
  }

  global(module: Handle, name: Handle): Handle {
    const node = this.node(KIND.global)
    this.#pair(node, module, name)
    // The name is read at once, so that an error has its position.
    this.globalNames.add(this.globalName(node)!)
    return node
  }

  note(callable: Handle, values: Handle): Handle {
    const node = this.node(KIND.note)
    this.#pair(node, callable, values)
    return node
  }

  /** A call. An OrderedDict of Python 2, which was called with a list of pairs, becomes one of Python 3, which has entries. */
  call(callable: Handle, values: Handle): Handle {
    const entries = this.#entriesOf(callable, values)
    if (entries === null) return this.note(callable, values)
    const note = this.note(callable, SINGLES.emptyTuple)
    this.setPart(note, 'dict', entries)
    return note
  }

  #entriesOf(callable: Handle, values: Handle): Handle | null {
    const list = this.kind(values) === KIND.tuple && this.size(values) === 1 ? this.link(values, 0) : NONE
    if (this.kind(list) !== KIND.list || this.globalName(callable) !== 'collections.OrderedDict') return null
    // Any number of calls may have one list.
    let entries = this.#entries.get(list)
    if (entries === undefined) {
      const links: Handle[] = []
      for (let i = 0; i < this.size(list); i++) {
        const pair = this.link(list, i)
        if (this.isSequence(pair) && this.size(pair) === 2) links.push(this.link(pair, 0), this.link(pair, 1))
      }
      const isOfPairs = links.length === 2 * this.size(list)
      entries = isOfPairs ? this.node(KIND.dict) : null
      if (entries !== null) this.append(entries, links, 0, links.length)
      this.#entries.set(list, entries)
    }
    return entries
  }

  /** The first two links of a node. */
  #pair(node: Handle, first: Handle, other: Handle): void {
    this.#reserve(2)
    this.#at[node] = this.#linkCount
    this.#length[node] = 2
    this.#links[this.#linkCount++] = first
    this.#links[this.#linkCount++] = other
  }

  /** Hangs a part on a note. */
  setPart(note: Handle, part: Part, value: Handle): void {
    if (this.#length[note]! < PARTS.length) this.#addParts(note)
    this.#links[this.#at[note]! + PARTS.indexOf(part)] = value
  }

  /** A plain note gets room for all parts, and no more: there may be millions. */
  #addParts(note: Handle): void {
    const at = this.#at[note]!
    this.#reserve(PARTS.length)
    this.#links.copyWithin(this.#linkCount, at, at + PLAIN_PARTS)
    this.#links.fill(NO_LINK, this.#linkCount + PLAIN_PARTS, this.#linkCount + PARTS.length)
    this.#at[note] = this.#linkCount
    this.#length[note] = PARTS.length
    this.#linkCount += PARTS.length
  }

  /** The container for items that are added to a value; null if it takes none. */
  contentFor(target: Handle, kind: typeof KIND.list | typeof KIND.dict | typeof KIND.set): Handle | null {
    if (this.kind(target) === kind) return target
    if (!this.isNote(target)) return null
    const part = kind === KIND.dict ? 'dict' : 'list'
    const content = this.part(target, part)
    if (content !== undefined) return content
    const node = this.node(kind === KIND.dict ? KIND.dict : KIND.list)
    this.setPart(target, part, node)
    return node
  }

  append(node: Handle, values: ArrayLike<number>, from: number, to: number): void {
    const length = this.#length[node]!
    const more = to - from
    if (length === 0) this.#at[node] = this.#linkCount
    const at = this.#at[node]!
    if (at + length === this.#linkCount) {
      this.#reserve(more)
      this.#linkCount += more
    } else if (length + more > this.#room[node]! ** 2) {
      this.#moveToEnd(node, length + more)
    }
    const start = this.#at[node]! + length
    for (let i = from; i < to; i++) this.#links[start + i - from] = values[i]!
    this.#length[node] = length + more
  }

  /** Links of a node that grows go behind all others, with room for as many again: two lists may grow in turn. */
  #moveToEnd(node: Handle, needed: number): void {
    const room = Math.min(0xffff, Math.ceil(Math.sqrt(needed * 2)))
    const [at, length] = [this.#at[node]!, this.#length[node]!]
    this.#reserve(Math.max(needed, room ** 2))
    this.#links.copyWithin(this.#linkCount, at, at + length)
    this.#at[node] = this.#linkCount
    this.#room[node] = room
    this.#linkCount += Math.max(needed, room ** 2)
  }

  #reserve(more: number): void {
    const needed = this.#linkCount + more
    if (needed <= this.#links.length) return
    this.#links = enlarged(
      this.#links,
      new Int32Array(Math.max(needed, this.#links.length + (this.#links.length >> 1))),
    )
  }

  // Readers.

  /** The kind of a node; of an integer that of numbers. */
  kind(handle: Handle): Kind {
    return handle < 0 ? KIND.number : (this.#kinds[handle] as Kind)
  }

  isText(handle: Handle): boolean {
    const kind = this.kind(handle)
    return kind === KIND.text || kind === KIND.latin
  }

  isNote(handle: Handle): boolean {
    return this.kind(handle) === KIND.note
  }

  isDict(handle: Handle): boolean {
    return this.kind(handle) === KIND.dict
  }

  /** A number, or an integer beyond 2^53 as a bigint; undefined: no number. */
  numeric(handle: Handle): number | bigint | undefined {
    if (handle < 0) return -1 - handle
    const kind = this.#kinds[handle]
    if (kind === KIND.number || kind === KIND.float) return this.#numbers[this.#at[handle]!]
    if (kind !== KIND.long) return undefined
    const [at, length] = [this.#at[handle]!, this.#length[handle]!]
    let value = 0n
    for (let i = length - 1; i >= 0; i--) value = (value << 8n) | BigInt(this.#bytes[at + i]!)
    value = BigInt.asIntN(length * 8, value)
    const small = Number(value)
    return Number.isSafeInteger(small) ? small : value
  }

  /** An integer that a double holds; undefined: anything else. */
  integer(handle: Handle): number | undefined {
    if (handle < 0) return -1 - handle
    const value = this.#kinds[handle] === KIND.float ? undefined : this.numeric(handle)
    return typeof value === 'number' ? value : undefined
  }

  /** A text; undefined: no text. U+FFFD stands for what is no UTF-8: Python pickles halves of surrogates. */
  text(handle: Handle): string | undefined {
    if (!this.isText(handle)) return undefined
    let text = this.#texts.get(handle)
    if (text === undefined) {
      text = this.#kinds[handle] === KIND.latin ? latin(this.bytes(handle)) : decoder.decode(this.bytes(handle))
      keep(this.#texts, handle, text)
    }
    return text
  }

  /** A text that is what its bytes are, for what is found by it. @throws FormatError if they are no UTF-8 */
  exactText(handle: Handle): string | undefined {
    const text = this.text(handle)
    if (this.kind(handle) !== KIND.text || !text!.includes('\ufffd')) return text
    try {
      return exactDecoder.decode(this.bytes(handle))
    } catch {
      const offset = this.#at[handle]!
      const message = `${this.url}, byte ${offset}: expected text in UTF-8, got other bytes`
      throw new FormatError('BadPickle', message, {
        url: this.url,
        offset,
        expected: 'text in UTF-8',
        got: 'other bytes',
      })
    }
  }

  /** The bytes of a text or of bytes, as they lie in the pickle. */
  bytes(handle: Handle): Uint8Array {
    const at = this.#at[handle]!
    return this.#bytes.subarray(at, at + this.#length[handle]!)
  }

  /** The start of a text, or of bytes, in the pickle. */
  startOf(handle: Handle): number {
    return this.#at[handle]!
  }

  /** `collections.OrderedDict`; undefined: no global. */
  globalName(handle: Handle): string | undefined {
    if (this.kind(handle) === KIND.persistent) return this.#moduleName(this.link(handle, 0))
    if (this.kind(handle) !== KIND.global) return undefined
    let name = this.#globals.get(handle)
    if (name === undefined) {
      name = `${this.exactText(this.link(handle, 0))}.${this.exactText(this.link(handle, 1))}`
      keep(this.#globals, handle, name)
    }
    return name
  }

  /** The class in `("module", class, file, source)`: files of torch before 1.6 have the classes of modules so. */
  #moduleName(id: Handle): string | undefined {
    if (this.kind(id) !== KIND.tuple || this.size(id) < 2 || this.text(this.link(id, 0)) !== 'module') return undefined
    const type = this.link(id, 1)
    return this.kind(type) === KIND.global ? this.globalName(type) : undefined
  }

  /** The number of links of a node: items of a sequence, keys and values of a dict, parts of a note. */
  size(handle: Handle): number {
    const kind = this.kind(handle)
    return kind >= KIND.tuple ? this.#length[handle]! : 0
  }

  link(handle: Handle, index: number): Handle {
    return this.#links[this.#at[handle]! + index]!
  }

  isSequence(handle: Handle): boolean {
    const kind = this.kind(handle)
    return kind >= KIND.tuple && kind <= KIND.frozenset && kind !== KIND.dict
  }

  /** A part of a note. */
  part(note: Handle, part: Part): Handle | undefined {
    const index = PARTS.indexOf(part)
    if (index >= this.#length[note]!) return undefined
    const link = this.link(note, index)
    return link === NO_LINK ? undefined : link
  }

  /** The name of what a note would have called: `torch._utils._rebuild_tensor_v2`. */
  calleeName(note: Handle): string | undefined {
    return this.isNote(note) ? this.globalName(this.link(note, 0)) : undefined
  }

  /** The arguments of a note. */
  argument(note: Handle, index: number): Handle | undefined {
    const list = this.link(note, 1)
    return this.kind(list) === KIND.tuple && index < this.size(list) ? this.link(list, index) : undefined
  }

  /** The value of a text as a key of a dict, or of the dict that a note has; undefined: none. */
  get(handle: Handle, key: string): Handle | undefined {
    const dict = this.dictOf(handle)
    if (dict === undefined) return undefined
    if (this.size(dict) > MAX_SEARCHED_LINKS) return this.#indexOf(dict).get(key)
    let value: Handle | undefined
    for (let i = 0; i < this.size(dict); i += 2) {
      if (this.#isText(this.link(dict, i), key)) value = this.link(dict, i + 1)
    }
    return value
  }

  /** True of a text. Its bytes, 1 to 3 for each character, tell most others without decoding them. */
  #isText(handle: Handle, text: string): boolean {
    if (!this.isText(handle)) return false
    const byteLength = this.#length[handle]!
    return byteLength >= text.length && byteLength <= 3 * text.length && this.text(handle) === text
  }

  /** The texts of a large dict, which a million others may share. */
  #indexOf(dict: Handle): ReadonlyMap<string, Handle> {
    let index = this.#indices.get(dict)
    if (index === undefined) {
      index = new Map()
      for (let i = 0; i < this.size(dict); i += 2) {
        const key = this.text(this.link(dict, i))
        if (key !== undefined) index.set(key, this.link(dict, i + 1))
      }
      this.#indices.set(dict, index)
    }
    return index
  }

  /** A dict itself, or what an OrderedDict and its like have been given; undefined: there is none. */
  dictOf(handle: Handle): Handle | undefined {
    if (this.isDict(handle)) return handle
    return this.isNote(handle) ? this.part(handle, 'dict') : undefined
  }

  /** The value in words. */
  describe(handle: Handle): string {
    const kind = this.kind(handle)
    if (kind === KIND.global) return this.globalName(handle)!
    if (kind === KIND.note) return `an object of ${this.calleeName(handle) ?? 'no known class'}`
    return WORDS[kind]
  }

  /**
   * All nodes below the root, each after those that hang on it.
   * @param cycles `cut`: links back to a value from inside of it lead to `KIND.cycle` from then on, if an object is among these values:
   * children hold their parents. Lists and dicts alone never hold themselves
   * @throws FormatError for a cycle that is not cut, and for what is nested too deep
   */
  bottomUp(cycles: 'refuse' | 'cut'): Int32Array {
    const OPEN = 1
    const DONE = 2
    const state = new Uint8Array(this.#count)
    const order = new Int32Array(this.#count)
    /** The levels of a value and those in it: one that was done may come again further down. */
    const heights = new Uint16Array(this.#count)
    let count = 0
    const path: Handle[] = []
    const next: number[] = []
    /** The places of objects on the path. */
    const objects: number[] = []
    const raiseLast = (height: number) => {
      const last = path.at(-1)
      if (last !== undefined) heights[last] = Math.max(heights[last]!, height + 1)
    }
    const enter = (handle: Handle) => {
      if (handle < 0) return
      const height = Math.max(1, heights[handle]!)
      if (path.length + height > MAX_DEPTH) throw this.fault(`values nested at most ${MAX_DEPTH} deep`, 'more')
      if (state[handle] === DONE) return raiseLast(height)
      state[handle] = OPEN
      heights[handle] = 1
      if (this.kind(handle) === KIND.note) objects.push(path.length)
      path.push(handle)
      next.push(0)
    }
    enter(this.#root)
    while (path.length > 0) {
      const handle = path.at(-1)!
      const index = next[next.length - 1]!++
      if (index < this.size(handle)) {
        const link = this.link(handle, index)
        if (link === NO_LINK) continue
        if (state[link] !== OPEN) {
          enter(link)
          continue
        }
        const isOfObjects = (objects.at(-1) ?? -1) >= path.indexOf(link)
        if (cycles === 'refuse' || !isOfObjects) throw this.fault('values that do not hold themselves', 'a cycle')
        this.#links[this.#at[handle]! + index] = SINGLES.cycle
      } else {
        state[handle] = DONE
        order[count++] = handle
        path.pop()
        next.pop()
        if (objects.at(-1) === path.length) objects.pop()
        raiseLast(heights[handle]!)
      }
    }
    return order.subarray(0, count)
  }

  /** A fault in the values of the pickle as a whole. */
  fault(expected: string, got: string): FormatError {
    const message = `${this.url}: expected ${expected}, got ${got}`
    return new FormatError('BadPickle', message, { url: this.url, expected, got })
  }
}

const WORDS: Readonly<Record<Kind, string>> = {
  [KIND.none]: 'None',
  [KIND.true]: 'True',
  [KIND.false]: 'False',
  [KIND.number]: 'an integer',
  [KIND.float]: 'a float',
  [KIND.long]: 'an integer',
  [KIND.text]: 'a text',
  [KIND.latin]: 'a text',
  [KIND.bytes]: 'bytes',
  [KIND.tuple]: 'a tuple',
  [KIND.list]: 'a list',
  [KIND.dict]: 'a dict',
  [KIND.set]: 'a set',
  [KIND.frozenset]: 'a set',
  [KIND.global]: 'a name',
  [KIND.note]: 'an object',
  [KIND.persistent]: 'a persistent id',
  [KIND.cycle]: 'a value that holds this one',
}

function keep(kept: Map<Handle, string>, handle: Handle, text: string): void {
  if (kept.size === MAX_KEPT) kept.clear()
  kept.set(handle, text)
}

function enlarged<T extends Uint8Array | Uint16Array | Int32Array>(from: T, to: T): T {
  to.set(from)
  return to
}

/** Text of Python 2, a byte a character. */
function latin(bytes: Uint8Array): string {
  let text = ''
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192))
  return text
}
