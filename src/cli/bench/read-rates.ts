/** The rate at which a trial's event files can be read: from the page cache, and from the disk. */

import { closeSync, constants, existsSync, openSync, readdirSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { allocate } from '../../kernels/allocate.js'

/** Bytes a second, on one thread; or why they were not measured. */
export interface ReadRates {
  readonly pageCache: number | string
  readonly disk: number | string
}

const PIECE_BYTES = 1 << 20
/** The alignment of memory and lengths for reads past the page cache. */
const PAGE_BYTES = 4096
/** The most bytes that are read. */
const MAX_BYTES = 256 << 20
const MAX_MS = 2000
/** The least size. Below it, the time is that of opening files. */
const MIN_BYTES = 1 << 20

const NOT_HERE = 'the trial is not on a disk of this machine'
const TOO_SMALL = 'its event files have less than 1 MiB'
const ONLY_CACHED = 'its file system is read through the page cache only'

/** Measures how fast a trial's event files are read. @param directory the trial; null: it is not on a disk of this machine */
export function readRates(directory: string | null): ReadRates {
  const events = directory === null ? null : join(directory, 'events')
  if (events === null) return { pageCache: NOT_HERE, disk: NOT_HERE }
  if (!existsSync(events)) return { pageCache: TOO_SMALL, disk: TOO_SMALL }
  const files = readdirSync(events, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .sort()
  const disk = rate(files, constants.O_DIRECT)
  // The first pass brings the files into the cache.
  rate(files, 0)
  return { disk, pageCache: rate(files, 0) }
}

/** The rate of one pass over the files. @param flag of open(2), besides reading; undefined if the system has none */
function rate(files: readonly string[], flag: number | undefined): number | string {
  if (flag === undefined) return ONLY_CACHED
  const memory = allocate('uint8', PIECE_BYTES + PAGE_BYTES)
  const page = memory.subarray((PAGE_BYTES - (memory.byteOffset % PAGE_BYTES)) % PAGE_BYTES).subarray(0, PIECE_BYTES)
  let bytes = 0
  const startedAt = performance.now()
  const isOver = (): boolean => bytes >= MAX_BYTES || performance.now() - startedAt >= MAX_MS
  try {
    for (const path of files) {
      if (isOver()) break
      const file = openSync(path, constants.O_RDONLY | flag)
      try {
        for (let got = PIECE_BYTES; got === PIECE_BYTES && !isOver(); bytes += got) got = readSync(file, page)
      } finally {
        closeSync(file)
      }
    }
  } catch {
    // A file system in memory refuses O_DIRECT.
    return ONLY_CACHED
  }
  const seconds = (performance.now() - startedAt) / 1000
  return bytes < MIN_BYTES ? TOO_SMALL : bytes / seconds
}
