/** Finds the starts of records: by their headers and, behind damage, by searching for the next intact record. */

import type { TrialscanError } from '../../../base/errors.js'
import { FRAMING_LENGTH, HEADER_LENGTH } from '../../../core/border/framing.js'
import type { RangeSetting } from './job.js'
import type { FileWindow } from './window.js'

/** The number of headers behind damage that are remembered, to find those that lead to a known record. */
const MAX_LEADS = 1 << 18

export class FrameFinder {
  readonly #setting: RangeSetting
  readonly #window: FileWindow
  readonly #anchors: Float64Array
  /** The result of the last search behind damage. */
  #search: Search | null = null

  /** @param anchors the starts of records according to index entries, in order */
  constructor(setting: RangeSetting, window: FileWindow, anchors: Float64Array) {
    this.#setting = setting
    this.#window = window
    this.#anchors = anchors
  }

  /**
   * The length of the record that begins at a byte, with its frame; null if the header is bad or cut off.
   * @param before the start of the preceding record, if it may be searched again
   */
  async framedLength(at: number, before: number): Promise<number | null> {
    const window = this.#window
    if (!window.holds(at, Math.min(HEADER_LENGTH, window.fileLength - at))) {
      const isNear = before >= window.start && at - before <= window.byteLength >> 1
      await window.fill(isNear ? before : at)
    }
    return this.#setting.engine.framedLength(this.#setting.batch, window.addressOf(at), window.end - at)
  }

  /** The reason why the last header was bad. Call it before a search, which overwrites it. */
  headerError(url: string, startByte: number): TrialscanError {
    const { engine, batch } = this.#setting
    return engine.slots(batch, 1).error(0, { url, startByte, tensor: '' })
  }

  /** True if index entries name records in a range, or if no index entries exist for the file. */
  mayHide(startByte: number, endByte: number): boolean {
    const anchors = this.#anchors
    return anchors.length === 0 || (anchors[lastBefore(anchors, startByte)] ?? endByte) < endByte
  }

  /**
   * The start of the next record behind a place without one: that of an index entry with a record, and before it only records that lead
   * to it, since the elements of a tensor may look like anything. Null if there is none.
   * @param end a known start of a record or the end of the file; null if unknown
   */
  async next(at: number, end: number | null): Promise<number | null> {
    const anchors = this.#anchors
    const known = this.#search
    if (end === null && known !== null && at >= known.from && at < known.until) return known.next(at)
    const search = new Search(at)
    let anchor = lastBefore(anchors, at)
    const { engine } = this.#setting
    const window = this.#window
    const limit = end ?? window.fileLength
    for (let from = at + 1; from + HEADER_LENGTH <= limit; ) {
      if (!window.holds(from, HEADER_LENGTH)) await window.fill(from)
      const available = window.end - from
      const frame = engine.survey.findFrame(window.addressOf(from), available, window.fileLength - from)
      from += frame
      if (frame + HEADER_LENGTH > available) {
        if (window.end >= window.fileLength) break
        continue
      }
      if (from >= limit) break
      while (anchor < anchors.length && anchors[anchor]! < from) anchor++
      if (anchors[anchor] === from) {
        search.end(from, from)
        break
      }
      search.add(from, from + engine.uint32(window.addressOf(from)) + FRAMING_LENGTH)
      // Without clues, or with too many, the next header is taken.
      if (end === null && (anchor === anchors.length || search.isFull)) {
        search.end(from, null)
        break
      }
      if (search.isFull) return null
      from++
    }
    search.end(limit, end)
    if (end === null) this.#search = search
    return search.next(at)
  }
}

/** The first of ascending numbers that is greater than another. */
function lastBefore(numbers: ArrayLike<number>, at: number): number {
  let [low, high] = [0, numbers.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (numbers[middle]! > at) high = middle
    else low = middle + 1
  }
  return low
}

/** The valid headers behind damage, up to a known record. */
class Search {
  readonly from: number
  /** The end of the search so far. */
  until = Number.NaN
  #goal: number | null = null
  readonly #starts: number[] = []
  readonly #ends: number[] = []
  /** The starts of records that lead, frame by frame, to the goal; all starts if there is no goal. */
  #leads: readonly number[] = []

  constructor(from: number) {
    this.from = from
  }

  get isFull(): boolean {
    return this.#starts.length >= MAX_LEADS
  }

  add(start: number, end: number): void {
    this.#starts.push(start)
    this.#ends.push(end)
  }

  /** @param goal the start of a known record; null for none. The first call counts */
  end(until: number, goal: number | null): void {
    if (!Number.isNaN(this.until)) return
    this.until = until
    this.#goal = goal
    this.#leads = this.#starts
    if (goal === null) return
    const good = new Set([goal])
    const leads: number[] = []
    for (let i = this.#starts.length - 1; i >= 0; i--) {
      if (!good.has(this.#ends[i]!)) continue
      good.add(this.#starts[i]!)
      leads.push(this.#starts[i]!)
    }
    this.#leads = leads.reverse()
  }

  /** The start of the first record behind a byte; null if there is none. */
  next(at: number): number | null {
    return this.#leads[lastBefore(this.#leads, at)] ?? this.#goal
  }
}
