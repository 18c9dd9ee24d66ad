/** Compares index entries with the records that they point at. Both are in the order of the event file. */

import { quote, shortPath } from '../../base/errors.js'
import { MODES } from '../../base/types.js'
import { isSameShape, type SavedShape, type TensorLocation } from '../../format/index-file.js'
import { HISTOGRAM, TENSOR, type VerifiedRange } from '../../scan/job/verify-job.js'
import { type Entries, entryEnd, type ReadIndex } from './entries.js'
import type { Checked } from './event-files.js'
import type { Findings } from './findings.js'
import { lostEntries } from './lost.js'
import type { VerifyCode, VerifyFinding } from './problem.js'

/** The result for an entry, valid for every index file that has it. */
interface Verdict {
  /** The index of the record's tensor with that name in the columns of Values; -1 if there is none. */
  readonly value: number
  readonly isOtherLength: boolean
  /** The shape in the index file, if it differs from the record's. */
  readonly savedShape: readonly number[] | null
}

export class EntryComparison {
  readonly #path: string
  readonly #entries: Entries
  readonly #checked: readonly Checked[]
  readonly #findings: Findings
  readonly #fileLength: number
  /** The number of entries that begin within the file. */
  readonly #count: number
  /** The next entry. */
  #next = 0
  /** The entry that reaches furthest, and its index file. */
  #reached: TensorLocation | null = null
  #reachedBy: ReadIndex | null = null
  /** Ranges of bytes that are no records, and the next of them. */
  readonly #skipped: readonly number[]
  #skip = 0

  /** @param path the path of the event file @param checked its complete content */
  constructor(path: string, entries: Entries, checked: readonly Checked[], findings: Findings) {
    this.#path = path
    this.#entries = entries
    this.#checked = checked
    this.#findings = findings
    this.#fileLength = checked.at(-1)?.range.byteLength ?? 0
    this.#count = entries.from(this.#fileLength)
    this.#skipped = checked.flatMap(({ range }) => [...range.skipped])
  }

  run(): void {
    for (const { range, tags } of this.#checked) {
      const { recordStart, isBad, record, tag, kind } = range
      let value = 0
      for (let i = 0; i < recordStart.length; i++) {
        const start = recordStart[i]!
        this.#toNoRecord(start)
        const firstValue = value
        while (value < record.length && record[value] === i) value++
        const values = new Map<string, number>()
        for (let v = firstValue; v < value; v++) {
          const name = tags[tag[v]!]!
          if ((kind[v] === TENSOR || kind[v] === HISTOGRAM) && !values.has(name)) values.set(name, v)
        }
        const unnamed = this.#toRecord(range, i, values)
        if (isBad[i] === 0) for (const name of unnamed) this.#notIndexed(name, range, i)
      }
    }
    this.#toNoRecord(Number.POSITIVE_INFINITY)
    this.#pastEnd()
  }

  /** Handles the entries before the next record. */
  #toNoRecord(nextRecord: number): void {
    while (this.#next < this.#count && this.#entries.startByte(this.#next) < nextRecord) {
      const from = this.#next
      this.#next = this.#entries.behind(from)
      const isTold = this.#isSkipped(this.#entries.startByte(from))
      this.#entries.eachTeller(from, this.#next, (index, first, end) => {
        for (let i = first; i < end; i++) {
          const location = this.#entries.location(i)
          if (!isTold) this.#astray(location, index)
          this.#overlap(location, index)
        }
        return false
      })
    }
  }

  /** Handles the entries of a record. @param values its tensors by name @returns the names of tensors without an entry */
  #toRecord(range: VerifiedRange, record: number, values: ReadonlyMap<string, number>): Iterable<string> {
    const from = this.#next
    if (from >= this.#count || this.#entries.startByte(from) !== range.recordStart[record]) return values.keys()
    this.#next = this.#entries.behind(from)
    const unnamed = new Set(values.keys())
    const verdicts: Verdict[] = []
    for (let i = from; i < this.#next; i++) {
      const location = this.#entries.location(i)
      unnamed.delete(location.name)
      verdicts.push(this.#verdict(location, this.#entries.shapes(i), range, record, values))
    }
    const isGood = range.isBad[record] === 0
    this.#entries.eachTeller(from, this.#next, (index, first, end) => {
      for (let i = first; i < end; i++) {
        const location = this.#entries.location(i)
        this.#overlap(location, index)
        if (isGood) this.#compare(location, index, verdicts[i - from]!, range, record, values)
      }
      return false
    })
    return unnamed
  }

  #verdict(
    { name, byteLength }: TensorLocation,
    shapes: readonly SavedShape[],
    range: VerifiedRange,
    record: number,
    values: ReadonlyMap<string, number>,
  ): Verdict {
    const value = values.get(name) ?? -1
    const saved = value >= 0 && shapes.length > 0 ? savedShapesOf(shapes).get(name) : undefined
    const shape = range.shape[value]
    return {
      value,
      isOtherLength: range.recordByteLength[record] !== byteLength,
      savedShape: saved && shape && !isSameShape(saved, shape) ? saved : null,
    }
  }

  #isSkipped(at: number): boolean {
    // Reported with the damage of the file at that place.
    while (this.#skip < this.#skipped.length && this.#skipped[this.#skip + 1]! <= at) this.#skip += 2
    return this.#skip < this.#skipped.length && at >= this.#skipped[this.#skip]!
  }

  /** A problem of an entry; its text is made only if it is reported. */
  #problem(
    code: VerifyCode,
    { name, startByte }: TensorLocation,
    index: ReadIndex,
    differences: () => Differences,
  ): void {
    this.#findings.tell('problem', code, index.path, () => ({
      offset: startByte,
      tensor: name,
      step: index.step,
      ...differences(),
    }))
  }

  /** Reports an entry that points to a byte where no record begins. */
  #astray(location: TensorLocation, index: ReadIndex): void {
    this.#problem('EntryNotARecord', location, index, () => ({
      expected: `a record of ${location.byteLength} bytes there in ${shortPath(this.#path)}`,
      found: 'the middle of one',
      lost: notFound(location, index),
    }))
  }

  /** Reports the entries that point behind the end of the file as one problem: the file is cut, or one entry is wrong. */
  #pastEnd(): void {
    // A torn record is reported together with everything behind it.
    if (this.#checked.some(({ range }) => 'TruncatedRecord' in range.problemCounts)) return
    const [first] = this.#entries.some(this.#count, this.#entries.length, 1)
    if (first === undefined) return
    const { location, index } = first
    this.#problem('EntryPastEnd', location, index, () => ({
      expected: `a record of ${location.byteLength} bytes there in ${shortPath(this.#path)}`,
      found: `the end of the file, at ${this.#fileLength}`,
      lost: lostEntries(this.#entries, this.#count),
    }))
  }

  #overlap(location: TensorLocation, index: ReadIndex): void {
    const before = this.#reached
    if (before !== null && location.startByte < entryEnd(before)) {
      const isSame = before.startByte === location.startByte && before.byteLength === location.byteLength
      // A record may hold several tensors, and two index files may name one.
      if (!isSame || (before.name === location.name && this.#reachedBy === index)) {
        this.#problem('EntriesOverlap', location, index, () => ({
          expected: `an entry behind that of ${quote(before.name)}, which ends at ${entryEnd(before)} in ${shortPath(this.#path)}`,
          found: `one of ${location.byteLength} bytes from ${location.startByte} on`,
        }))
      }
    }
    if (before !== null && entryEnd(location) < entryEnd(before)) return
    this.#reached = location
    this.#reachedBy = index
  }

  #notIndexed(name: string, { recordStart, recordByteLength, step }: VerifiedRange, record: number): void {
    this.#findings.tell('problem', 'RecordNotIndexed', this.#path, () => ({
      offset: recordStart[record]!,
      tensor: name,
      step: step[record]!,
      expected: 'an index entry of every record',
      found: `none of these ${recordByteLength[record]} bytes`,
      lost: `tensor ${quote(name)} at step ${step[record]} is not found`,
    }))
  }

  /** @param values the tensors of the record by name */
  #compare(
    location: TensorLocation,
    index: ReadIndex,
    { value, isOtherLength, savedShape }: Verdict,
    range: VerifiedRange,
    record: number,
    values: ReadonlyMap<string, number>,
  ): void {
    const { name, byteLength } = location
    const { step: indexStep, content, tellsMode } = index
    if (isOtherLength) {
      this.#problem('LengthMismatch', location, index, () => ({
        expected: `a record of ${byteLength} bytes there in ${shortPath(this.#path)}`,
        found: `one of ${range.recordByteLength[record]}`,
        lost: notFound(location, index),
      }))
    }
    if (value < 0) {
      this.#problem(values.size === 0 ? 'NoTensor' : 'TagMismatch', location, index, () => ({
        expected: `a record of tensor ${quote(name)} there in ${shortPath(this.#path)}`,
        found: values.size === 0 ? 'one that holds no tensor' : `one of ${quote([...values.keys()][0]!)}`,
        lost: notFound(location, index),
      }))
      return
    }
    const step = range.step[record]!
    if (step !== indexStep) {
      this.#problem('StepMismatch', location, index, () => ({
        expected: `a record of step ${indexStep} there in ${shortPath(this.#path)}`,
        found: `one of step ${step}`,
        lost: notFound(location, index),
      }))
    }
    if (savedShape !== null) {
      this.#problem('SavedShapeMismatch', location, index, () => ({
        expected: `shape [${range.shape[value]}], as its record in ${shortPath(this.#path)} has`,
        found: `[${savedShape}] in the index file`,
        lost: `the shape of tensor ${quote(name)} at step ${indexStep} is wrong in the index`,
      }))
    }
    const mode = MODES[range.mode[value]! - 1]
    const modeStep = range.modeStep[value]!
    if (content === null || !tellsMode || mode === undefined) return
    if (mode === content.mode && (modeStep < 0 || modeStep === content.modeStep)) return
    this.#findings.tell('note', 'ModeMismatch', index.path, () => ({
      offset: location.startByte,
      tensor: name,
      step: indexStep,
      expected: `a record of ${content.mode} step ${content.modeStep}, as the index says`,
      found: `one of ${mode}${modeStep < 0 ? '' : ` step ${modeStep}`} in ${shortPath(this.#path)}`,
    }))
  }
}

type Differences = Pick<VerifyFinding, 'expected' | 'found' | 'lost'>

function notFound({ name }: TensorLocation, { step }: ReadIndex): string {
  return `tensor ${quote(name)} at step ${step} is not found`
}

/** Saved shapes by tensor. The index files of different steps share their lists. */
const savedShapes = new WeakMap<readonly SavedShape[], ReadonlyMap<string, readonly number[]>>()

function savedShapesOf(shapes: readonly SavedShape[]): ReadonlyMap<string, readonly number[]> {
  let known = savedShapes.get(shapes)
  if (known === undefined) {
    known = new Map(shapes.map(({ name, shape }) => [name, shape]))
    savedShapes.set(shapes, known)
  }
  return known
}
