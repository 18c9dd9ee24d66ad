/** The outcome of a command as cases, for programs that show tests or findings, and its verdict. */

import { EXIT } from '../../exit.js'
import { note, safeJson } from '../../terminal.js'

/**
 * `unread`: something could not be read, or a rule has failed. `unjudged`: there was nothing of what was asked for. Both are no
 * judgement, whatever else was found.
 */
export type VerdictWord = 'passed' | 'failed' | 'unread' | 'unjudged' | 'interrupted'

export interface Verdict {
  readonly word: VerdictWord
  readonly exitCode: number
  /** An account of what was judged and found, in a line. */
  readonly text: string
}

/** A question and its answer. `noted`: found, but not what the exit code counts. */
export interface Case {
  readonly name: string
  readonly state: 'passed' | 'failed' | 'noted' | 'unread' | 'unjudged'
  /** Empty for what has passed. */
  readonly message: string
  /** The meaning, and what to do. */
  readonly help?: string
  readonly results: readonly Result[]
}

export interface Result {
  readonly message: string
  readonly tensor?: string | null
  readonly worker?: string | null
  readonly step?: number | null
  /** Relative to the trial. */
  readonly file?: string | null
  readonly offset?: number | null
  /** The number of times it was found; this is the first. */
  readonly count?: number
}

export interface Report {
  readonly command: string
  /** The path. */
  readonly trial: string
  readonly verdict: Verdict
  readonly cases: readonly Case[]
}

/** A trial that could not be had. */
export interface Lost {
  readonly path: string
  readonly error: unknown
}

const WORDS: ReadonlyMap<number, VerdictWord> = new Map([
  [EXIT.ok, 'passed'],
  [EXIT.findings, 'failed'],
  [EXIT.format, 'unread'],
  [EXIT.query, 'unjudged'],
  [EXIT.interrupted, 'interrupted'],
])

/** The verdict of an exit code. */
export function verdictOf(exitCode: number, text: string): Verdict {
  return { word: WORDS.get(exitCode) ?? 'unread', exitCode, text }
}

/** The state of a case that stands for a whole verdict. */
export function stateOfVerdict(word: VerdictWord): Case['state'] {
  return word === 'interrupted' ? 'unread' : word
}

/** The keys of a verdict in JSON. */
export function verdictFields({ word, exitCode, text }: Verdict) {
  return { verdict: word, exit_code: exitCode, text }
}

/** One object of several trials: the verdict of all, and the object of each. */
export function objectOfSeveral(
  command: string,
  verdict: Verdict,
  trials: readonly string[],
  lost: readonly Lost[],
): string {
  const unread = lost.map(({ path, error }) => {
    const { verdict } = unreadReport(command, path, error)
    return JSON.stringify({ trial: path, ...verdictFields(verdict) })
  })
  const head = JSON.stringify(verdictFields(verdict)).slice(0, -1)
  return `${safeJson(`${head},"trials":[${[...trials, ...unread].join(',')}]}`)}\n`
}

/** Writes the verdict as the last line to stderr. */
export function tellVerdict({ word, text }: Verdict): void {
  note(`verdict: ${word}; ${text}`)
}

/** The case and the verdict of a trial that could not be had. */
export function unreadReport(command: string, trial: string, error: unknown): Report {
  const message = error instanceof Error ? error.message : String(error)
  const verdict = verdictOf(EXIT.format, message)
  return { command, trial, verdict, cases: [{ name: 'read', state: 'unread', message, results: [] }] }
}
