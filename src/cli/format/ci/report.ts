/** The outcome of a command as cases, for programs that show tests or findings, and its verdict. */

import { EXIT } from '../../exit.js'
import { note } from '../../terminal.js'

/**
 * The outcome of a command. `unread`: something could not be read, or a rule has failed. `unjudged`: nothing of the
 * requested data was there. Neither is a judgement, whatever else was found.
 */
export type VerdictWord = 'passed' | 'failed' | 'unread' | 'unjudged' | 'interrupted'

export interface Verdict {
  readonly word: VerdictWord
  readonly exitCode: number
  /** The judgement in a line. */
  readonly text: string
}

/** A question and its answer. `noted` is a finding that doesn't count for the exit code. */
export interface Case {
  readonly name: string
  readonly state: 'passed' | 'failed' | 'noted' | 'unread' | 'unjudged'
  /** The reason; empty if the case has passed. */
  readonly message: string
  /** The meaning of the case, and advice. */
  readonly help?: string
  readonly results: readonly Result[]
}

export interface Result {
  readonly message: string
  readonly tensor?: string | null
  readonly worker?: string | null
  readonly step?: number | null
  /** The path of the file, relative to the trial. */
  readonly file?: string | null
  readonly offset?: number | null
  /** The number of such findings, of which this is the first. */
  readonly count?: number
}

export interface Report {
  readonly command: string
  /** The path of the trial. */
  readonly trial: string
  readonly verdict: Verdict
  readonly cases: readonly Case[]
}

/** A trial that could not be read. */
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

/** A case that stands for a whole verdict. */
export function verdictCase(name: string, { word, text }: Verdict, results: readonly Result[], help?: string): Case {
  const state = word === 'interrupted' ? 'unread' : word
  return { name, state, message: word === 'passed' ? '' : text, ...(help !== undefined && { help }), results }
}

/** The keys of a verdict in JSON. */
export function verdictFields({ word, exitCode, text }: Verdict) {
  return { verdict: word, exit_code: exitCode, text }
}

/** Writes the verdict as the last line to stderr. */
export function tellVerdict({ word, text }: Verdict): void {
  note(`verdict: ${word}; ${text}`)
}
