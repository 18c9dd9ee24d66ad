/** Compares the records of an event file with its index files and its name. */

import { type ErrorData, isAboutFile, shortPath } from '../../base/errors.js'
import { indexFilePath, parseEventFileName } from '../../format/paths.js'
import { HISTOGRAM, type RecordProblem, TENSOR, type VerifiedRange } from '../../scan/job/verify-job.js'
import type { SavedNames } from './collections.js'
import { EntryComparison } from './compare.js'
import type { Entries } from './entries.js'
import type { Checked, EventFile } from './event-files.js'
import type { Findings } from './findings.js'
import type { IndexState } from './indexes.js'
import { lostBetween, lostEntries, lostTensors } from './lost.js'
import type { VerifyCode, VerifyProblem } from './problem.js'

export interface RecordChecking {
  readonly findings: Findings
  readonly indexes: IndexState
  readonly savedNames: SavedNames
  /** True if the index directory was listed. */
  readonly isIndexListed: boolean
}

/** Checks event files one after the other. */
export class RecordCheck {
  eventFiles = 0
  records = 0
  recordsWithoutChecksum = 0
  /** The number of tensors, scalars and histograms. */
  tensors = 0
  readonly #checking: RecordChecking

  constructor(checking: RecordChecking) {
    this.#checking = checking
  }

  /** @param ranges the content of the file, or the error that prevents reading it */
  check(file: EventFile, ranges: readonly Checked[] | ErrorData): void {
    this.#checking.findings.startFile()
    if ('code' in ranges) this.#unreadable(file, ranges)
    else this.#records(file, ranges)
  }

  #unreadable({ path, entries, isListed }: EventFile, error: ErrorData): void {
    const { findings } = this.#checking
    const index = entries.some(0, entries.length, 1)[0]?.index
    const lost = lostEntries(entries) || 'all that is in it'
    if (error.code === 'NotFound' && isAboutFile(error) && !isListed && index) {
      const [expected, found] = [`the event file ${shortPath(path)}`, 'no such file']
      findings.problem({ code: 'EventFileMissing', file: index.path, step: index.step, expected, found, lost })
    } else {
      findings.problemOf(error, path, 'Unreadable', lost)
    }
  }

  #records(file: EventFile, checked: readonly Checked[]): void {
    const { path, entries } = file
    const { findings, indexes, savedNames, isIndexListed } = this.#checking
    this.eventFiles++
    let values = 0
    for (const { range, tags } of checked) {
      this.records += range.recordStart.length
      this.recordsWithoutChecksum += range.withoutChecksum
      for (const kind of range.kind) if (kind === TENSOR || kind === HISTOGRAM) values++
      if (!indexes.isThere) for (const tag of tags) savedNames.add(tag)
      this.#recordProblems(file, range)
    }
    this.tensors += values
    const name = parseEventFileName(path)
    if (entries.length > 0 || (name && indexes.isReadable(name))) {
      new EntryComparison(path, entries, checked, findings).run()
      return
    }
    if (name !== null) this.#compareSteps(path, name.step, checked)
    if (!indexes.isThere || name === null || indexes.has(name) || !isIndexListed) return
    const expected = `the index file ${indexFilePath(name.step, name.worker)}`
    const finding = { file: path, step: name.step, expected }
    if (checked.every(({ range }) => range.byteLength === 0)) {
      findings.note({ ...finding, code: 'EmptyEventFile', found: 'none; the event file is empty, too' })
    } else if (indexes.isLate(name)) {
      const lost = `what its ${values} tensors are called, and where they lie`
      findings.problem({ ...finding, code: 'IndexFileMissing', found: 'none', lost })
    } else {
      findings.note({
        ...finding,
        code: 'IndexFileMissing',
        found: 'none; the job may still write it, if it has not been ended',
      })
    }
  }

  /** Compares the steps of records without an index entry with the step in the file's name. */
  #compareSteps(path: string, fileStep: number, checked: readonly Checked[]): void {
    for (const { range, tags } of checked) {
      const { recordStart, isBad, record, tag, step } = range
      for (const [value, i] of record.entries()) {
        if (isBad[i] === 1 || step[i] === fileStep || record[value - 1] === i) continue
        this.#checking.findings.tell('problem', 'StepMismatch', path, () => {
          const tensor = tags[tag[value]!]!
          return {
            offset: recordStart[i]!,
            tensor,
            step: fileStep,
            expected: `a record of step ${fileStep}, as the file is named`,
            found: `one of step ${step[i]}`,
            lost: lostTensors([tensor], step[i]!),
          }
        })
      }
    }
  }

  #recordProblems({ path, entries }: EventFile, { problems, problemCounts, notes, noteCounts }: VerifiedRange): void {
    const { findings } = this.#checking
    const tell = (
      severity: VerifyProblem['severity'],
      reported: readonly RecordProblem[],
      counts: Readonly<Record<string, number>>,
    ): void => {
      const untold = { ...counts }
      for (const problem of reported) {
        const { error, startByte, endByte, tag, step: said } = problem
        untold[error.code]!--
        findings.tell(severity, error.code as VerifyCode, path, () => {
          // The index file is trusted over a damaged record.
          const named = entries.firstWithin(startByte, endByte)
          const step = named?.index.step ?? (tag === null ? Number.NaN : said)
          const { offset, expected, got } = error.fields
          return {
            offset: typeof offset === 'number' ? offset : startByte,
            tensor: tag,
            step: Number.isNaN(step) ? null : step,
            expected: `${expected}`,
            found: `${got}`,
            lost: severity === 'note' ? '' : lostBy(entries, { ...problem, step }),
          }
        })
      }
      for (const [code, count] of Object.entries(untold)) findings.count(severity, code as VerifyCode, count)
    }
    tell('problem', problems, problemCounts)
    tell('note', notes, noteCounts)
  }
}

function lostBy(entries: Entries, { error, startByte, endByte, tag, step }: RecordProblem): string {
  if (error.code === 'ReductionMismatch') return 'which of them is right'
  // A torn record ends the file.
  const end = error.code === 'TruncatedRecord' ? Number.POSITIVE_INFINITY : endByte
  return lostBetween(entries, startByte, end, tag, step) || `${endByte - startByte} bytes`
}
