/** What a trial holds and where it lies: everything its index files tell. Immutable. */

import type { TrialscanError } from '../errors.js'
import { type IndexFile, modeInError, type SavedShape, type TensorLocation } from '../format/index-file.js'
import { parseReductionName } from '../format/reduction-name.js'
import type { RecordPlace, RowPlace } from '../job/plan/coalesce.js'
import { type GlobalStep, MODES, type Mode, type ModeStep, type ReductionName, type Worker } from '../types.js'
import { type Completeness, type Step, Steps } from './steps.js'
import { inTurns } from './turns.js'

/** What one worker saved of one tensor at one step. */
export interface SavedTensor {
  readonly tensor: string
  /** Where the value lies; null if only reductions or the shape were saved. */
  readonly value: TensorLocation | null
  /** Reductions the hook computed and saved. */
  readonly reductions: ReadonlyMap<ReductionName, TensorLocation>
  readonly shape: SavedShape | null
}

/** What one worker saved at one step. */
export interface WorkerStep {
  readonly step: GlobalStep
  readonly worker: Worker
  readonly mode: Mode
  readonly modeStep: ModeStep
  /** Relative to the trial; empty where only shapes were saved. */
  readonly eventFile: string
  /** In the order of the index file. */
  readonly tensors: ReadonlyMap<string, SavedTensor>
  /** Why the index file could not be read; `tensors` is then empty. */
  readonly error: TrialscanError | null
  /** Whether the trial is Tornasole's, which called float16 int32. */
  readonly isTornasole: boolean
}

export interface IndexEntry {
  /** Relative to the trial. */
  readonly path: string
  readonly step: GlobalStep
  readonly worker: Worker
  readonly content: IndexFile | TrialscanError
}

const NO_REDUCTIONS: ReadonlyMap<ReductionName, TensorLocation> = new Map()

export class Catalog {
  /** By global step, then worker. */
  readonly workerSteps: readonly WorkerStep[]
  /** Sorted. */
  readonly workers: readonly Worker[]
  readonly steps: Steps
  #byTensor: TensorSteps | undefined
  #names: readonly string[] | undefined

  /**
   * @param entries the index files, in any order
   * @param completeness `numWorkers`: null stands for as many as there are; `isTornasole`: who wrote the trial
   */
  static async of(
    entries: readonly IndexEntry[],
    {
      numWorkers,
      isTornasole,
      ...completeness
    }: Omit<Completeness, 'numWorkers'> & { readonly numWorkers: number | null; readonly isTornasole: boolean },
  ): Promise<Catalog> {
    const workerSteps: WorkerStep[] = []
    const workers = new Set<Worker>()
    await inTurns(entries, entry => {
      workers.add(entry.worker)
      workerSteps.push(workerStepOf(entry, isTornasole))
    })
    workerSteps.sort(compareWorkerSteps)
    const found: Step[] = []
    let first = 0
    let end = 0
    await inTurns(workerSteps, ({ step }) => {
      end++
      if (workerSteps[end]?.step === step) return
      found.push(stepOf(workerSteps.slice(first, end), found.at(-1)?.workers))
      first = end
    })
    const steps = await Steps.of(found, { ...completeness, numWorkers: numWorkers ?? workers.size })
    return new Catalog(workerSteps, [...workers].sort(), steps)
  }

  private constructor(workerSteps: readonly WorkerStep[], workers: readonly Worker[], steps: Steps) {
    this.workers = workers
    this.steps = steps
    // An index file that can't be read does not tell its mode; those of other workers do if they agree.
    const hasBroken = workerSteps.some(({ error }) => error !== null)
    this.workerSteps = hasBroken
      ? workerSteps.map(workerStep => {
          const { mode, modeStep, apart } = steps.get(workerStep.step)!
          return hasMode(workerStep) || apart ? workerStep : { ...workerStep, mode, modeStep }
        })
      : workerSteps
  }

  /** What was saved of each tensor, in the order of steps and workers. Names are in the order they first come. */
  get byTensor(): TensorSteps {
    this.#byTensor ??= namedBy(this.workerSteps)
    return this.#byTensor
  }

  /** The names of all saved tensors, sorted. */
  get names(): readonly string[] {
    this.#names ??= [...this.byTensor.keys()].sort()
    return this.#names
  }

  /** What workers wrote at a step, in the order of the workers' names. */
  atStep(globalStep: number): readonly WorkerStep[] {
    let low = 0
    let high = this.workerSteps.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.workerSteps[middle]!.step < globalStep) low = middle + 1
      else high = middle
    }
    let end = low
    while (end < this.workerSteps.length && this.workerSteps[end]!.step === globalStep) end++
    return this.workerSteps.slice(low, end)
  }

  /**
   * What workers wrote as the step of that number: a global step for GLOBAL, else a step of the mode. In the order of the
   * workers' names; of one that wrote several global steps as that, the last first.
   */
  at(number: number, mode: Mode): readonly WorkerStep[] {
    const steps = this.steps.at(number, mode)
    const found = steps.flatMap(({ globalStep }) =>
      mode === 'GLOBAL'
        ? this.atStep(globalStep)
        : this.atStep(globalStep).filter(saved => saved.mode === mode && saved.modeStep === number),
    )
    return steps.length > 1 ? inOrderOfWorkers(found) : found
  }
}

/** By worker; those of one remain in their order. */
export function inOrderOfWorkers(workerSteps: readonly WorkerStep[]): WorkerStep[] {
  return [...workerSteps].sort((a, b) => (a.worker < b.worker ? -1 : a.worker > b.worker ? 1 : 0))
}

function workerStepOf({ step, worker, content }: IndexEntry, isTornasole: boolean): WorkerStep {
  const error = content instanceof Error ? content : null
  const told = content instanceof Error ? modeInError(content) : content
  const ofMode = told === null || told.modeStep < 0 ? { mode: 'GLOBAL' as const, modeStep: step } : told
  // What comes from a thread has a string of its own in each of a million.
  const mode = MODES.find(known => known === ofMode.mode)!
  const modeStep = ofMode.modeStep as number as ModeStep
  if (content instanceof Error) {
    return { step, worker, mode, modeStep, eventFile: '', tensors: new Map(), error, isTornasole }
  }
  const { eventFile, tensors: locations, shapes } = content
  const tensors = tensorsOf(locations, shapes)
  return { step, worker, mode, modeStep, eventFile: eventFile ?? '', tensors, error, isTornasole }
}

type Tensors = ReadonlyMap<string, SavedTensor>

/** Steps whose index files have the same payload share what is made of it. */
const grouped = new WeakMap<
  readonly TensorLocation[],
  { readonly shapes: readonly SavedShape[]; readonly tensors: Tensors }
>()

function tensorsOf(locations: readonly TensorLocation[], shapes: readonly SavedShape[]): Tensors {
  const known = grouped.get(locations)
  if (known?.shapes === shapes) return known.tensors
  const tensors = groupByTensor(locations, shapes)
  grouped.set(locations, { shapes, tensors })
  return tensors
}

/** A tensor of which only the value was saved, as of most: one object is both it and where it lies. There may be a million. */
class SavedValue implements SavedTensor, TensorLocation {
  readonly name: string
  readonly startByte: number
  readonly byteLength: number

  constructor({ name, startByte, byteLength }: TensorLocation) {
    this.name = name
    this.startByte = startByte
    this.byteLength = byteLength
  }

  get tensor(): string {
    return this.name
  }

  get value(): TensorLocation {
    return this
  }

  get reductions(): ReadonlyMap<ReductionName, TensorLocation> {
    return NO_REDUCTIONS
  }

  get shape(): null {
    return null
  }
}

/** Brings a tensor's value, saved reductions and shape together under its name. */
function groupByTensor(locations: readonly TensorLocation[], shapes: readonly SavedShape[]): Tensors {
  const tensors = new Map<string, SavedTensor>()
  const add = (tensor: string, more: Partial<SavedTensor>): void => {
    const { value = null, reductions = NO_REDUCTIONS, shape = null } = tensors.get(tensor) ?? {}
    tensors.set(tensor, { tensor, value, reductions, shape, ...more })
  }
  for (const location of locations) {
    const { name, eventFile } = location
    const saved = parseReductionName(name)
    if (saved !== null) {
      const reductions = new Map(tensors.get(saved.tensor)?.reductions).set(saved.reduction, location)
      add(saved.tensor, { reductions })
    } else if (eventFile === undefined && !tensors.has(name)) tensors.set(name, new SavedValue(location))
    else add(name, { value: location })
  }
  for (const shape of shapes) add(shape.name, { shape })
  return tensors
}

/** The steps of each tensor, by its name. */
export type TensorSteps = Pick<
  ReadonlyMap<string, readonly WorkerStep[]>,
  'get' | 'has' | 'keys' | typeof Symbol.iterator
>

/** The steps of tensors that were all saved at all of them: no map of a million names is made beside that of the steps. */
class SavedTogether implements TensorSteps {
  readonly #tensors: Tensors
  readonly #workerSteps: readonly WorkerStep[]

  constructor(tensors: Tensors, workerSteps: readonly WorkerStep[]) {
    this.#tensors = tensors
    this.#workerSteps = workerSteps
  }

  get(name: string): readonly WorkerStep[] | undefined {
    return this.has(name) ? this.#workerSteps : undefined
  }

  has(name: string): boolean {
    return this.#tensors.has(name)
  }

  keys(): MapIterator<string> {
    return this.#tensors.keys()
  }

  *[Symbol.iterator](): MapIterator<[string, readonly WorkerStep[]]> {
    for (const name of this.keys()) yield [name, this.#workerSteps]
  }
}

/** Steps that share what they saved, behind those that a name was in before; the list of all of them is made once. */
interface History {
  readonly before: History | undefined
  readonly own: readonly WorkerStep[]
  all: readonly WorkerStep[] | undefined
}

/** The steps of each name. Names that were saved together share the list: a million of them have one. */
function namedBy(workerSteps: readonly WorkerStep[]): TensorSteps {
  const groups = new Map<Tensors, WorkerStep[]>()
  for (const workerStep of workerSteps) {
    const group = groups.get(workerStep.tensors)
    if (group === undefined) groups.set(workerStep.tensors, [workerStep])
    else group.push(workerStep)
  }
  const [only] = groups
  if (only && groups.size === 1) return new SavedTogether(...only)
  const byName = new Map<string, History>()
  for (const [tensors, own] of groups) {
    const next = new Map<History | undefined, History>()
    for (const name of tensors.keys()) {
      const before = byName.get(name)
      let history = next.get(before)
      if (history === undefined) {
        history = { before, own, all: undefined }
        next.set(before, history)
      }
      byName.set(name, history)
    }
  }
  const named: Map<string, History | readonly WorkerStep[]> = byName
  for (const [name, history] of byName) named.set(name, stepsOf(history))
  return named as Map<string, readonly WorkerStep[]>
}

function stepsOf(history: History): readonly WorkerStep[] {
  if (history.all === undefined) {
    const parts: (readonly WorkerStep[])[] = []
    for (let part: History | undefined = history; part; part = part.before) parts.push(part.own)
    history.all = parts.length === 1 ? parts[0]! : parts.reverse().flat().sort(compareWorkerSteps)
  }
  return history.all
}

/** Whether it stands in the index file. */
export function hasMode({ error }: WorkerStep): boolean {
  return error === null || modeInError(error) !== null
}

/**
 * A step from what each worker wrote of it. Of an index file that can't be read only the global step is known: it is of the
 * mode that the others are of, if they agree.
 * @param lastWorkers those of the step before: most steps share the list
 */
function stepOf(workerSteps: readonly WorkerStep[], lastWorkers: readonly Worker[] | undefined): Step {
  const readable = workerSteps.filter(hasMode)
  const { step: globalStep, mode, modeStep } = readable[0] ?? workerSteps[0]!
  const own = workersOf(workerSteps)
  const isSame = lastWorkers?.length === own.length && own.every((worker, i) => worker === lastWorkers[i])
  const step = { globalStep, mode, modeStep, workers: isSame ? lastWorkers : own }
  if (readable.every(other => other.mode === mode && other.modeStep === modeStep)) return step
  const parts = new Map<string, WorkerStep[]>()
  for (const workerStep of workerSteps) {
    const key = `${workerStep.mode} ${workerStep.modeStep}`
    const part = parts.get(key)
    if (part === undefined) parts.set(key, [workerStep])
    else part.push(workerStep)
  }
  const apart = [...parts.values()].map(part => {
    const { mode, modeStep } = part[0]!
    return { globalStep, mode, modeStep, workers: workersOf(part) }
  })
  return { ...step, apart }
}

/** Each once, sorted. */
export function workersOf(workerSteps: readonly WorkerStep[]): Worker[] {
  return [...new Set(workerSteps.map(({ worker }) => worker))].sort()
}

function compareWorkerSteps(a: WorkerStep, b: WorkerStep): number {
  return a.step - b.step || (a.worker < b.worker ? -1 : a.worker > b.worker ? 1 : 0)
}

/** Where a saved tensor's record lies and what it must be; `row`: that of which it is all. */
export function recordPlace(
  { eventFile, step, isTornasole }: WorkerStep,
  { name, startByte, byteLength, eventFile: own }: TensorLocation,
  row: RowPlace | null = null,
): RecordPlace {
  return { file: own ?? eventFile, tag: name, startByte, byteLength, step, tornasole: isTornasole, row }
}
