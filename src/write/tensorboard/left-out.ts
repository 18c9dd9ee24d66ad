/** Counts images, audio and graphs in TensorBoard event files, which a trial can't hold. */

import { entryOf } from '../../base/maps.js'
import { FOOTER_LENGTH, HEADER_LENGTH } from '../../core/border/framing.js'
import { MalformedEvent, type UnreadKind, walkUnread } from '../../format/event-head.js'
import { DEFAULT_MEMORY } from '../../scan/job/plan/memory.js'
import type { Access } from '../../scan/runner/access.js'
import { runTwice } from '../../scan/runner/runner.js'
import { FilePieces } from '../../scan/worker/file-pieces.js'

/** The number of names that are listed for each kind. */
const MAX_TAGS = 5

export interface LeftOutSummary {
  readonly kind: UnreadKind
  readonly count: number
  /** The first few tags, each once; a graph has none. */
  readonly tags: readonly string[]
}

/** The number of values left out, by kind. */
export class LeftOut {
  readonly #kinds = new Map<UnreadKind, { count: number; tags: Set<string> }>()

  add(kind: UnreadKind, tag: string): void {
    const tally = entryOf(this.#kinds, kind, () => ({ count: 0, tags: new Set<string>() }))
    tally.count++
    if (tag !== '' && tally.tags.size < MAX_TAGS) tally.tags.add(tag)
  }

  get summaries(): readonly LeftOutSummary[] {
    return [...this.#kinds].map(([kind, { count, tags }]) => ({ kind, count, tags: [...tags] }))
  }
}

/**
 * The kind of media in a tensor of strings: TensorFlow 2 writes width, height and PNGs, or WAVs with their labels. Null for texts. Bytes
 * that are not UTF-8 have become U+FFFD.
 */
export function mediaOf(texts: readonly string[]): 'image' | 'audio' | null {
  const [first = '', second = '', third = ''] = texts
  if (/^\d+$/.test(first) && /^\d+$/.test(second) && third.includes('\ufffd')) return 'image'
  return /^RIFF.{4,16}WAVE/s.test(first) ? 'audio' : null
}

/** @param paths event files. Damaged parts are skipped here; whoever reads the values reports them. */
export async function addLeftOut(leftOut: LeftOut, access: Access, paths: readonly string[]): Promise<void> {
  const { store } = access
  for (const path of paths) {
    const file = new FilePieces(store, path, await store.byteLength(path))
    let before = 0
    for (let at = 0; await load(file, at, HEADER_LENGTH); ) {
      const next = await addRecord(leftOut, file, at)
      if (next === null) {
        for await (const start of recordsFrom(access, path, before)) {
          if (start > before) await addRecord(leftOut, file, start)
        }
        break
      }
      before = at
      at = next
    }
  }
}

/** The starts of a file's records from a given one on, also behind damage. */
async function* recordsFrom(access: Access, path: string, startByte: number): AsyncGenerator<number> {
  const runner = await access.runner(0, 0)
  const settings = { windowByteLength: DEFAULT_MEMORY / 2, isTornasole: false, deep: false }
  for (let at = startByte; ; ) {
    const ranges = [{ path, startByte: at, endByte: null, anchors: new Float64Array(0) }]
    const { ranges: checked } = await runTwice(runner, { kind: 'verify', store: access.spec, ranges, ...settings })
    const [range] = checked
    if (range === undefined || 'code' in range) return
    for (const [i, start] of range.recordStart.entries()) if (range.isBad[i] === 0) yield start
    if (range.endByte <= at || range.endByte >= range.byteLength) return
    at = range.endByte
  }
}

/** @returns the end of the record; null if there is none, or it can't be read */
async function addRecord(leftOut: LeftOut, file: FilePieces, at: number): Promise<number | null> {
  if (!(await load(file, at, HEADER_LENGTH))) return null
  const head = file.slice(at, HEADER_LENGTH)
  const start = at + HEADER_LENGTH
  const end = start + Number(new DataView(head.buffer, head.byteOffset).getBigUint64(0, true))
  const values = Number.isSafeInteger(end) ? await unreadIn(file, start, end) : null
  if (values === null) return null
  for (const { kind, tag } of values) leftOut.add(kind, tag)
  return end + FOOTER_LENGTH
}

/** The kind of an event; null if the bytes are no complete event. */
async function unreadIn(file: FilePieces, start: number, end: number) {
  const walk = walkUnread(file, start, end)
  try {
    for (;;) {
      const next = walk.next()
      if (next.done) return next.value
      if (!(await load(file, next.value.at, next.value.byteLength))) return null
    }
  } catch (error) {
    if (error instanceof MalformedEvent) return null
    throw error
  }
}

/** @returns true if the file has these bytes, which are then in memory */
async function load(file: FilePieces, at: number, byteLength: number): Promise<boolean> {
  if (!file.has(at, byteLength)) await file.load(at)
  return file.has(at, byteLength)
}
