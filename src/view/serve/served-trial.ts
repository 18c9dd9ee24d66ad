/** A trial that clients look at while it may still grow. It reads only what they look at. */

import { setTimeout as sleep } from 'node:timers/promises'
import { problemLines } from '../../base/problem-lines.js'
import { waitFor } from '../../scan/catalog/wait.js'
import type { Kind } from '../../trial/kinds/kinds.js'
import { kindsOf } from '../../trial/kinds/kinds.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import { findingsOf, identityOf, unjudged } from '../collect.js'
import type { EmbeddingView, RidgeView, ServedStatistic, TensorView, TrialView } from '../data.js'
import { Judging } from '../judged.js'
import { LossCourse, type LossView } from '../overview/loss-course.js'
import { packed } from '../packing.js'
import { ridgesOf } from '../ridges.js'
import { classesOf, labelNames } from '../samples/classes.js'
import { type EmbeddingOptions, embeddingOf } from '../samples/embedding.js'
import { treesOf } from '../samples/trees.js'
import { unitsOf, unitTensors } from '../samples/units.js'
import { Skeleton } from '../skeleton.js'
import { KeptColumns, type Scope, type ScopedColumn } from './kept-columns.js'
import { BACKGROUND } from './turns.js'

/** The message to clients about a change. */
export interface Change {
  readonly version: number
  readonly steps: number
  readonly findings: number
  /** True if the job has said that it ended. */
  readonly isEnded: boolean
  /** True if nothing can change any more: the job has ended, and rules have judged all steps. */
  readonly isOver: boolean
}

export interface ServedOptions {
  readonly threads?: number | undefined
  readonly memory?: number | undefined
  readonly open: () => Promise<Trial>
  /** Milliseconds between two looks at a running trial, where the platform does not report changes. */
  readonly pollMs: number
  /** True if rules judge it. */
  readonly judges: boolean
}

/** Milliseconds without a request after which rules begin. */
const QUIET_MS = 250
/** Milliseconds between messages about findings and the rules' progress. */
const TELL_MS = 250
const PROGRESS_MS = 1000
/** The largest number of tensors whose dtypes and shapes are read. */
const MAX_DESCRIBED = 20_000

/** The parts of a page that are made of values when somebody looks. */
export const PARTS = { classes: classesOf, units: unitsOf, trees: treesOf }
export type Part<K extends keyof typeof PARTS> = Awaited<ReturnType<(typeof PARTS)[K]>>

/** The parts of a view that are asked for alone. */
const UNREAD = {
  columns: [],
  ridges: [],
  elements: [],
  classes: null,
  embedding: null,
  units: null,
  trees: null,
  remarks: null,
} as const

export class ServedTrial {
  readonly id: string
  readonly path: string
  readonly #options: ServedOptions
  #opening: Promise<Trial> | undefined
  /** The trial, if it has been opened. */
  opened: Trial | undefined
  /** The error that opening it threw. */
  error: unknown
  judging: Judging | undefined
  /** True if rules have judged all steps of an ended job. */
  #isJudged = false
  /** True if no more steps will come. */
  #isKept = false
  /** The version of the trial's data: numbers read under an older one may be stale. */
  trialVersion = 0
  /** The version of the data and of the findings. */
  #version = 0
  #skeleton: { readonly version: number; readonly skeleton: Skeleton; readonly kinds: readonly Kind[] } | undefined
  #descriptions = new Map<string, Pick<TensorView, 'dtype' | 'shape'>>()
  readonly #columns: KeptColumns
  /** The number of current requests, and the time of the last one. */
  #looks = 0
  #lookedAt = performance.now()
  readonly #course = new LossCourse()
  readonly #listeners = new Set<(change: Change) => void>()
  readonly #closing = new AbortController()
  #toldAt = 0
  #telling: ReturnType<typeof setTimeout> | undefined

  constructor(id: string, path: string, options: ServedOptions) {
    this.id = id
    this.path = path
    this.#options = options
    this.#columns = new KeptColumns(this.#reading)
  }

  get #reading() {
    const { threads, memory } = this.#options
    return { signal: this.#closing.signal, threads, memory }
  }

  async #look<T>(work: () => Promise<T>): Promise<T> {
    this.#looks++
    try {
      return await work()
    } finally {
      this.#looks--
      this.#lookedAt = performance.now()
    }
  }

  /** Opens the trial on the first call. @throws what `createTrial` throws; the next call tries again */
  open(): Promise<Trial> {
    this.#opening ??= this.#open()
    return this.#opening
  }

  /** The loss as far as it was read, and the time of the last change. */
  get course(): { readonly loss: LossView | null; readonly changed: string | null } {
    const loss =
      this.opened === undefined
        ? null
        : this.#course.of(this.opened, this.#closing.signal, signal => BACKGROUND.take(signal))
    const { changedMs } = this.#course
    return { loss, changed: changedMs === null ? null : new Date(changedMs).toISOString() }
  }

  get change(): Change {
    return {
      version: this.#version,
      steps: this.opened?.steps({ showIncompleteSteps: true }).length ?? 0,
      findings: this.judging?.findingCount ?? 0,
      isEnded: this.opened?.loadedAllSteps ?? false,
      isOver: this.#isKept && (!this.#options.judges || this.#isJudged),
    }
  }

  /** Adds a listener to changes. @returns a function that removes it */
  listen(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    clearTimeout(this.#telling)
    await this.#opening?.then(trial => trial.close()).catch(() => {})
  }

  async #open(): Promise<Trial> {
    try {
      const trial = await this.#options.open()
      this.opened = trial
      this.#version++
      void this.#keepUp(trial)
      if (this.#options.judges) void this.#judge(trial)
      return trial
    } catch (error) {
      this.error = error
      // The trial may exist later.
      this.#opening = undefined
      throw error
    }
  }

  /** Looks for new steps until the job ends. */
  async #keepUp(trial: Trial): Promise<void> {
    const state = stateOf(trial)
    const { signal } = this.#closing
    let known = state.contents
    const look = async () => {
      await state.refresh()
      const answer = state.contents
      return answer === known && !state.ended ? { missing: 'something new', present: '' } : { answer }
    }
    try {
      while (!state.ended) {
        known = await waitFor(state.access.store, look, {
          timeoutMs: Number.MAX_SAFE_INTEGER,
          pollMs: this.#options.pollMs,
          signal,
        })
        this.trialVersion++
        this.#isKept = state.ended
        this.#changed()
      }
      this.#isKept = true
    } catch (error) {
      if (!signal.aborted) this.error = error
    }
  }

  async #judge(trial: Trial): Promise<void> {
    const { pollMs } = this.#options
    // Requests come first, because rules read the whole trial.
    while (this.#looks > 0 || performance.now() - this.#lookedAt < QUIET_MS) {
      await sleep(QUIET_MS / 4, undefined, { ref: false })
      if (this.#closing.signal.aborted) return
    }
    const end = await BACKGROUND.take(this.#closing.signal).catch(() => null)
    if (end === null) return
    this.judging = await Judging.of(trial)
    const options = { ...this.#reading, pollMs, end }
    await judgeOn(this.judging, options, isNews => this.#changedSoon(isNews ? TELL_MS : PROGRESS_MS))
    this.#isJudged = true
    if (!this.#closing.signal.aborted) this.#changed()
  }

  #changed(): void {
    this.#version++
    this.#toldAt = performance.now()
    clearTimeout(this.#telling)
    this.#telling = undefined
    const { change } = this
    for (const listener of this.#listeners) listener(change)
  }

  #changedSoon(ms: number): void {
    if (this.#telling !== undefined) return
    const wait = Math.max(0, this.#toldAt + ms - performance.now())
    this.#telling = setTimeout(() => this.#changed(), wait)
  }

  async #bones(): Promise<{ readonly skeleton: Skeleton; readonly kinds: readonly Kind[]; readonly version: number }> {
    const trial = await this.open()
    const version = this.#version
    if (this.#skeleton?.version === version) return this.#skeleton
    const skeleton = await Skeleton.of(trial, {})
    this.#skeleton = { version, skeleton, kinds: skeleton.tensors.map(kindsOf(trial)) }
    return this.#skeleton
  }

  /** The view of the trial without any number. */
  view(): Promise<TrialView & { readonly version: number }> {
    return this.#look(() => this.#view())
  }

  async #view(): Promise<TrialView & { readonly version: number }> {
    const trial = await this.open()
    await this.#describe(trial)
    const { skeleton, kinds, version } = await this.#bones()
    const { steps, mode, modeStep, workers, series, states, tensors } = skeleton
    const none = { dtype: null, shape: null }
    return {
      version,
      ...identityOf(trial),
      steps,
      mode,
      modeStep,
      workers,
      tensors: tensors.map((name, i) => ({ name, kind: kinds[i]!, ...(this.#descriptions.get(name) ?? none) })),
      series,
      states: packed(states),
      ...UNREAD,
      hasClasses: labelNames(trial) !== null,
      hasUnits: unitTensors(tensors).length > 0,
      ...(this.judging ? findingsOf(this.judging, skeleton) : unjudged(this.#options.judges ? 'waiting' : 'off')),
      problems: [...new Set([...problemLines(trial.problems), ...(this.judging?.problems.lines ?? [])])],
      values: states.reduce((sum, state) => sum + state, 0),
      readBytes: 0,
    }
  }

  /** Reads the missing dtypes and shapes of tensors. */
  async #describe(trial: Trial): Promise<void> {
    const names = trial.tensorNames()
    if (names.length > MAX_DESCRIBED || names.every(name => this.#descriptions.has(name))) return
    const { threads, memory } = this.#options
    const { tensors } = await trial.summary({ threads, memory })
    for (const { name, dtype, shape } of tensors) this.#descriptions.set(name, { dtype, shape })
  }

  /** A statistic of the tensors in a scope at all steps. Only steps that were not read before are read. */
  column(name: ServedStatistic, scope: Scope): Promise<ScopedColumn> {
    return this.#look(async () => {
      const trial = await this.open()
      return this.#columns.column(name, scope, async () => ({
        trial,
        updates: this.judging?.updates ?? [],
        ...(await this.#bones()),
      }))
    })
  }

  /** A part of a page that is made of values; null or empty if the trial has none. */
  async part<K extends keyof typeof PARTS>(name: K, signal: AbortSignal): Promise<Part<K>> {
    const trial = await this.open()
    await this.#describe(trial)
    const { skeleton } = await this.#bones()
    const shapeOf = (tensor: string) => this.#descriptions.get(tensor)?.shape ?? null
    return PARTS[name](trial, { ...this.#reading, signal }, skeleton, shapeOf) as Promise<Part<K>>
  }

  /** A tensor's samples as points of a plane. @throws as `embeddingOf` */
  async embedding(options: EmbeddingOptions, signal: AbortSignal): Promise<EmbeddingView> {
    const trial = await this.open()
    const { skeleton } = await this.#bones()
    return embeddingOf(trial, options, { ...this.#reading, signal }, skeleton)
  }

  /** The distributions of a tensor at some of its steps, for each worker. */
  async ridges(tensor: string): Promise<readonly RidgeView[]> {
    const trial = await this.open()
    const { skeleton } = await this.#bones()
    return ridgesOf(trial, skeleton, tensor, this.#reading)
  }
}

/** Judges steps as they come. @param onProgress gets true if there are more findings */
async function judgeOn(
  judging: Judging,
  options: {
    readonly signal: AbortSignal
    readonly pollMs: number
    readonly threads?: number | undefined
    readonly memory?: number | undefined
    /** Ends the turn; called once all present steps have been judged. */
    readonly end: () => void
  },
  onProgress: (isNews: boolean) => void,
): Promise<void> {
  let known = 0
  const { end, ...reading } = options
  const tell = () => {
    if (judging.judged.state === 'done') end()
    const count = judging.updates.length + judging.findingCount
    onProgress(count > known)
    known = count
  }
  try {
    await judging.run({ ...reading, follow: true, timeoutMs: Number.MAX_SAFE_INTEGER, onProgress: tell })
  } catch (error) {
    if (!options.signal.aborted) judging.problems.add(error instanceof Error ? error : new Error(String(error)))
  } finally {
    end()
  }
}
