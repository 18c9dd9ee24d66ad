/** The common part of stores that read files by requests for ranges: on S3, and behind URLs. */

import { StoreError, UsageError } from '../base/errors.js'
import { changedFile, type RangeAnswer, type RangeOutcome, type RangeRead } from './range.js'
import type { ListOptions, ReadContext, Store, StoreSpec } from './store.js'

/** The number of leading bytes that come with a file's length. */
const HEAD_BYTES = 64 << 10
/** The number of such heads that are kept until they are used. */
const MAX_HEADS = 64

/** The known facts of a file. */
export interface KnownFile {
  readonly validator: string | null
  readonly byteLength: number | null
  /** The modification time in milliseconds; 0 if the file was not listed. */
  readonly modifiedMs: number
}

/** The state that all stores of one trial share. */
export class SeenFiles {
  /** The known facts by path, from the last listing or the first read. Later reads must find the same file. */
  readonly known = new Map<string, KnownFile>()
  /** The first bytes of files, which came with their lengths. */
  readonly heads = new Map<string, Uint8Array>()
}

/** Answers that callers in the same turn of the event loop share. */
export class Looks<T> {
  readonly #looks = new Map<string, Promise<T>>()

  ask(name: string, look: () => Promise<T>): Promise<T> {
    const under = this.#looks.get(name)
    if (under !== undefined) return under
    const answer = look()
    this.#looks.set(name, answer)
    const forget = (): void => {
      setImmediate(() => {
        if (this.#looks.get(name) === answer) this.#looks.delete(name)
      })
    }
    answer.then(forget, forget)
    return answer
  }
}

export abstract class RangedStore implements Store {
  abstract readonly spec: StoreSpec
  protected readonly context: ReadContext
  readonly #seen: SeenFiles

  constructor(seen: SeenFiles, context: ReadContext) {
    this.#seen = seen
    this.context = context
  }

  abstract open(): Promise<void>
  abstract url(path: string): string
  abstract list(directory: string, options?: ListOptions): Promise<string[]>
  abstract exists(path: string): Promise<boolean>
  abstract readonly within: (context: ReadContext) => Store
  /**
   * Reads a range.
   * @param path a result of `inside`
   */
  protected abstract get(path: string, read: RangeRead): Promise<RangeOutcome>

  /**
   * The store's spelling of a path.
   * @throws StoreError if it leads out of the trial
   */
  protected inside(path: string): string {
    return path
  }

  async read(path: string, { maxByteLength }: { readonly maxByteLength: number }): Promise<Uint8Array> {
    const inside = this.inside(path)
    const { known, heads } = this.#seen
    const before = known.get(inside)
    const head = heads.get(inside)
    // The next read gets the file's new version.
    heads.delete(inside)
    if (head && head.length === before?.byteLength && head.length <= maxByteLength) return head
    const check = (byteLength: number): void => {
      if (byteLength > maxByteLength) throw tooLarge(this.url(path), maxByteLength, byteLength)
    }
    const chunks: Uint8Array[] = []
    const { validator, byteLength } = await this.get(inside, {
      startByte: 0,
      endByte: Number.POSITIVE_INFINITY,
      begin: answer => check(answer.byteLength ?? 0),
      take: (chunk, at) => {
        check(at + chunk.length)
        chunks.push(chunk.slice())
      },
    })
    const bytes = new Uint8Array(byteLength)
    let at = 0
    for (const chunk of chunks) {
      bytes.set(chunk, at)
      at += chunk.length
    }
    // The file is held at its present version: an earlier read may have failed because it was still being written.
    known.set(inside, { validator, byteLength, modifiedMs: before?.modifiedMs ?? 0 })
    return bytes
  }

  readInto(path: string, startByte: number, view: Uint8Array): Promise<number> {
    return this.readLater(path, startByte, view.byteLength, () => view)
  }

  readonly readLater = async (
    path: string,
    startByte: number,
    byteLength: number,
    view: () => Uint8Array,
  ): Promise<number> => {
    const inside = this.inside(path)
    if (!Number.isSafeInteger(startByte) || startByte < 0) {
      throw new UsageError(`expected a byte offset, got ${startByte}`, { path, startByte })
    }
    if (byteLength === 0) return 0
    const head = this.#fromHead(inside, startByte, byteLength)
    if (head !== null) {
      view().set(head)
      return head.length
    }
    return this.fill(inside, startByte, byteLength, view)
  }

  readonly stream = async (
    path: string,
    startByte: number,
    byteLength: number,
    take: (chunk: Uint8Array) => void,
  ): Promise<number> => (await this.getHeld(this.inside(path), startByte, byteLength, take)).byteLength

  /**
   * Reads a range as `readLater` does.
   * @param path a result of `inside`
   */
  protected async fill(path: string, startByte: number, byteLength: number, view: () => Uint8Array): Promise<number> {
    return (await this.getHeld(path, startByte, byteLength, (chunk, at) => view().set(chunk, at))).byteLength
  }

  /**
   * Reads a range of the known file.
   * @param path a result of `inside`
   */
  protected async getHeld(
    path: string,
    startByte: number,
    byteLength: number,
    take: RangeRead['take'],
  ): Promise<RangeOutcome> {
    const known = this.#seen.known.get(path)
    const validator = known?.validator ?? null
    // What lies behind the end is not there, and need not be asked for.
    const endByte = Math.min(startByte + byteLength, known?.byteLength ?? Number.POSITIVE_INFINITY)
    if (endByte <= startByte) return { byteLength: 0, validator }
    return this.get(path, { startByte, endByte, validator, begin: answer => this.#hold(path, answer), take })
  }

  /** Notes the facts about a file, so that all reads are of the same file. */
  #hold(path: string, answer: RangeAnswer): void {
    const { known } = this.#seen
    const before = known.get(path)
    const validator = before?.validator ?? answer.validator
    const byteLength = before?.byteLength ?? answer.byteLength
    const isSame = validator === (answer.validator ?? validator) && byteLength === (answer.byteLength ?? byteLength)
    if (!isSame) throw changedFile(this.url(path))
    known.set(path, { validator, byteLength, modifiedMs: before?.modifiedMs ?? 0 })
  }

  /** The stamps of files. For listed files they take no request. */
  async stamps(paths: readonly string[]): Promise<Float64Array> {
    const stamps = new Float64Array(paths.length * 3).fill(Number.NaN)
    paths.forEach((path, i) => {
      const { byteLength = null, modifiedMs = 0, validator = null } = this.#seen.known.get(this.inside(path)) ?? {}
      if (byteLength !== null) stamps.set([byteLength, modifiedMs, numberOf(validator ?? '')], i * 3)
    })
    return stamps
  }

  versionOf(path: string): string | undefined {
    return this.#seen.known.get(this.inside(path))?.validator ?? undefined
  }

  async byteLength(path: string): Promise<number> {
    const inside = this.inside(path)
    const { known, heads } = this.#seen
    const listed = known.get(inside)?.byteLength ?? null
    if (listed !== null) return listed
    const head = new Uint8Array(HEAD_BYTES)
    const { byteLength } = await this.getHeld(inside, 0, HEAD_BYTES, (chunk, at) => head.set(chunk, at))
    heads.set(inside, head.subarray(0, byteLength))
    if (heads.size > MAX_HEADS) heads.delete(heads.keys().next().value!)
    const length = byteLength === 0 ? 0 : (known.get(inside)?.byteLength ?? null)
    if (length !== null) return length
    const url = this.url(path)
    const message = `${url}: expected the length of the file (Content-Range), got none`
    throw new StoreError('Unavailable', message, { url })
  }

  async close(): Promise<void> {
    this.#seen.heads.clear()
  }

  /** Answers a read from the head that came with the file's length. */
  #fromHead(path: string, startByte: number, byteLength: number): Uint8Array | null {
    const head = this.#seen.heads.get(path)
    if (head === undefined || (head.length === HEAD_BYTES && startByte + byteLength > head.length)) return null
    return head.subarray(startByte, startByte + byteLength)
  }
}

/** The error for a file that is longer than the limit. */
export function tooLarge(url: string, maxByteLength: number, byteLength: number): StoreError {
  const got = `${byteLength}`
  const message = `${url}: expected at most ${maxByteLength} bytes, got ${got}`
  return new StoreError('TooLarge', message, { url, maxByteLength, byteLength, got })
}

/** A number of 48 bits for a validator. */
function numberOf(validator: string): number {
  return [...validator].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 2 ** 48, 0)
}
