/** The pairs of tensors of two runs, or of two workers, that are compared. */

import { recordsInOrder } from '../scan/catalog/record-order.js'
import type { WorkerStep } from '../scan/catalog/worker-steps.js'
import type { Inquiry } from '../trial/measure/measure.js'
import type { TensorAtStep } from '../trial/measure/tensor-at-step.js'
import { type ScanSelection, selectItems } from '../trial/scan-selection.js'
import { stateOf, type Trial } from '../trial/trial.js'
import { aliasesOf, type NameAliases } from './names/aliases.js'
import { type NamePattern, namePatterns, namesInFirst, type TensorMap } from './names/tensor-map.js'
import type { RecordPlaceInTime } from './records.js'

/** One side of a pair: a tensor, or the shards of several workers, put together along an axis. */
export interface Side {
  readonly shards: readonly TensorAtStep[]
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
  pairsAt(inquiry: Inquiry, step: number, wanted: WantedTensors): Paired[]
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

  pairsAt(inquiry: Inquiry, step: number, wanted: WantedTensors): Paired[] {
    const otherStep = this.stepInB(step)
    const [tensorsA, tensorsB] = [inquiry.atStep(stateOf(this.a), step), inquiry.atStep(stateOf(this.b), otherStep)]
    const [inA, inB] = [stateOf(this.a).catalog.atStep(step), stateOf(this.b).catalog.atStep(otherStep)]
    const isSingle = inA.length === 1 && inB.length === 1
    const pairs: Paired[] = []
    for (const [workerStep, names] of wanted) {
      const { worker } = workerStep
      const otherWorker = isSingle ? inB[0]!.worker : worker
      for (const tensor of names) {
        const otherTensor = this.#names.inB(tensor)
        const [one, other] = [tensorsA.of(worker)?.get(tensor), tensorsB.of(otherWorker)?.get(otherTensor)]
        const { place, rank } = placeOf(workerStep, tensor)
        pairs.push({ place, rank, otherTensor, otherWorker, a: sideOf(one), b: sideOf(other) })
      }
    }
    return inOrder(pairs)
  }

  onlyInB(step: number, pairs: readonly Paired[]): readonly RecordPlaceInTime[] {
    const paired = new Set(pairs.map(({ otherWorker, otherTensor }) => `${otherWorker}\n${otherTensor}`))
    return placesAt(this.b, this.stepInB(step)).filter(({ worker, tensor }) => !paired.has(`${worker}\n${tensor}`))
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

  pairsAt(inquiry: Inquiry, step: number, wanted: WantedTensors): Paired[] {
    const tensors = inquiry.atStep(stateOf(this.a), step)
    const references = new Map<string, string>()
    const pairs: Paired[] = []
    for (const workerStep of [...wanted.keys()].sort((x, y) => compareNames(x.worker, y.worker))) {
      const { worker } = workerStep
      for (const tensor of wanted.get(workerStep)!) {
        const reference = references.get(tensor)
        if (reference === undefined) references.set(tensor, worker)
        else {
          const [one, other] = [tensors.of(worker)?.get(tensor), tensors.of(reference)?.get(tensor)]
          const { place, rank } = placeOf(workerStep, tensor)
          pairs.push({ place, rank, otherTensor: tensor, otherWorker: reference, a: sideOf(one), b: sideOf(other) })
        }
      }
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

  pairsAt(inquiry: Inquiry, step: number, wanted: WantedTensors): Paired[] {
    const otherStep = this.stepInB(step)
    const workerSteps = [...wanted.keys()].sort((x, y) => compareNames(x.worker, y.worker))
    const tensorsB = inquiry.atStep(stateOf(this.b), otherStep)
    const workersB = stateOf(this.b)
      .catalog.atStep(otherStep)
      .map(({ worker }) => worker)
      .sort(compareNames)
    const tensorsA = inquiry.atStep(stateOf(this.a), step)
    const seen = new Set<string>()
    const pairs: Paired[] = []
    for (const workerStep of workerSteps) {
      for (const tensor of wanted.get(workerStep)!) {
        if (seen.has(tensor)) continue
        seen.add(tensor)
        const otherTensor = this.#names.inB(tensor)
        const axis = this.#partition.find(({ pattern, regex }) => pattern === tensor || regex.test(tensor))?.value
        const shardsA = workerSteps.map(({ worker }) => tensorsA.of(worker)?.get(tensor)).filter(isThere)
        const shardsB = workersB.map(worker => tensorsB.of(worker)?.get(otherTensor)).filter(isThere)
        const { place, rank } = placeOf(workerStep, tensor)
        const [a, b] = [shardsA, shardsB].map(shards =>
          axis === undefined ? sideOf(shards[0]) : shards.length === 0 ? undefined : { shards, axis },
        )
        pairs.push({ place, rank, otherTensor, otherWorker: shardsB[0]?.worker ?? place.worker, a, b })
      }
    }
    return inOrder(pairs)
  }

  onlyInB(step: number, pairs: readonly Paired[]): readonly RecordPlaceInTime[] {
    const seen = new Set(pairs.map(({ otherTensor }) => otherTensor))
    return placesAt(this.b, this.stepInB(step)).filter(({ tensor }) => !seen.has(tensor) && seen.add(tensor))
  }
}

/** The step in the second run: the same; for two runs of one step each, as checkpoints are, its only one. */
function stepInB(a: Trial, b: Trial, step: number): number {
  const [stepsA, stepsB] = [a, b].map(trial => trial.steps({ showIncompleteSteps: true }))
  return stepsA!.length === 1 && stepsB!.length === 1 ? stepsB![0]! : step
}

function placesAt(trial: Trial, step: number): readonly RecordPlaceInTime[] {
  const saved = stateOf(trial).catalog.atStep(step)
  return saved.flatMap(workerStep => [...workerStep.tensors.keys()].map(name => placeOf(workerStep, name).place))
}

function placeOf(workerStep: WorkerStep, tensor: string): Pick<Paired, 'place' | 'rank'> {
  const { step, mode, modeStep, worker } = workerStep
  const rank = recordsInOrder(workerStep).get(tensor) ?? Number.POSITIVE_INFINITY
  return { place: { step, mode, modeStep, tensor, worker }, rank }
}

function sideOf(tensor: TensorAtStep | undefined): Side | undefined {
  return tensor && { shards: [tensor], axis: 0 }
}

function inOrder(pairs: Paired[]): Paired[] {
  return pairs.sort((x, y) => x.rank - y.rank || compareNames(x.place.worker, y.place.worker))
}

/** worker_10 comes after worker_2. */
const { compare: compareNames } = new Intl.Collator('en', { numeric: true })

function isThere<T>(given: T | undefined): given is T {
  return given !== undefined
}
