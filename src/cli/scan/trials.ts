/** The trials of a command: where they are, how they are opened, and their errors. */

import { TrialscanError, UsageError } from '../../base/errors.js'
import type { Scan } from '../../scan/rows/scan.js'
import { findTrials } from '../../trial/find.js'
import { createTrial, type TrialOptions } from '../../trial/open.js'
import { damageAmong } from '../../trial/scan-selection.js'
import type { Trial } from '../../trial/trial.js'
import { EXIT, heavier } from '../exit.js'
import { counted, countText } from '../format/number.js'
import { defined } from '../options/given.js'
import { placeOptions, type TrialFlags, trialOptions } from '../options/s3.js'
import { note } from '../terminal.js'

/** All trials at the places, each once, in their order. @throws StoreError for a pattern that nothing matches */
export async function trialsAt(places: readonly string[], flags: TrialFlags): Promise<readonly string[]> {
  const paths = new Set<string>()
  for (const place of places) {
    for (const trial of await findTrials(place, placeOptions(place, flags))) paths.add(trial)
  }
  return [...paths]
}

/** The options of opening a trial. */
export type OpenFlags = TrialFlags & { readonly threads?: number }

/** The number of a trial's notes that are written one by one. */
const MAX_TRIAL_NOTES = 20

/** Opens a trial for a command, without a refresh in the background. Notes about it go to stderr. */
export async function openTrial(path: string, flags: OpenFlags, options: TrialOptions = {}): Promise<Trial> {
  const { threads } = flags
  const reading = { requireCollections: false, refresh: 'manual', ...defined({ threads }) } as const
  const trial = await createTrial(path, { ...reading, ...options, ...trialOptions(path, flags) })
  const { notes } = trial
  for (const text of notes.slice(0, MAX_TRIAL_NOTES)) note(text)
  if (notes.length > MAX_TRIAL_NOTES) note(`and ${notes.length - MAX_TRIAL_NOTES} notes more`)
  return trial
}

/** Opens a trial for some work, and closes it. */
export async function withTrial<T>(path: string, flags: OpenFlags, work: (trial: Trial) => Promise<T>): Promise<T> {
  const trial = await openTrial(path, flags)
  try {
    return await work(trial)
  } finally {
    await trial.close()
  }
}

interface Lacks {
  readonly rows?: number
  readonly failedRows?: number
  readonly first?: string | null
  readonly problems?: readonly (string | TrialscanError)[]
}

/** The errors of several trials, reported at the end. */
export class Losses {
  readonly #count: number
  readonly #failFast: boolean
  readonly #trials: { readonly path: string; readonly error: unknown }[] = []
  #rows = 0
  #failedRows = 0
  #firstRow: string | null = null
  readonly #problems: string[] = []
  #code: number = EXIT.ok

  /**
   * @param paths all trials; the errors of a single one are not kept for the end
   * @param failFast true to throw the error of the first trial that can't be read
   */
  constructor(paths: readonly string[], failFast = false) {
    this.#count = paths.length
    this.#failFast = failFast || paths.length === 1
  }

  /**
   * Records the error of a trial that can't be read.
   * @throws the error, if it is not the trial's own, or if it is thrown at once
   */
  trial(path: string, error: unknown): void {
    if (this.#failFast || error instanceof UsageError || !(error instanceof TrialscanError)) throw error
    this.#trials.push({ path, error })
  }

  /** Records what a trial lacks: rows, of which `first` says why the first could not be had, and problems without a row. */
  add(path: string, { rows = 0, failedRows = 0, first = null, problems = [] }: Lacks): void {
    this.#rows += rows
    this.#failedRows += failedRows
    if (first !== null) this.#firstRow ??= this.#named(path, first)
    for (const problem of problems) {
      const message = typeof problem === 'string' ? problem : problem.message
      if (message !== first) this.#problems.push(this.#named(path, message))
    }
  }

  /** Records what a scan could not read. */
  addScan(path: string, { stats, firstError, problems }: Pick<Scan, 'stats' | 'firstError' | 'problems'>): void {
    const { rows, failedRows } = stats
    this.add(path, { rows, failedRows, first: firstError?.message ?? null, problems: damageAmong(problems) })
  }

  /** The trials that could not be read. */
  get lost(): readonly { readonly path: string; readonly error: unknown }[] {
    return this.#trials
  }

  /** The exit code of all trials. */
  get code(): number {
    const isDamaged = this.#trials.length > 0 || this.#firstRow !== null || this.#problems.length > 0
    return isDamaged ? heavier(this.#code, EXIT.format) : this.#code
  }

  /** Records the outcome of a trial. @param code its exit code */
  outcome(code: number): void {
    this.#code = heavier(this.#code, code)
  }

  /** @throws the error of the first trial, if none could be read */
  expectSome(): void {
    const [first] = this.#trials
    if (first !== undefined && this.#trials.length === this.#count) throw first.error
  }

  /** Writes notes. @returns the exit code */
  tell(): number {
    const failed = this.#trials.length
    for (const { path, error } of this.#trials.slice(0, MAX_NOTES)) {
      note(this.#named(path, error instanceof Error ? error.message : String(error)))
    }
    if (failed > 0) note(`${countText(failed)} of ${counted(this.#count, 'trial')} could not be read`)
    if (this.#firstRow !== null) {
      note(
        `${countText(this.#failedRows)} of ${counted(this.#rows, 'row')} could not be had; the first: ${this.#firstRow}`,
      )
    }
    for (const problem of this.#problems.slice(0, MAX_NOTES)) note(problem)
    const rest = this.#problems.length - MAX_NOTES
    if (rest > 0) note(`and ${counted(rest, 'problem')} more`)
    return this.code
  }

  /** A message that names the trial, if there are several. */
  #named(path: string, message: string): string {
    return this.#count === 1 || message.includes(path) ? message : `${path}: ${message}`
  }
}

/** The number of trials that are named one by one at the end. */
const MAX_NOTES = 100

/**
 * Opens trials, each while those before it are in use. Errors are recorded as losses. Each trial is closed when the
 * next is taken.
 * @throws the error of the first trial, at the end, if none could be opened
 */
export async function* opened(
  paths: readonly string[],
  flags: OpenFlags,
  losses: Losses,
): AsyncGenerator<{ readonly path: string; readonly trial: Trial }> {
  const openings: ReturnType<typeof begin>[] = []
  let begun = 0
  try {
    for (const path of paths) {
      while (begun < paths.length && openings.length <= AHEAD) openings.push(begin(paths[begun++]!, flags))
      const { trial, error } = await openings.shift()!
      if (trial === null) losses.trial(path, error)
      else {
        try {
          yield { path, trial }
        } finally {
          await trial.close()
        }
      }
    }
    losses.expectSome()
  } finally {
    for (const opening of openings) await (await opening).trial?.close()
  }
}

/**
 * The number of trials that are opened while another is in use: opening small ones is nothing but waiting for files.
 */
const AHEAD = 3

function begin(path: string, flags: OpenFlags): Promise<{ readonly trial: Trial | null; readonly error?: unknown }> {
  return openTrial(path, flags).then(
    trial => ({ trial }),
    error => ({ trial: null, error }),
  )
}
