/** The trials of a command that takes several: which they are, opened one after the other, and what came of each. */

import { createTrial, findTrials, type Trial, type TrialOptions } from '../../index.js'
import { EXIT } from '../exit.js'
import { counted, countText } from '../format/number.js'
import { expectS3, isOnS3, type S3Flags, s3OptionsOf } from '../options/s3.js'
import { note } from '../terminal.js'

/** All trials at the places, each once, in their order. @throws StoreError for a pattern that nothing matches */
export async function trialsAt(places: readonly string[], flags: S3Flags): Promise<readonly string[]> {
  expectS3(flags, places)
  const found = new Set<string>()
  for (const place of places) {
    for (const trial of await findTrials(place, isOnS3(place) ? s3OptionsOf(flags) : {})) found.add(trial)
  }
  return [...found]
}

/** What could not be had of several trials. It is told at the end. */
export class Losses {
  readonly #failFast: boolean
  readonly #trials: { readonly path: string; readonly error: unknown }[] = []
  #rows = 0
  #failedRows = 0
  #firstRow: string | null = null
  readonly #problems: string[] = []

  /** @param failFast throw the error of the first trial that can't be opened */
  constructor(failFast: boolean) {
    this.#failFast = failFast
  }

  trial(path: string, error: unknown): void {
    if (this.#failFast) throw error
    this.#trials.push({ path, error })
  }

  rows(path: string, rows: number, failedRows: number, first: string | null, problems: readonly string[]): void {
    this.#rows += rows
    this.#failedRows += failedRows
    if (first !== null) this.#firstRow ??= named(path, first)
    for (const problem of problems) if (problem !== first) this.#problems.push(named(path, problem))
  }

  /** @param count of all trials @throws the error of the first, if none could be opened */
  expectSome(count: number): void {
    const [first] = this.#trials
    if (first !== undefined && this.#trials.length === count) throw first.error
  }

  /** Writes notes. @param count of all trials @returns the exit code */
  tell(count: number): number {
    const failed = this.#trials.length
    for (const { path, error } of this.#trials.slice(0, MAX_NOTES)) {
      note(named(path, error instanceof Error ? error.message : String(error)))
    }
    if (failed > 0) note(`${countText(failed)} of ${counted(count, 'trial')} could not be opened`)
    if (this.#firstRow !== null) {
      note(
        `${countText(this.#failedRows)} of ${counted(this.#rows, 'row')} could not be had; the first: ${this.#firstRow}`,
      )
    }
    for (const problem of this.#problems.slice(0, MAX_NOTES)) note(problem)
    return failed > 0 || this.#firstRow !== null || this.#problems.length > 0 ? EXIT.format : EXIT.ok
  }
}

/** A message that names the trial, as most do. */
function named(path: string, message: string): string {
  return message.includes(path) ? message : `${path}: ${message}`
}

/** Trials that are named one by one at the end. */
const MAX_NOTES = 100

/**
 * Opens trials, each while the one before is at work. One that can't be opened is told to the losses. Each is closed when the next is
 * taken.
 * @throws the error of the first, in the end, if none could be opened
 */
export async function* opened(
  paths: readonly string[],
  flags: S3Flags & { readonly threads?: number },
  losses: Losses,
): AsyncGenerator<{ readonly path: string; readonly trial: Trial; readonly openMs: number }> {
  let next = begin(paths[0], flags)
  try {
    for (const [i, path] of paths.entries()) {
      const { trial, error, openMs } = await next
      next = begin(paths[i + 1], flags)
      if (trial === null) losses.trial(path, error)
      else {
        try {
          yield { path, trial, openMs }
        } finally {
          await trial.close()
        }
      }
    }
    losses.expectSome(paths.length)
  } finally {
    await (await next).trial?.close()
  }
}

type Opening = { readonly trial: Trial | null; readonly error: unknown; readonly openMs: number }

async function begin(path: string | undefined, flags: S3Flags & { readonly threads?: number }): Promise<Opening> {
  if (path === undefined) return { trial: null, error: null, openMs: 0 }
  const startedAt = performance.now()
  try {
    const trial = await createTrial(path, openOptions(path, flags))
    return { trial, error: null, openMs: performance.now() - startedAt }
  } catch (error) {
    return { trial: null, error, openMs: 0 }
  }
}

/** How commands that don't follow a trial open it. */
export function openOptions(path: string, flags: S3Flags & { readonly threads?: number }): TrialOptions {
  const { threads } = flags
  return {
    requireCollections: false,
    refresh: 'manual',
    ...(isOnS3(path) && s3OptionsOf(flags)),
    ...(threads !== undefined && { threads }),
  }
}
