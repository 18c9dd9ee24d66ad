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
  /** Names that match once prefixes of wrappers are taken off; null: none do. */
  readonly aliases: NameAliases | null
  /** In the order of execution: by their places in it, then by workers. */
  pairsAt(step: number, wanted: WantedTensors): Promise<Paired[]>
  /** The tensors of workers that the second run has at a step besides. */
  onlyInB(step: number, pairs: readonly Paired[]): readonly RecordPlaceInTime[]
}

/** The selected tensors of a run, by step. */
export function wantedOf(trial: Trial, selection: ScanSelection): ReadonlyMap<number, WantedTensors> {
  const found = new Map<number, Map<WorkerStep, string[]>>()
  for (const { workerStep, saved } of selectItems(stateOf(trial), trial.name, selection)) {
    if (saved === null) continue
    const ofStep = found.get(workerStep.step) ?? new Map<WorkerStep, string[]>()
    found.set(workerStep.step, ofStep)
    const names = ofStep.get(workerStep)
    if (names) names.push(saved.tensor)
    else ofStep.set(workerStep, [saved.tensor])
  }
  return found
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
  readonly #names: NamePairs

  constructor(
    readonly a: Trial,
    readonly b: Trial,
    map: TensorMap,
  ) {
    this.#names = new NamePairs(a, b, map)
  }

  get aliases(): NameAliases | null {
    return this.#names.aliases
  }

  stepInB(step: number): number {
    return stepInB(this.a, this.b, step)
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
        const otherTensor = this.#names.inB(tensor)
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

  onlyInB(step: number, pairs: readonly Paired[]): readonly RecordPlaceInTime[] {
    const paired = new Map<string, Set<string>>()
    for (const { otherWorker, otherTensor } of pairs) {
      const ofWorker = paired.get(otherWorker) ?? new Set()
      paired.set(otherWorker, ofWorker.add(otherTensor))
    }
    return placesAt(this.b, this.stepInB(step), (worker, tensor) => paired.get(worker)?.has(tensor) !== true)
  }
}

/** Tensors of each worker beside those of the first that has them. */
export class WorkerPairing implements Pairing {
  readonly a: Trial
  readonly b: Trial
  readonly aliases = null

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

  onlyInB(): readonly RecordPlaceInTime[] {
    return []
  }
}

/** Tensors of two runs of different layouts: those that are split, put together; of the others the copy of the first worker. */
export class UnifiedPairing implements Pairing {
  readonly #names: NamePairs
  readonly #partition: readonly NamePattern<number>[]

  constructor(
    readonly a: Trial,
    readonly b: Trial,
    map: TensorMap,
    partition: Partition,
  ) {
    this.#names = new NamePairs(a, b, map)
    this.#partition = namePatterns(partition)
  }

  get aliases(): NameAliases | null {
    return this.#names.aliases
  }

  stepInB(step: number): number {
    return stepInB(this.a, this.b, step)
  }

  async pairsAt(step: number, wanted: WantedTensors): Promise<Paired[]> {
    const inA = byWorker(wanted.keys())
    const inB = byWorker(savedAt(this.b, this.stepInB(step)))
    const seen = new Set<string>()
    const pairs: Paired[] = []
    for (const workerStep of inA) {
      await inTurns(wanted.get(workerStep)!, tensor => {
        if (seen.has(tensor)) return
        seen.add(tensor)
        const otherTensor = this.#names.inB(tensor)
        const axis = this.#partition.find(({ pattern, regex }) => pattern === tensor || regex.test(tensor))?.value
        const [a, b] = [
          sideOf(
            inA.filter(({ tensors }) => tensors.has(tensor)),
            axis,
          ),
          sideOf(
            inB.filter(({ tensors }) => tensors.has(otherTensor)),
            axis,
          ),
        ]
        const place = placeOf(workerStep, tensor)
        pairs.push({ ...place, otherTensor, otherWorker: b?.workers[0] ?? workerStep.worker, a, b })
      })
    }
    return inOrder(pairs)
  }

  onlyInB(step: number, pairs: readonly Paired[]): readonly RecordPlaceInTime[] {
    const seen = new Set(pairs.map(({ otherTensor }) => otherTensor))
    return placesAt(this.b, this.stepInB(step), (_, tensor) => !seen.has(tensor) && seen.add(tensor) !== undefined)
  }
}

/** The step in the second run: the same; for two runs of one step each, as checkpoints are, its only one. */
function stepInB(a: Trial, b: Trial, step: number): number {
  const [stepsA, stepsB] = [stateOf(a).catalog.steps, stateOf(b).catalog.steps]
  return stepsA.length === 1 && stepsB.length === 1 ? stepsB.numberAt(0)! : step
}

function savedAt(trial: Trial, step: number): readonly WorkerStep[] {
  return [...stateOf(trial).catalog.atStep(step)]
}

/** The tensors of workers at a step that are wanted. */
function placesAt(
  trial: Trial,
  step: number,
  isWanted: (worker: Worker, tensor: string) => boolean,
): readonly RecordPlaceInTime[] {
  return savedAt(trial, step).flatMap(({ step, mode, modeStep, worker, tensors }) =>
    [...tensors.keys()]
      .filter(tensor => isWanted(worker, tensor))
      .map(tensor => ({ step, mode, modeStep, tensor, worker })),
  )
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
