/**
 * Ranges of remote files on the local disk. An entry is a file that appears whole or not at all, has a name made of its
 * content's identity, and ends with a checksum. A crash or a second process can cost an entry, but never yields a wrong
 * byte.
 */

import { createHash } from 'node:crypto'
import { promises, readdirSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { StoreError } from '../../base/errors.js'
import { readFileIfThere } from './file.js'
import { isTemporaryName, makeDirectory, writeAtOnce } from './output.js'

const CHECKSUM_LENGTH = 4
/** The share of the limit that remains in use after entries are removed. */
const LEFT = 0.9
/** The age, in milliseconds, from which a temporary file belongs to a crashed process. */
const FORGOTTEN_MS = 3_600_000
const ENTRY = /^([0-9a-f]{40})-(\d+)-(\d+)$/

interface CachedRange {
  readonly path: string
  readonly startByte: number
  readonly endByte: number
}

export class RangeCache {
  readonly #directory: string
  readonly #maxByteLength: number
  /** Entries by object. */
  readonly #entries = new Map<string, CachedRange[]>()
  /** The directories whose entries are known. */
  readonly #listed = new Set<string>()
  readonly #touched = new Set<string>()
  /** The approximate number of bytes in the directory; null before it was listed. */
  #byteLength: number | null = null
  #evicting: Promise<void> | null = null
  /**
   * True once the disk is full or the directory belongs to another user: nothing more is written, and nothing fails.
   */
  #isBroken = false

  constructor(directory: string, maxByteLength: number) {
    this.#directory = directory
    this.#maxByteLength = maxByteLength
  }

  /** Makes the directory. @throws StoreError */
  async open(): Promise<void> {
    try {
      // What is cached may be private.
      makeDirectory(this.#directory, 0o700)
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw new StoreError(
        'Unavailable',
        `${this.#directory} can't be a cache: ${reason}`,
        { url: this.#directory },
        cause,
      )
    }
  }

  /** The bytes of a range, if all are cached. A range beyond the end of the object is cached up to the end. */
  read(object: string, startByte: number, endByte: number): Uint8Array | null {
    const id = idOf(object)
    const entries = this.#entriesOf(id)
    const entry = entries.find(entry => entry.startByte <= startByte && entry.endByte >= endByte)
    if (entry === undefined) return null
    // Null if another process has removed it, or something else is in its place.
    const bytes = readFileIfThere(entry.path, entry.endByte - entry.startByte + CHECKSUM_LENGTH)
    const content = bytes?.subarray(0, -CHECKSUM_LENGTH)
    if (bytes && content && content.length > 0 && bytes.readUInt32LE(content.length) === crc32(content)) {
      this.#touch(entry.path)
      return content.subarray(startByte - entry.startByte, endByte - entry.startByte)
    }
    entries.splice(entries.indexOf(entry), 1)
    return null
  }

  /** Caches the bytes of a range. It never fails. */
  async write(object: string, startByte: number, endByte: number, bytes: Uint8Array): Promise<void> {
    if (this.#isBroken || bytes.length === 0 || bytes.length > this.#maxByteLength) return
    const id = idOf(object)
    const directory = join(this.#directory, id.slice(0, 2))
    const path = join(directory, `${id}-${startByte}-${endByte}`)
    const checksum = Buffer.alloc(CHECKSUM_LENGTH)
    checksum.writeUInt32LE(crc32(bytes))
    try {
      makeDirectory(directory, 0o700)
      writeAtOnce(path, [bytes, checksum], true, 0o600)
    } catch {
      this.#isBroken = true
      return
    }
    this.#entriesOf(id).push({ path, startByte, endByte })
    await this.#grow(bytes.length + CHECKSUM_LENGTH)
  }

  async #grow(byteLength: number): Promise<void> {
    if (this.#byteLength !== null) this.#byteLength += byteLength
    if (this.#byteLength !== null && this.#byteLength <= this.#maxByteLength) return
    this.#evicting ??= this.#evict().finally(() => {
      this.#evicting = null
    })
    await this.#evicting
  }

  /** Measures the directory, and removes the least recently used entries if it holds too much. */
  async #evict(): Promise<void> {
    const files: { path: string; size: number; mtimeMs: number }[] = []
    try {
      for (const name of await promises.readdir(this.#directory)) {
        if (!/^[0-9a-f]{2}$/.test(name)) continue
        const directory = join(this.#directory, name)
        for (const file of await promises.readdir(directory)) {
          const path = join(directory, file)
          const stats = await promises.stat(path).catch(() => null)
          if (stats === null) continue
          if (ENTRY.test(file)) files.push({ path, size: stats.size, mtimeMs: stats.mtimeMs })
          else if (isTemporaryName(file) && Date.now() - stats.mtimeMs > FORGOTTEN_MS)
            await promises.rm(path, { force: true })
        }
      }
      let total = files.reduce((sum, { size }) => sum + size, 0)
      if (total > this.#maxByteLength) {
        files.sort((a, b) => a.mtimeMs - b.mtimeMs)
        for (const { path, size } of files) {
          if (total <= this.#maxByteLength * LEFT) break
          await promises.rm(path, { force: true })
          total -= size
        }
      }
      this.#byteLength = total
    } catch {
      this.#isBroken = true
    }
  }

  /** Marks an entry as used, once per process. */
  #touch(path: string): void {
    if (this.#touched.has(path)) return
    this.#touched.add(path)
    try {
      const now = new Date()
      utimesSync(path, now, now)
    } catch {
      // The entry was read even so.
    }
  }

  #entriesOf(id: string): CachedRange[] {
    const shard = id.slice(0, 2)
    if (!this.#listed.has(shard)) {
      this.#listed.add(shard)
      for (const name of listed(join(this.#directory, shard))) {
        const [, object, startByte, endByte] = ENTRY.exec(name) ?? []
        if (object === undefined) continue
        const path = join(this.#directory, shard, name)
        this.#entriesOf(object).push({ path, startByte: Number(startByte), endByte: Number(endByte) })
      }
    }
    const entries = this.#entries.get(id) ?? []
    this.#entries.set(id, entries)
    return entries
  }
}

function listed(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}

function idOf(object: string): string {
  return createHash('sha256').update(object).digest('hex').slice(0, 40)
}
