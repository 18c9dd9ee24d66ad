/** The findings of a verification: all are counted, and reported one by one up to a limit. */

import { type ErrorData, isAboutFile, pathOfUrl, type StoreError } from '../../base/errors.js'
import { parseEventFileName, parseIndexFileName } from '../../format/paths.js'
import { verifyProblem } from './advice.js'
import type { VerifyCode, VerifyFinding, VerifyProblem } from './problem.js'

/** The number of findings per file that are reported one by one. */
const MAX_TOLD_OF_FILE = 100
const MAX_TOLD = 10_000

type Severity = VerifyProblem['severity']

/** A finding whose text is made only if it is reported. */
type LazyFinding = () => Omit<VerifyFinding, 'code' | 'file'>

/** The reported problems, or notes. */
class Reported {
  readonly problems: VerifyProblem[] = []
  readonly counts: Partial<Record<VerifyCode, number>> = {}
  /** The number of findings reported for a file: for the current event file and its index files, and for what came before. */
  readonly ofFile = new Map<string, number>()

  count(code: VerifyCode, count: number): void {
    if (count > 0) this.counts[code] = (this.counts[code] ?? 0) + count
  }

  /** True if another finding of a file is reported. */
  takes(file: string): boolean {
    if (this.problems.length >= MAX_TOLD) return false
    const count = this.ofFile.get(file) ?? 0
    if (count >= MAX_TOLD_OF_FILE) return false
    this.ofFile.set(file, count + 1)
    return true
  }
}

export class Findings {
  /** Directory entries that should be files but are not. */
  readonly odd = new Map<string, ErrorData>()
  /** True if something that may hold anything could not be read. */
  isPartial = false
  readonly #problem = new Reported()
  readonly #note = new Reported()
  readonly #urlOf: (file: string) => string
  readonly #onProblem: ((problem: VerifyProblem) => void) | undefined

  constructor(urlOf: (file: string) => string, onProblem: ((problem: VerifyProblem) => void) | undefined) {
    this.#urlOf = urlOf
    this.#onProblem = onProblem
  }

  get told() {
    const { problems, counts: problemCounts } = this.#problem
    const { problems: notes, counts: noteCounts } = this.#note
    return { ok: Object.keys(problemCounts).length === 0, problems, notes, problemCounts, noteCounts }
  }

  problem(finding: VerifyFinding): void {
    this.tell('problem', finding.code, finding.file, () => finding)
  }

  note(finding: VerifyFinding): void {
    this.tell('note', finding.code, finding.file, () => finding)
  }

  tell(severity: Severity, code: VerifyCode, file: string, finding: LazyFinding): void {
    const target = severity === 'problem' ? this.#problem : this.#note
    target.count(code, 1)
    if (!target.takes(file)) return
    const problem = verifyProblem(severity, { ...finding(), code, file })
    target.problems.push(problem)
    this.#onProblem?.(problem)
  }

  /** Counts findings that are not reported one by one. */
  count(severity: Severity, code: VerifyCode, count: number): void {
    ;(severity === 'problem' ? this.#problem : this.#note).count(code, count)
  }

  /** Starts a file: earlier findings no longer count against its limit. */
  startFile(): void {
    this.#problem.ofFile.clear()
    this.#note.ofFile.clear()
  }

  /** Reports an error of a file as a problem. */
  problemOf(error: ErrorData, file: string, code: VerifyCode, lost = ''): void {
    // The file is reported once.
    if (code === 'Unreadable') this.odd.delete(file)
    if (!isAboutFile(error)) this.isPartial = true
    const { offset, expected, got, at } = error.fields
    this.problem({
      code,
      file,
      offset: typeof offset === 'number' ? offset : null,
      step: (parseIndexFileName(file) ?? parseEventFileName(file))?.step ?? null,
      expected: `${typeof expected === 'string' ? expected : 'a file that can be read'}${typeof at === 'string' ? ` as ${at}` : ''}`,
      found: typeof got === 'string' ? got : error.message.replace(`${pathOfUrl(this.#urlOf(file))}: `, ''),
      lost,
    })
  }

  unreadable(error: StoreError, file: string, lost: string): void {
    this.problemOf(error.toJSON(), file, 'Unreadable', lost)
  }
}
