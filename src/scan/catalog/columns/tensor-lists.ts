/**
 * The lists of index files, in columns: objects for a million index files of one tensor, or for one with a million, would take hundreds
 * of bytes a tensor. Equal lists that are added soon after each other are stored once.
 */

import { float64Column, int32Column } from '../../../base/column.js'
import { inTurns } from '../../../base/turns.js'
import type { ReductionName } from '../../../base/types.js'
import { isSameShape, type SavedShape, type TensorLocation } from '../../../format/index-file.js'
import { parseReductionName } from '../../../format/reduction-name.js'
import { Interner } from '../../job/plan/interner.js'

/** A tensor that a worker saved at a step. */
export interface SavedTensor {
  readonly tensor: string
  /** The place of the value; null if only reductions or the shape were saved. */
  readonly value: TensorLocation | null
  /** Reductions the hook computed and saved. */
  readonly reductions: ReadonlyMap<ReductionName, TensorLocation>
  readonly shape: SavedShape | null
}

/** The saved tensors by name, in the order of the index file. */
export interface SavedTensors extends Iterable<[string, SavedTensor]> {
  readonly size: number
  has(name: string): boolean
  get(name: string): SavedTensor | undefined
  /** The index of a tensor in a very long list. Other lists don't have it. */
  placeOf?(name: string): number | undefined
  /** The tensor at an index. */
  at?(place: number): SavedTensor & { readonly value: TensorLocation }
  keys(): IterableIterator<string>
  values(): IterableIterator<SavedTensor>
}

/** The number of the empty list, which unreadable index files also have. */
export const NO_LIST = 0

/** The number of recent lists that are kept as objects and compared with new ones: one for each remainder. */
const KEPT = 1 << 12
/** The number of entries from which a list is recognised by its array. */
const LONG = 16
/** The number of entries from which a list's tensors are not kept as objects. */
const MANY = 1 << 16
const NO_REDUCTIONS: ReadonlyMap<ReductionName, TensorLocation> = new Map()
const NO_SHAPES: readonly SavedShape[] = []

export class TensorLists {
  readonly #names = new Interner()
  /** The start of each list's entries, and the end of the last. */
  readonly #begins = int32Column()
  /** The name of each entry. */
  readonly #name = int32Column()
  readonly #startByte = float64Column()
  readonly #byteLength = float64Column()
  /** The event file of an entry, if it is not that of its index file. */
  readonly #eventFiles = new Map<number, string>()
  /** The shapes of lists that have any. */
  readonly #shapes = new Map<number, readonly SavedShape[]>()
  readonly #recent = new Int32Array(KEPT)
  readonly #tensors = new Recent<SavedTensors>()
  readonly #locations = new Recent<readonly TensorLocation[]>()
  /** Long lists that were added, for as long as their owner keeps them: they are not compared again. */
  readonly #known = new WeakMap<
    readonly TensorLocation[],
    { readonly shapes: readonly SavedShape[]; readonly list: number }
  >()

  constructor() {
    // The empty list.
    this.#begins.push(0)
    this.#begins.push(0)
  }

  get length(): number {
    return this.#begins.length - 1
  }

  /** The distinct names in all lists. */
  get names(): readonly string[] {
    return this.#names.names
  }

  /** @returns the number of the list, or of an equal one */
  add(locations: readonly TensorLocation[], shapes: readonly SavedShape[]): number {
    const known = this.#find(locations, shapes)
    if (known !== null) return known
    for (const location of locations) this.#put(location)
    return this.#end(locations, shapes)
  }

  /** Adds a possibly very long list, yielding to the event loop. No other list may be added meanwhile. @returns as `add` */
  async addInTurns(locations: readonly TensorLocation[]): Promise<number> {
    const known = this.#find(locations, NO_SHAPES)
    if (known !== null) return known
    await inTurns(locations, location => this.#put(location))
    return this.#end(locations, NO_SHAPES)
  }

  /** The number of a list that was added before; null if it is new. */
  #find(locations: readonly TensorLocation[], shapes: readonly SavedShape[]): number | null {
    if (locations.length === 0 && shapes.length === 0) return NO_LIST
    const known = this.#known.get(locations)
    if (known?.shapes === shapes) return known.list
    const recent = this.#recent[slotOf(locations, shapes)]!
    if (!this.#isSame(recent, locations, shapes)) return null
    if (locations.length >= LONG) this.#known.set(locations, { shapes, list: recent })
    return recent
  }

  #put({ name, startByte, byteLength, eventFile }: TensorLocation): void {
    if (eventFile !== undefined) this.#eventFiles.set(this.#name.length, eventFile)
    this.#name.push(this.#names.number(name))
    this.#startByte.push(startByte)
    this.#byteLength.push(byteLength)
  }

  /** Ends the list of the locations that were added last. @returns its number */
  #end(locations: readonly TensorLocation[], shapes: readonly SavedShape[]): number {
    const list = this.length
    this.#begins.push(this.#name.length)
    if (shapes.length > 0) this.#shapes.set(list, shapes)
    this.#recent[slotOf(locations, shapes)] = list
    if (locations.length >= LONG) this.#known.set(locations, { shapes, list })
    return list
  }

  #isSame(list: number, locations: readonly TensorLocation[], shapes: readonly SavedShape[]): boolean {
    const begin = this.#begins.at(list)
    if (this.#begins.at(list + 1) - begin !== locations.length) return false
    const shapesOfList = this.shapes(list)
    return (
      shapesOfList.length === shapes.length &&
      locations.every(
        ({ name, startByte, byteLength, eventFile }, i) =>
          this.#startByte.at(begin + i) === startByte &&
          this.#byteLength.at(begin + i) === byteLength &&
          this.#nameOf(begin + i) === name &&
          this.#eventFiles.get(begin + i) === eventFile,
      ) &&
      shapesOfList.every((shape, i) => {
        const other = shapes[i]!
        return (
          shape.name === other.name &&
          shape.originalName === other.originalName &&
          isSameShape(shape.shape, other.shape)
        )
      })
    )
  }

  /** The entries of a list. Long lists are kept for a while; short ones are cheaper to make again. */
  locations(list: number): readonly TensorLocation[] {
    const isLong = this.#begins.at(list + 1) - this.#begins.at(list) >= LONG
    return isLong ? this.#locations.get(list, () => this.#locationsOf(list)) : this.#locationsOf(list)
  }

  #locationsOf(list: number): readonly TensorLocation[] {
    const locations: TensorLocation[] = []
    const end = this.#begins.at(list + 1)
    for (let i = this.#begins.at(list); i < end; i++) locations.push(this.#locationOf(i))
    return locations
  }

  shapes(list: number): readonly SavedShape[] {
    return this.#shapes.get(list) ?? NO_SHAPES
  }

  *allShapes(): Generator<SavedShape> {
    for (const shapes of this.#shapes.values()) yield* shapes
  }

  #locationOf(entry: number): TensorLocation {
    const eventFile = this.#eventFiles.get(entry)
    if (eventFile === undefined) return this.valueOf(entry)
    const { name, startByte, byteLength } = this.valueOf(entry)
    return { name, startByte, byteLength, eventFile }
  }

  /** The value of an entry. */
  valueOf(entry: number): SavedValue {
    return new SavedValue(this.#nameOf(entry), this.#startByte.at(entry), this.#byteLength.at(entry))
  }

  /** The number of an entry's name. */
  nameNumber(entry: number): number {
    return this.#name.at(entry)
  }

  /** The number of a name; undefined if no list has it. */
  numberOf(name: string): number | undefined {
    return this.#names.find(name)
  }

  /** The tensors of a list. */
  tensors(list: number): SavedTensors {
    return this.#tensors.get(list, () => {
      return this.#manyValues(list) ?? groupByTensor(this.#locationsOf(list), this.shapes(list))
    })
  }

  /** A long list of values of distinct tensors; null if the list is different. */
  #manyValues(list: number): SavedTensors | null {
    const [begin, end] = [this.#begins.at(list), this.#begins.at(list + 1)]
    if (end - begin < MANY || this.#shapes.has(list)) return null
    const isThere = new Uint8Array(this.#names.names.length)
    for (let i = begin; i < end; i++) {
      const number = this.#name.at(i)
      const isValue = isThere[number] === 0 && !this.#eventFiles.has(i) && parseReductionName(this.#nameOf(i)) === null
      if (!isValue) return null
      isThere[number] = 1
    }
    return new ManyValues(this, begin, end)
  }

  #nameOf(entry: number): string {
    return this.#names.names[this.#name.at(entry)]!
  }
}

/** The slot of a list among the recent ones. */
function slotOf(locations: readonly TensorLocation[], shapes: readonly SavedShape[]): number {
  let hash = locations.length
  const mix = (number: number): void => {
    hash = Math.imul(hash ^ number ^ (hash >>> 15), 0x01000193)
  }
  for (const { name, startByte, byteLength, eventFile = '' } of locations) {
    mix(startByte)
    mix(byteLength + 31 * (name.length + name.charCodeAt(0) + eventFile.length))
  }
  for (const { originalName, shape } of shapes) {
    mix(originalName.length + originalName.charCodeAt(0))
    for (const size of shape) mix(size)
  }
  return (hash ^ (hash >>> 15)) & (KEPT - 1)
}

/** The most recent objects made of lists, one for each remainder of their numbers. */
class Recent<T> {
  readonly #cached: ({ readonly list: number; readonly of: T } | undefined)[] = []

  get(list: number, make: () => T): T {
    const known = this.#cached[list % KEPT]
    if (known?.list === list) return known.of
    const value = make()
    this.#cached[list % KEPT] = { list, of: value }
    return value
  }
}

/** A tensor of which only the value was saved, as usual: one object is both the tensor and its place. There may be a million. */
class SavedValue implements SavedTensor, TensorLocation {
  readonly name: string
  readonly startByte: number
  readonly byteLength: number

  constructor(name: string, startByte: number, byteLength: number) {
    this.name = name
    this.startByte = startByte
    this.byteLength = byteLength
  }

  get tensor(): string {
    return this.name
  }

  get value(): TensorLocation {
    return this
  }

  get reductions(): ReadonlyMap<ReductionName, TensorLocation> {
    return NO_REDUCTIONS
  }

  get shape(): null {
    return null
  }
}

/** The values of a very long list of distinct tensors; objects are made on demand. */
class ManyValues implements SavedTensors {
  readonly #lists: TensorLists
  readonly #begin: number
  readonly #end: number
  /** The entries by number of name; made only if the numbers aren't consecutive, as those of the first list are. */
  #entries: ReadonlyMap<number, number> | undefined

  constructor(lists: TensorLists, begin: number, end: number) {
    this.#lists = lists
    this.#begin = begin
    this.#end = end
  }

  get size(): number {
    return this.#end - this.#begin
  }

  has(name: string): boolean {
    return this.#entryOf(name) !== undefined
  }

  get(name: string): SavedTensor | undefined {
    const entry = this.#entryOf(name)
    return entry === undefined ? undefined : this.#lists.valueOf(entry)
  }

  placeOf(name: string): number | undefined {
    const entry = this.#entryOf(name)
    return entry === undefined ? undefined : entry - this.#begin
  }

  at(place: number): SavedValue {
    return this.#lists.valueOf(this.#begin + place)
  }

  *keys(): Generator<string, undefined> {
    for (const { name } of this.values()) yield name
  }

  *values(): Generator<SavedValue, undefined> {
    for (let entry = this.#begin; entry < this.#end; entry++) yield this.#lists.valueOf(entry)
  }

  *[Symbol.iterator](): Generator<[string, SavedTensor], undefined> {
    for (const value of this.values()) yield [value.name, value]
  }

  #entryOf(name: string): number | undefined {
    const number = this.#lists.numberOf(name)
    if (number === undefined) return undefined
    const entry = this.#begin + number - this.#lists.nameNumber(this.#begin)
    if (entry >= this.#begin && entry < this.#end && this.#lists.nameNumber(entry) === number) return entry
    this.#entries ??= this.#byNumber()
    return this.#entries.get(number)
  }

  #byNumber(): ReadonlyMap<number, number> {
    const entries = new Map<number, number>()
    for (let entry = this.#begin; entry < this.#end; entry++) entries.set(this.#lists.nameNumber(entry), entry)
    return entries
  }
}

/** Groups values, saved reductions and shapes by tensor. */
function groupByTensor(locations: readonly TensorLocation[], shapes: readonly SavedShape[]): SavedTensors {
  const tensors = new Map<string, SavedTensor>()
  const add = (tensor: string, more: Partial<SavedTensor>): void => {
    const { value = null, reductions = NO_REDUCTIONS, shape = null } = tensors.get(tensor) ?? {}
    tensors.set(tensor, { tensor, value, reductions, shape, ...more })
  }
  for (const location of locations) {
    const { name } = location
    const saved = parseReductionName(name)
    if (saved !== null) {
      const reductions = new Map(tensors.get(saved.tensor)?.reductions).set(saved.reduction, location)
      add(saved.tensor, { reductions })
    } else if (location instanceof SavedValue && !tensors.has(name)) tensors.set(name, location)
    else add(name, { value: location })
  }
  for (const shape of shapes) add(shape.name, { shape })
  return tensors
}
