/** Reads and parses index files. */

import { type ErrorData, TrialscanError } from '../../base/errors.js'
import { entryOf } from '../../base/maps.js'
import { MODES } from '../../base/types.js'
import { type IndexFile, IndexFileReader, type Listed } from '../../format/index-file.js'
import { parseIndexFileName, usualIndexFile } from '../../format/paths.js'
import { parseTornasoleIndex, tornasoleText } from '../../format/tornasole.js'
import { eachFile, type Store } from '../../storage/store.js'
import { type IndexJob, type IndexReply, MAX_INDEX_BYTES, usualEventFile } from '../job/index-job.js'
import { withModeOfEvents } from './survey.js'

/** The error of a whole file, which is reported once. */
function errorOf(error: unknown): ErrorData {
  if (error instanceof TrialscanError) return error.toJSON()
  throw error
}

/** The length beyond which an index file is read on its own. */
const SMALL_BYTES = 1 << 16

export async function readIndexFiles({ paths, readsModes = true }: IndexJob, store: Store): Promise<IndexReply> {
  const reader = new IndexFileReader()
  const said = new Said(paths)
  const buffer = store.readSmall && Buffer.allocUnsafeSlow(SMALL_BYTES)
  await eachFile(store, paths, async (path, i) => {
    const name = buffer && usualIndexFile(path)
    const length = name ? store.readSmall!(path, buffer) : -1
    const usual = length < 0 ? null : reader.readUsual(buffer!, length, name!.step, name!.worker)
    if (usual !== null) said.add(i, usual.mode, usual.modeStep, usual.listed)
    else said.addFile(i, await readIndexFile(path, length < 0 ? null : textOf(buffer!, length)))
  })
  return said.reply

  /** The content of an index file, or the error. */
  async function readIndexFile(path: string, known: Uint8Array | null): Promise<IndexFile | ErrorData> {
    try {
      const url = store.url(path)
      const name = parseIndexFileName(path)
      const isText = name?.kind !== 'csv'
      const bytes = known ?? (await store.read(path, { maxByteLength: MAX_INDEX_BYTES, isText }))
      if (isText) return reader.read(bytes, url)
      const index = parseTornasoleIndex(tornasoleText(bytes, url), url)
      if (readsModes) return await withModeOfEvents(index, name.step, store)
      return { ...index, mode: 'GLOBAL', modeStep: name.step, shapes: [] }
    } catch (error) {
      return errorOf(error)
    }
  }
}

/** A copy of a text in a buffer; its only byte 0 is the last. */
function textOf(buffer: Uint8Array, length: number): Uint8Array {
  const zero = buffer.subarray(0, length).indexOf(0)
  return Uint8Array.prototype.slice.call(buffer, 0, zero < 0 ? length : zero + 1)
}

/** A reply in the making. */
class Said {
  readonly #paths: readonly string[]
  readonly #mode: Uint8Array
  readonly #modeStep: Float64Array
  readonly #list: Int32Array
  readonly #lists: Listed[] = []
  /** The numbers of lists of tensors. */
  readonly #numbers = new Map<Listed['tensors'], number>()
  readonly #eventFiles = new Map<number, string | null>()
  readonly #errors = new Map<number, ErrorData>()

  constructor(paths: readonly string[]) {
    this.#paths = paths
    this.#mode = new Uint8Array(paths.length)
    this.#modeStep = new Float64Array(paths.length)
    this.#list = new Int32Array(paths.length).fill(-1)
  }

  /** Adds a file that names the hook's own event file. */
  add(i: number, mode: number, modeStep: number, { tensors, shapes }: Listed): void {
    const list = entryOf(this.#numbers, tensors, () => this.#lists.push({ tensors, shapes }) - 1)
    this.#mode[i] = mode
    this.#modeStep[i] = modeStep
    this.#list[i] = list
  }

  addFile(i: number, file: IndexFile | ErrorData): void {
    if ('code' in file) {
      this.#errors.set(i, file)
      return
    }
    this.add(i, MODES.indexOf(file.mode), file.modeStep, file)
    if (file.eventFile !== usualEventFile(this.#paths[i]!)) this.#eventFiles.set(i, file.eventFile)
  }

  get reply(): IndexReply {
    return {
      kind: 'index',
      mode: this.#mode,
      modeStep: this.#modeStep,
      list: this.#list,
      lists: this.#lists,
      eventFiles: this.#eventFiles,
      errors: this.#errors,
    }
  }
}
