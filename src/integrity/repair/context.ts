/** The context of a repair: the trial, which must not change during the repair, and the copy. */

import { setTimeout } from 'node:timers/promises'
import { type ErrorData, errorFromData, FormatError, isAboutFile, pathOfUrl } from '../../base/errors.js'
import type { Access } from '../../scan/runner/access.js'
import type { OutputDirectory } from '../../storage/local/output-directory.js'
import { STAMP_LENGTH, type Store } from '../../storage/store.js'
import type { RepairNotes } from './report.js'

/** The resolution of file times: files written within one tick (at most 10 ms, doubled for safety) have the same time. */
const CLOCK_TICK_MS = 20
/** The resolution of file times on S3, which may be whole seconds. */
const REMOTE_CLOCK_TICK_MS = 1000

export interface RepairContext {
  readonly access: Access
  readonly output: OutputDirectory
  readonly notes: RepairNotes
  readonly source: RepairSource
  /** True to give records the true checksums of their payloads. */
  readonly checksums: boolean
  readonly threads: number | undefined
  readonly signal: AbortSignal | undefined
}

/** The trial that is copied. Files are read twice and refer to each other, so none may change during the repair. */
export class RepairSource {
  readonly #access: Access
  readonly #store: Store
  readonly #signal: AbortSignal | undefined
  readonly #listed: ReadonlySet<string>
  /** The paths that existed when the repair began. */
  readonly #existing = new Set<string>()
  readonly #paths: string[] = []
  readonly #stamps: number[] = []

  /** @param listed the paths of all files in the trial */
  constructor(access: Access, listed: ReadonlySet<string>, signal: AbortSignal | undefined) {
    this.#access = access
    this.#store = access.store
    this.#listed = listed
    this.#signal = signal
  }

  /** Records the state of files before they are read, so that any later change is noticed. */
  async watch(paths: readonly string[]): Promise<void> {
    const stamps = await this.#keep(paths)
    for (const [i, path] of paths.entries()) if (!Number.isNaN(stamps[i * STAMP_LENGTH])) this.#existing.add(path)
    const tickMs = this.#access.isRemote ? REMOTE_CLOCK_TICK_MS : CLOCK_TICK_MS
    const recently = Date.now() - tickMs
    const isTime = (i: number): boolean => (this.#access.isRemote ? i % STAMP_LENGTH === 1 : i % STAMP_LENGTH > 0)
    if (!stamps.some((time, i) => isTime(i) && time > recently)) return
    const signal = this.#signal
    await setTimeout(tickMs, undefined, signal && { signal }).catch(() => signal?.throwIfAborted())
  }

  /** Records missing files, so that one that appears during the repair is noticed. */
  async watchMissing(paths: readonly string[]): Promise<void> {
    await this.#keep(paths)
  }

  async #keep(paths: readonly string[]): Promise<Float64Array> {
    const stamps = await this.#store.stamps(paths)
    for (const path of paths) this.#paths.push(path)
    for (const stamp of stamps) this.#stamps.push(stamp)
    return stamps
  }

  /** @throws FormatError `FileChanged`: a copy of a file that changed can't be trusted */
  async expectUnchanged(): Promise<void> {
    await this.#expectSame(this.#listed)
    // An object store keeps the stamps of earlier reads and listings; a new listing shows later changes.
    if (this.#access.isRemote) await this.#expectSame(new Set(await this.#store.list('', { recursive: true })))
  }

  async #expectSame(existing: ReadonlySet<string>): Promise<void> {
    const after = await this.#store.stamps(this.#paths)
    const at = this.#paths.findIndex((path, i) => {
      const [from, end] = [i * STAMP_LENGTH, (i + 1) * STAMP_LENGTH]
      if (existing.has(path) !== this.#listed.has(path)) return true
      return after.subarray(from, end).some((number, j) => !Object.is(number, this.#stamps[from + j]))
    })
    if (at >= 0) throw this.#changed(this.#paths[at]!, 'one that changed in the meantime')
  }

  /**
   * Stops the repair at data that could not be read for reasons of the store: they are not lost, and a copy without them would claim so.
   * @throws the error, unless it describes the file itself
   */
  expectTold(path: string, error: ErrorData): void {
    if (!isAboutFile(error)) throw errorFromData(error)
    if (error.code === 'NotFound' && this.#existing.has(path)) throw this.#changed(path, 'none any more')
  }

  #changed(path: string, got: string): FormatError {
    const url = this.#store.url(path)
    const expected = 'a file that stays unchanged while the trial is copied'
    return new FormatError('FileChanged', `${pathOfUrl(url)}: expected ${expected}, got ${got}`, { url, expected, got })
  }
}
