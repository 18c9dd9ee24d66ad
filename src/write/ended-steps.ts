/** The steps that have ended: written in order while the training goes on. */

import { StoreError, TrialscanError } from '../base/errors.js'
import { collectionsFilePath, END_MARKERS } from '../format/paths.js'
import type { Destination } from '../storage/destination.js'
import type { SavedCollections } from './collections.js'
import { partOf, type WriterOptions } from './options.js'
import type { StepFiles } from './step-files.js'

/** The number of steps that are written while the training goes on. */
const MAX_WRITING = 1

export class EndedSteps {
  readonly #destination: Destination
  readonly #collections: SavedCollections
  readonly #options: WriterOptions
  readonly #part: ReturnType<typeof partOf>
  /** True if the worker is saved. */
  readonly isSaved: boolean
  /** The writes in progress, the oldest first. */
  readonly #writing: Promise<void>[] = []
  /** The paths of files that were written, for `fsync: 'end'`. */
  readonly #written: string[] = []
  /** The first failure; nothing is written after it. */
  failure: TrialscanError | null = null

  constructor(destination: Destination, collections: SavedCollections, options: WriterOptions) {
    this.#destination = destination
    this.#collections = collections
    this.#options = options
    this.#part = partOf(options)
    this.isSaved = this.#part.isSaved
  }

  /** A promise for the next completed write; null if another step can begin. */
  get room(): Promise<void> | null {
    return this.#writing.length > MAX_WRITING ? this.#writing[0]! : null
  }

  /** Adds a step. @param hasNews true if the collections file must be rewritten first */
  add(files: StepFiles, hasNews: boolean): void {
    const writing = this.#write(files, hasNews, this.#writing.at(-1))
      .catch(error => this.fail(error))
      .finally(() => {
        this.#writing.shift()
      })
    this.#writing.push(writing)
  }

  /** Waits until all steps are written. @throws StoreError */
  async written(): Promise<void> {
    await this.#writing.at(-1)
    this.expectNoFailure()
  }

  /** Writes what is left, and the end marker. @throws StoreError */
  async end(): Promise<void> {
    await this.written()
    if (!this.isSaved) return
    if (this.#options.fsync === 'end') await this.#destination.makeDurable(this.#written)
    await this.#destination.replace(END_MARKERS[0]!, '').catch(error => this.fail(error))
    this.expectNoFailure()
  }

  /** Keeps a failure for the next call. @throws errors of our own */
  fail(error: unknown): void {
    if (!(error instanceof TrialscanError)) throw error
    this.failure ??= error
  }

  /** @throws the failure, unless the training is to go on */
  expectNoFailure(): void {
    if (this.failure === null) return
    if (this.#options.whenFailing === 'stop' && this.failure instanceof StoreError) return
    throw this.failure
  }

  async #write(files: StepFiles, hasNews: boolean, before: Promise<void> | undefined): Promise<void> {
    if (before !== undefined) await before
    if (this.failure !== null) return files.abandon()
    // The collections file comes first, so that readers who see the step have it.
    if (hasNews) {
      await this.#destination.replace(
        collectionsFilePath(this.#part.worker),
        this.#collections.text(this.#part.numWorkers),
      )
    }
    const paths = await files.finish()
    if (this.#options.fsync === 'end') this.#written.push(...paths)
  }
}
