/** The files of torch.save before 1.6: pickles one after the other, then the storages. */

import { FormatError } from '../../../base/errors.js'
import { runPickle } from '../pickle/machine.js'
import { KIND, type Pickle } from '../pickle/tape.js'
import type { StoragePlace } from './archive.js'
import { torchFault } from './fault.js'
import { type Storage, storageOf } from './storage.js'
import type { WindowedFile } from './window.js'

const PROTOCOL = 1001
const FIRST_BYTES = 1 << 20
const MAX_PICKLE_BYTES = 2 ** 30
/** The length of the element count in front of each storage. */
const COUNT_BYTES = 8

export interface LegacyFile {
  readonly pickle: Pickle
  readonly places: ReadonlyMap<string, StoragePlace | Error>
}

interface Pickles {
  readonly object: Pickle
  readonly keys: Pickle
}

/** Reads a file of torch before 1.6. @throws FormatError; StoreError */
export async function readLegacyTorch(file: WindowedFile): Promise<LegacyFile> {
  const { object, keys } = await picklesOf(file)
  const { url } = file
  const storages = storagesOf(object)
  const places = new Map<string, StoragePlace | Error>()
  let at = keys.end
  const list = keys.root
  for (let i = 0; i < keys.size(list); i++) {
    const key = keys.exactText(keys.link(list, i))
    if (key === undefined) throw torchFault(url, at, 'texts as keys of storages', 'other values')
    const storage = storages.get(key)
    if (storage === undefined)
      throw torchFault(url, at, 'storages that tensors use', `${JSON.stringify(key.slice(0, 200))}, which none uses`)
    const head = await file.read(at, COUNT_BYTES)
    const end = at + COUNT_BYTES + storage.byteLength
    if (head.length < COUNT_BYTES || end > file.byteLength) {
      const got = `${Math.max(0, file.byteLength - at - COUNT_BYTES)} up to the end of the file`
      places.set(key, torchFault(url, at, `${storage.byteLength} bytes of storage ${key}`, got))
    } else {
      const count = Number(new DataView(head.buffer, head.byteOffset, COUNT_BYTES).getBigInt64(0, true))
      const promised = storage.byteLength / storage.type.byteLength
      // The place of the next one is unknown, too.
      if (count !== promised) throw torchFault(url, at, `${promised} elements in storage ${key}`, `${count}`)
      places.set(key, { start: at + COUNT_BYTES, byteLength: storage.byteLength })
    }
    at = end
  }
  return { pickle: object, places }
}

/** The fourth and the fifth pickle. Their length is not known before they are read. */
async function picklesOf(file: WindowedFile): Promise<Pickles> {
  for (let length = FIRST_BYTES; ; length *= 4) {
    const bytes = await file.read(0, Math.min(length, MAX_PICKLE_BYTES))
    try {
      return parsed(bytes, file.url)
    } catch (error) {
      const mayHelp = bytes.length === length && length < MAX_PICKLE_BYTES
      if (!(error instanceof FormatError && error.fields.isCut === true && mayHelp)) throw error
    }
  }
}

function parsed(bytes: Uint8Array, url: string): Pickles {
  const magic = runPickle(bytes, url)
  const protocol = runPickle(bytes, url, magic.end)
  if (protocol.integer(protocol.root) !== PROTOCOL) {
    throw torchFault(url, magic.end, `${PROTOCOL}, the protocol of torch.save before 1.6`, 'another value')
  }
  const system = runPickle(bytes, url, protocol.end)
  const order = system.get(system.root, 'little_endian')
  if (order !== undefined && system.kind(order) === KIND.false) {
    throw torchFault(url, protocol.end, 'little-endian elements', '"big"')
  }
  const object = runPickle(bytes, url, system.end)
  const keys = runPickle(bytes, url, object.end)
  if (keys.kind(keys.root) !== KIND.list)
    throw torchFault(url, object.end, 'a list of the keys of storages', 'other values')
  return { object, keys }
}

/** The storages that a pickle names, by key. */
function storagesOf(pickle: Pickle): ReadonlyMap<string, Storage> {
  const storages = new Map<string, Storage>()
  for (const handle of pickle.bottomUp('cut')) {
    const storage = storageOf(pickle, handle)
    if (storage !== null) storages.set(storage.key, storage)
  }
  return storages
}
