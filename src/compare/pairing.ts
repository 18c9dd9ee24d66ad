/** The pairs of tensors of two runs, or of two workers, that are compared. */

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

/** The selected tensors of a run, by step. */
export function wantedOf(trial: Trial, selection: ScanSelection): ReadonlyMap<number, WantedTensors> {
  const byStep = new Map<number, Map<WorkerStep, string[]>>()
  for (const { workerStep, saved } of selectItems(stateOf(trial), trial.name, selection)) {
    if (saved === null) continue
    const ofStep = byStep.get(workerStep.step) ?? new Map<WorkerStep, string[]>()
    byStep.set(workerStep.step, ofStep)
    const names = ofStep.get(workerStep)
    if (names) names.push(saved.tensor)
    else ofStep.set(workerStep, [saved.tensor])
  }
  return byStep
}

/** The selected tensors of the first run that are compared. */
export function wantedBy({ a, checkpointStep }: Pairing, selection: ScanSelection): ReadonlyMap<number, WantedTensors> {
  const selected = wantedOf(a, selection)
  return checkpointStep === null ? selected : withoutLogged(selected, loggedNames(a))
}

export function withoutLogged(
  wanted: ReadonlyMap<number, WantedTensors>,
  logged: ReadonlySet<string>,
): ReadonlyMap<number, WantedTensors> {
  const unpaired = new Map<number, WantedTensors>()
  for (const [step, workers] of wanted) {
    const others = [...workers].map(([worker, names]) => [worker, names.filter(name => !logged.has(name))] as const)
    const some = others.filter(([, names]) => names.length > 0)
    if (some.length > 0) unpaired.set(step, new Map(some))
  }
  return unpaired
}

/** The names of one run in the other, by a map that may lead from either to the other. */
export class NamePairs {
  readonly #map: TensorMap
  readonly #a: Trial
  readonly #b: Trial
  #key = ''
  #inB: ReadonlyMap<string, string> = new Map()
  aliases: NameAliases | null = null

  constructor(a: Trial, b: Trial, map: TensorMap) {
    this.#a = a
    this.#b = b
    this.#map = map
  }

  /** The name in the second run of a tensor of the first. */
  inB(name: string): string {
    const [ofA, ofB] = [stateOf(this.#a).catalog.names, stateOf(this.#b).catalog.names]
    // A run that grows may come to have more of them.
    const key = `${ofA.length} ${ofB.length}`
    if (key !== this.#key) {
      this.#key = key
      const [areA, areB] = [new Set(ofA), new Set(ofB)]
      // A pattern of one direction may match names of the other run, too: what leads to no name means nothing.
      const backwards = [...namesInFirst(this.#map, ofB)].filter(([inA]) => areA.has(inA))
      const forwards = [...namesInFirst(this.#map, ofA)].filter(([inB]) => areB.has(inB))
      const mapped = new Map([...backwards, ...forwards.map(([inB, inA]) => [inA, inB] as const)])
      const taken = new Set(ofA.map(name => mapped.get(name) ?? name))
      this.aliases = aliasesOf(
        ofA.filter(name => !areB.has(mapped.get(name) ?? name)),
        ofB.filter(name => !taken.has(name)),
      )
      this.#inB = new Map([...(this.aliases?.names ?? []), ...mapped])
    }
    return this.#inB.get(name) ?? name
  }
}

/** Tensors of two runs, by their names and workers. */
export class RunPairing implements Pairing {
  protected readonly names: NamePairs
  readonly #steps: StepPairs

  constructor(
    readonly a: Trial,
    readonly b: Trial,
    map: TensorMap,
    byNumber = false,
  ) {
    this.names = new NamePairs(a, b, map)
    this.#steps = new StepPairs(a, b, byNumber)
  }

  get aliases(): NameAliases | null {
    return this.names.aliases
  }

  stepInB(step: number): number {
    return this.#steps.inB(step)
  }

  get checkpointStep(): number | null {
    return this.#steps.checkpoint
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
        const otherTensor = this.names.inB(tensor)
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
        const otherTensor = this.names.inB(tensor)
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

/** Steps of two runs: those of one number. Where each run has one step, or is one checkpoint whatever was logged beside it, these two. */
class StepPairs {
  readonly #a: Trial
  readonly #b: Trial
  readonly #byNumber: boolean
  #key = ''
  #only: readonly [number, number] | null = null

  /** @param byNumber true for what was logged, which has steps of its own */
  constructor(a: Trial, b: Trial, byNumber: boolean) {
    this.#a = a
    this.#b = b
    this.#byNumber = byNumber
  }

  get checkpoint(): number | null {
    return this.#pair()?.[0] ?? null
  }

  inB(step: number): number {
    const [stepsA, stepsB] = [stateOf(this.#a).catalog.steps, stateOf(this.#b).catalog.steps]
    if (stepsA.length === 1 && stepsB.length === 1) return stepsB.numberAt(0)!
    const only = this.#pair()
    return only?.[0] === step ? only[1] : step
  }

  #pair(): readonly [number, number] | null {
    if (this.#byNumber) return null
    const lengths = [this.#a, this.#b].map(trial => stateOf(trial).catalog.steps.length)
    // A run that grows gets more steps.
    const key = lengths.join(' ')
    if (key !== this.#key) {
      this.#key = key
      const [inA, inB] = lengths.join() === '1,1' ? [null, null] : [onlyStep(this.#a), onlyStep(this.#b)]
      this.#only = inA === null || inB === null ? null : [inA, inB]
    }
    return this.#only
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
