/** The pairs of tensors of two runs, or of two workers, that are compared. */

import { entryOf } from '../base/maps.js'
import { inTurns, sortedInTurns } from '../base/turns.js'
import type { Worker } from '../base/types.js'
import { recordsInOrder } from '../scan/catalog/record-order.js'
import type { WorkerStep } from '../scan/catalog/worker-steps.js'
import { type ScanSelection, selectItems } from '../trial/scan-selection.js'
import { stateOf, type Trial } from '../trial/trial.js'
import { aliasesOf, type NameAliases } from './names/aliases.js'
import { type NamePattern, namePatterns, namesInFirst, type TensorMap } from './names/tensor-map.js'
import type { RecordPlaceInTime } from './records.js'

/** One side of a pair: a worker's tensor, or the shards of several workers, put together along an axis. */
export interface Side {
  readonly workers: readonly Worker[]
  readonly axis: number
}

/** Two that are compared. One that a run lacks is undefined. */
export interface Paired {
  /** The place in the first run. */
  readonly place: RecordPlaceInTime
  /** In the order of execution. */
  readonly rank: number
  readonly otherTensor: string
  readonly otherWorker: string
  readonly a: Side | undefined
  readonly b: Side | undefined
}

/** The axis along which tensors are split among workers, by names in the first run, or patterns of whole ones. */
export type Partition = Readonly<Record<string, number>>

/** The requested tensors of workers at a step. */
export type WantedTensors = ReadonlyMap<WorkerStep, readonly string[]>

export interface Pairing {
  /** The runs; the same twice where workers of one are compared. */
  readonly a: Trial
  readonly b: Trial
  /** The step of the second run that is compared with a step of the first. */
  stepInB(step: number): number
  /** The step of the first run, where each run is one checkpoint, and one of them has a log of other steps, which is not compared; else null. */
  readonly checkpointStep: number | null
  /** Names that match once prefixes of wrappers are taken off; null: none do. */
  readonly aliases: NameAliases | null
  /** In the order of execution: by their places in it, then by workers. */
  pairsAt(step: number, wanted: WantedTensors): Promise<Paired[]>
  /** The tensors of workers that the second run has at a step besides. */
  onlyInB(step: number, pairs: readonly Paired[]): readonly Paired[]
}

/** The selected tensors of a run, by step. @param others the names of tensors that are left out */
export function wantedOf(
  trial: Trial,
  selection: ScanSelection,
  others?: ReadonlySet<string>,
): ReadonlyMap<number, WantedTensors> {
  const byStep = new Map<number, Map<WorkerStep, string[]>>()
  for (const { workerStep, saved } of selectItems(stateOf(trial), trial.name, selection)) {
    if (saved === null || others?.has(saved.tensor)) continue
    const ofStep = byStep.get(workerStep.step) ?? new Map<WorkerStep, string[]>()
    byStep.set(workerStep.step, ofStep)
    entryOf(ofStep, workerStep, () => []).push(saved.tensor)
  }
  return byStep
}

/** The selected tensors of the first run that are compared. */
export function wantedBy({ a, checkpointStep }: Pairing, selection: ScanSelection): ReadonlyMap<number, WantedTensors> {
  return wantedOf(a, selection, checkpointStep === null ? undefined : loggedNames(a))
}

/** Tensors of two runs, by their workers and names, or by a map that may lead from the names of either to those of the other. */
export class RunPairing implements Pairing {
  #size = 0
  #namesInB: ReadonlyMap<string, string> = new Map()
  #aliases: NameAliases | null = null
  #onlySteps: readonly [number | null, number | null] = [null, null]

  /** @param byNumber true for what was logged, which has steps of its own */
  constructor(
    readonly a: Trial,
    readonly b: Trial,
    protected readonly map: TensorMap,
    protected readonly byNumber = false,
  ) {}

  get aliases(): NameAliases | null {
    this.#match()
    return this.#aliases
  }

  /** The name in the second run of a tensor of the first. */
  nameInB(name: string): string {
    this.#match()
    return this.#namesInB.get(name) ?? name
  }

  /** A step of the same number. Where each run has one step, or is one checkpoint whatever was logged beside it, this one. */
  stepInB(step: number): number {
    this.#match()
    const [inA, inB] = this.#onlySteps
    return inA === step && inB !== null ? inB : step
  }

  get checkpointStep(): number | null {
    this.#match()
    const [inA, inB] = this.#onlySteps
    return inB === null || this.#haveOneStep ? null : inA
  }

  get #haveOneStep(): boolean {
    return [this.a, this.b].every(trial => stateOf(trial).catalog.steps.length === 1)
  }

  /** Matches names and steps. A run that grows may come to have more of them. */
  #match(): void {
    const [ofA, ofB] = [stateOf(this.a).catalog, stateOf(this.b).catalog]
    const size = ofA.names.length + ofB.names.length + ofA.steps.length + ofB.steps.length
    if (size === this.#size) return
    this.#size = size
    const isByNumber = this.byNumber && !this.#haveOneStep
    this.#onlySteps = isByNumber ? [null, null] : [onlyStep(this.a), onlyStep(this.b)]
    const [areA, areB] = [new Set(ofA.names), new Set(ofB.names)]
    // A pattern of one direction may match names of the other run, too: what leads to no name means nothing.
    const backwards = [...namesInFirst(this.map, ofB.names)].filter(([inA]) => areA.has(inA))
    const forwards = [...namesInFirst(this.map, ofA.names)].filter(([inB]) => areB.has(inB))
    const mapped = new Map([...backwards, ...forwards.map(([inB, inA]) => [inA, inB] as const)])
    const taken = new Set(ofA.names.map(name => mapped.get(name) ?? name))
    this.#aliases = aliasesOf(
      ofA.names.filter(name => !areB.has(mapped.get(name) ?? name)),
      ofB.names.filter(name => !taken.has(name)),
    )
    this.#namesInB = new Map([...(this.#aliases?.names ?? []), ...mapped])
  }

  async pairsAt(step: number, wanted: WantedTensors): Promise<Paired[]> {
    const [inA, inB] = [savedAt(this.a, step), savedAt(this.b, this.stepInB(step))]
    const isSingle = inA.length === 1 && inB.length === 1
    const pairs: Paired[] = []
    for (const [workerStep, names] of wanted) {
      const { worker } = workerStep
      const other = isSingle ? inB[0] : inB.find(saved => saved.worker === worker)
      const [a, b] = [sideOf([workerStep]), other && sideOf([other])]
      await inTurns(names, tensor => {
        const otherTensor = this.nameInB(tensor)
        const { place, rank } = placeOf(workerStep, tensor)
        const isInB = other?.tensors.has(otherTensor) === true
        pairs.push({
          place,
          rank,
          otherTensor,
          otherWorker: other?.worker ?? worker,
          a: workerStep.tensors.has(tensor) ? a : undefined,
          b: isInB ? b : undefined,
        })
      })
    }
    return inOrder(pairs)
  }

  onlyInB(step: number, pairs: readonly Paired[]): readonly Paired[] {
    const paired = new Map<string, Set<string>>()
    for (const { otherWorker, otherTensor } of pairs) {
      const ofWorker = paired.get(otherWorker) ?? new Set()
      paired.set(otherWorker, ofWorker.add(otherTensor))
    }
    return savedAt(this.b, this.stepInB(step)).flatMap(saved => {
      const ofWorker = paired.get(saved.worker)
      const names = [...saved.tensors.keys()].filter(name => ofWorker?.has(name) !== true)
      return names.map(name => aloneInB(saved, name, sideOf([saved])))
    })
  }
}

/** Tensors of each worker beside those of the first that has them. */
export class WorkerPairing implements Pairing {
  readonly a: Trial
  readonly b: Trial
  readonly aliases = null
  readonly checkpointStep = null

  constructor(trial: Trial) {
    this.a = trial
    this.b = trial
  }

  stepInB(step: number): number {
    return step
  }

  async pairsAt(_step: number, wanted: WantedTensors): Promise<Paired[]> {
    const references = new Map<string, Worker>()
    const pairs: Paired[] = []
    for (const workerStep of byWorker(wanted.keys())) {
      const a = sideOf([workerStep])
      await inTurns(wanted.get(workerStep)!, tensor => {
        const reference = references.get(tensor)
        if (reference === undefined) references.set(tensor, workerStep.worker)
        else {
          const b = { workers: [reference], axis: 0 }
          pairs.push({ ...placeOf(workerStep, tensor), otherTensor: tensor, otherWorker: reference, a, b })
        }
      })
    }
    return inOrder(pairs)
  }

  onlyInB(): readonly Paired[] {
    return []
  }
}

/** Tensors of two runs of different layouts: those that are split, put together; of the others the copy of the first worker. */
export class UnifiedPairing extends RunPairing {
  readonly #partition: readonly NamePattern<number>[]

  constructor(a: Trial, b: Trial, map: TensorMap, partition: Partition, byNumber = false) {
    super(a, b, map, byNumber)
    this.#partition = namePatterns(partition)
  }

  override async pairsAt(step: number, wanted: WantedTensors): Promise<Paired[]> {
    const inA = byWorker(wanted.keys())
    const inB = byWorker(savedAt(this.b, this.stepInB(step)))
    const seen = new Set<string>()
    const pairs: Paired[] = []
    for (const workerStep of inA) {
      await inTurns(wanted.get(workerStep)!, tensor => {
        if (seen.has(tensor)) return
        seen.add(tensor)
        const otherTensor = this.nameInB(tensor)
        const [a, b] = [this.#sideOf(tensor, inA), this.#sideOf(otherTensor, inB, tensor)]
        const place = placeOf(workerStep, tensor)
        pairs.push({ ...place, otherTensor, otherWorker: b?.workers[0] ?? workerStep.worker, a, b })
      })
    }
    return inOrder(pairs)
  }

  override onlyInB(step: number, pairs: readonly Paired[]): readonly Paired[] {
    const seen = new Set(pairs.map(({ otherTensor }) => otherTensor))
    const inB = byWorker(savedAt(this.b, this.stepInB(step)))
    return inB.flatMap(saved => {
      const names = [...saved.tensors.keys()].filter(name => !seen.has(name) && seen.add(name))
      return names.map(name => aloneInB(saved, name, this.#sideOf(name, inB)))
    })
  }

  /** @param inA the name in the first run, by which the partition has it */
  #sideOf(tensor: string, saved: readonly WorkerStep[], inA = tensor): Side | undefined {
    const axis = this.#partition.find(({ pattern, regex }) => pattern === inA || regex.test(inA))?.value
    const workers = saved.filter(({ tensors }) => tensors.has(tensor))
    return sideOf(workers, axis)
  }
}

/** The only step of a run that has tensors besides logged numbers; null: there are several. */
export function onlyStep(trial: Trial): number | null {
  const { steps } = stateOf(trial).catalog
  if (steps.length < 2) return steps.numberAt(0) ?? null
  if (trial.checkpoint === null) return null
  const logged = loggedNames(trial)
  let only: number | null = null
  for (const step of trial.steps({ showIncompleteSteps: true })) {
    if (savedAt(trial, step).every(({ tensors }) => [...tensors.keys()].every(name => logged.has(name)))) continue
    if (only !== null) return null
    only = step
  }
  return only
}

/** The numbers that a Trainer logged beside its checkpoints. */
export function loggedNames(trial: Trial): ReadonlySet<string> {
  return new Set(trial.checkpoint === null ? [] : trial.collections().get('scalars')?.members)
}

function savedAt(trial: Trial, step: number): readonly WorkerStep[] {
  return [...stateOf(trial).catalog.atStep(step)]
}

function aloneInB({ step, mode, modeStep, worker }: WorkerStep, tensor: string, b: Side | undefined): Paired {
  const place = { step, mode, modeStep, tensor, worker }
  return { place, rank: Number.POSITIVE_INFINITY, otherTensor: tensor, otherWorker: worker, a: undefined, b }
}

function placeOf(workerStep: WorkerStep, tensor: string): Pick<Paired, 'place' | 'rank'> {
  const { step, mode, modeStep, worker } = workerStep
  const rank = recordsInOrder(workerStep).get(tensor) ?? Number.POSITIVE_INFINITY
  return { place: { step, mode, modeStep, tensor, worker }, rank }
}

/** The side of those who have a tensor: of all of them if it is split along an axis, or else of the first; undefined: nobody has it. */
function sideOf(saved: readonly WorkerStep[], axis?: number): Side | undefined {
  const workers = saved.map(({ worker }) => worker)
  if (workers.length === 0) return undefined
  return axis === undefined ? { workers: workers.slice(0, 1), axis: 0 } : { workers, axis }
}

function inOrder(pairs: readonly Paired[]): Promise<Paired[]> {
  return sortedInTurns(pairs, (x, y) => x.rank - y.rank || compareNames(x.place.worker, y.place.worker))
}

function byWorker(saved: Iterable<WorkerStep>): readonly WorkerStep[] {
  return [...saved].sort((x, y) => compareNames(x.worker, y.worker))
}

/** worker_10 comes after worker_2. */
const { compare: compareNames } = new Intl.Collator('en', { numeric: true })
