/** Equal lists of index files, kept once: read apart, from links or by several threads, they would each take their memory. */

import { isSameShape, type SavedShape, type TensorLocation } from './index-file.js'

/** Lists of one hash that are compared with another: were they all, lists made to collide would take for ever. */
const MAX_ALIKE = 8

export class SharedLists<T extends object> {
  readonly #hash: (item: T) => number
  readonly #isSame: (a: T, b: T) => boolean
  readonly #byHash = new Map<number, (readonly T[])[]>()
  /** What was asked for, and what was given. */
  readonly #known = new WeakMap<readonly T[], readonly T[]>()

  constructor(hash: (item: T) => number, isSame: (a: T, b: T) => boolean) {
    this.#hash = hash
    this.#isSame = isSame
  }

  /** The list, or an equal one that was there before. */
  shared(list: readonly T[]): readonly T[] {
    const known = this.#known.get(list)
    if (known !== undefined) return known
    const hash = list.reduce((hash, item) => Math.imul(hash ^ this.#hash(item), 0x01000193), list.length)
    const alike = this.#byHash.get(hash) ?? []
    this.#byHash.set(hash, alike)
    let shared = alike.find(
      other => other.length === list.length && other.every((item, i) => this.#isSame(item, list[i]!)),
    )
    if (shared === undefined) {
      shared = list
      alike.unshift(list)
      if (alike.length > MAX_ALIKE) alike.pop()
    }
    this.#known.set(list, shared)
    return shared
  }
}

export function sharedTensors(): SharedLists<TensorLocation> {
  return new SharedLists(
    ({ name, startByte, byteLength }) => startByte + 31 * (byteLength + 31 * (name.length + name.charCodeAt(0))),
    (a, b) =>
      a.startByte === b.startByte && a.byteLength === b.byteLength && a.name === b.name && a.eventFile === b.eventFile,
  )
}

export function sharedShapes(): SharedLists<SavedShape> {
  return new SharedLists(
    ({ name, shape }) => name.length + shape.reduce((hash, size) => Math.imul(hash, 31) + size, 0),
    (a, b) => a.name === b.name && a.originalName === b.originalName && isSameShape(a.shape, b.shape),
  )
}
