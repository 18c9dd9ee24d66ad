/** The spread of NaN and infinities: the inputs of each record that has any. */

import { inTurns } from '../../base/turns.js'
import type { GlobalStep, Worker } from '../../base/types.js'
import { recordsInOrder } from '../../scan/catalog/record-order.js'
import { type Kind, kindsOf } from '../../trial/kinds/kinds.js'
import { isGradientOf, layersOf, type Role, roleOf } from '../../trial/kinds/roles.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import {
  isEarlier,
  type NonFiniteClass,
  type NonFiniteKind,
  type NonFiniteRecord,
  type PassedOverflow,
  type RecordPlaceInTime,
} from '../records.js'
import { ReadPlaces } from './read-places.js'

type Found = RecordPlaceInTime & {
  readonly rank: number
  readonly nan: number | null
  readonly infinite: number | null
  readonly kind: NonFiniteKind
}
type Classified = NonFiniteRecord & { readonly rank: number; readonly kind: NonFiniteKind }

/** A tensor of a worker at a step, and its place in the order of execution. */
type At = Pick<Found, 'tensor' | 'worker' | 'step' | 'rank'>

/** The cause of a record: its inputs were finite, or one of them was not. */
interface Cause {
  readonly class: NonFiniteClass
  readonly from: string | null
  readonly fromWorker: Worker | null
  readonly reason: string | null
}

const UNKNOWN: Cause = { class: 'unknown', from: null, fromWorker: null, reason: null }
const PRODUCER: Cause = { class: 'producer', from: null, fromWorker: null, reason: null }

/** The tensors that a worker computed at a step, ascending, by kind. */
type Order = ReadonlyMap<Role['kind'], readonly (readonly [name: string, rank: number])[]>

/** The non-finite records of a worker since its last step without any. */
interface Episode {
  readonly worker: Worker
  readonly records: Found[]
  /** Tensors that were not finite when they were last saved. */
  readonly open: Set<string>
  /** True if all of them are gradients. */
  isOfGradients: boolean
  /** The last step at which there was any. */
  lastStep: GlobalStep
  /** The step of the last record. */
  step: GlobalStep
}

export class Spread {
  readonly #trial: Trial
  readonly #kindOf: (name: string) => Kind
  /** The first record of each tensor of a worker. */
  readonly #first = new Map<string, Found>()
  readonly #episodes = new Map<Worker, Episode>()
  /** Episodes of gradients alone, which ended. */
  readonly #passed: Episode[] = []
  /** The steps at which each tensor of a worker is not finite. */
  readonly #steps = new Map<string, Set<number>>()
  readonly #read: ReadPlaces
  readonly #roles = new Map<string, Role>()
  /** By layer: its inputs, and its parameters. */
  readonly #inputs = new Map<string, string[]>()
  readonly #parameters = new Map<string, string[]>()
  readonly #gradients: (readonly [name: string, of: string])[] = []
  /** The order of the last examined step, by worker. */
  readonly #orders = new Map<Worker, Order>()
  #ordersStep = -1

  /** @param names the tensors that are read; null: all */
  static async of(trial: Trial, names: ReadonlySet<string> | null): Promise<Spread> {
    const spread = new Spread(trial, names)
    await inTurns(stateOf(trial).catalog.names, name => spread.#know(name))
    return spread
  }

  private constructor(trial: Trial, names: ReadonlySet<string> | null) {
    this.#trial = trial
    this.#read = new ReadPlaces(names)
    this.#kindOf = kindsOf(trial)
  }

  #know(name: string): void {
    const role = roleOf(name, this.#kindOf(name))
    this.#roles.set(name, role)
    if (role.kind === 'input') listed(this.#inputs, role.of).push(name)
    if (role.kind === 'gradient') this.#gradients.push([name, role.of])
    if (role.kind === 'parameter') for (const layer of layersOf(name)) listed(this.#parameters, layer).push(name)
  }

  /** A record that has any. Rows come in the order of steps. */
  add(record: Found): void {
    this.#goOn(record)
    const { worker, step, tensor } = record
    this.#read.add(record)
    const episode = this.#episodes.get(worker) ?? {
      worker,
      records: [],
      open: new Set<string>(),
      isOfGradients: true,
      lastStep: step,
      step,
    }
    this.#episodes.set(worker, episode)
    episode.records.push(record)
    episode.open.add(tensor)
    episode.isOfGradients &&= this.#roles.get(tensor)?.kind === 'gradient'
    episode.lastStep = step
    if (!episode.isOfGradients) this.#keep(episode.records.splice(0))
  }

  /** A record that has none. */
  addFinite(place: Pick<Found, 'tensor' | 'worker' | 'step'>): void {
    this.#goOn(place)
    this.#read.add(place)
    this.#episodes.get(place.worker)?.open.delete(place.tensor)
  }

  /** A record that could not be read. */
  addUnreadable(place: Pick<Found, 'tensor' | 'worker' | 'step'>): void {
    this.#read.addUnreadable(place)
  }

  /** Ends a worker's episode if all was finite in the end of an earlier step. */
  #goOn({ worker, step }: Pick<Found, 'worker' | 'step'>): void {
    const episode = this.#episodes.get(worker)
    if (episode === undefined) return
    if (episode.open.size === 0 && step > episode.step) this.#end(episode)
    else episode.step = step
  }

  #end(episode: Episode): void {
    this.#episodes.delete(episode.worker)
    const { isOfGradients, open, records } = episode
    if (isOfGradients && open.size === 0) this.#passed.push(episode)
    else this.#keep(records)
  }

  #keep(records: readonly Found[]): void {
    for (const record of records) {
      const key = keyOf(record)
      const first = this.#first.get(key)
      if (first === undefined || isEarlier(record, first)) this.#first.set(key, record)
      const steps = this.#steps.get(key) ?? new Set<number>()
      this.#steps.set(key, steps.add(record.step))
    }
  }

  /** The position of a tensor among those that its worker computed at the step. */
  rankOf({ tensor, worker, step }: RecordPlaceInTime): number {
    const saved = this.#savedAt(worker, step)
    return (saved && recordsInOrder(saved).get(tensor)) ?? Number.POSITIVE_INFINITY
  }

  /** The workers whose record of a tensor at a step has any, sorted. */
  workersOf({ tensor, step }: Pick<Found, 'tensor' | 'step'>): readonly Worker[] {
    return this.#trial.workersWithData().filter(worker => this.#has(tensor, worker, step))
  }

  /** @param isMixed the precision is mixed: a step whose scaled loss makes gradients overflow is skipped, and the next has a smaller scale */
  trace(isMixed: boolean): {
    readonly first: Classified | null
    readonly later: readonly Classified[]
    readonly chain: readonly Classified[]
    readonly passed: readonly PassedOverflow[]
  } {
    for (const episode of [...this.#episodes.values()]) this.#end(episode)
    if (!isMixed) for (const { records } of this.#passed.splice(0)) this.#keep(records)
    const all = [...this.#first.values()].sort((a, b) => (isEarlier(a, b) ? -1 : 1))
    const classified = all.map((record): Classified => ({ ...record, ...this.#causeOf(record) }))
    const [first = null, ...later] = classified
    const chain = chainOf(classified, name => this.#kindOf(name) === 'losses')
    return { first, later, chain, passed: this.#passed.map(passedOf) }
  }

  #has(tensor: string, worker: Worker, step: number): boolean {
    return this.#steps.get(keyOf({ tensor, worker }))?.has(step) ?? false
  }

  #causeOf(record: Found): Cause {
    const role = this.#roles.get(record.tensor)
    switch (role?.kind) {
      case 'output':
        return this.#ofOutput(record, role.of)
      case 'input':
        return this.#ofInput(record, role.of)
      case 'loss':
        return this.#ofLoss(record)
      case 'gradient':
        return this.#ofGradient(record)
      case 'parameter':
        return this.#ofParameter(record)
      default:
        return UNKNOWN
    }
  }

  /**
   * From the layer's inputs and its parameters, as they were at the step; of a model or a block, from the layers in it. Where none was saved, the
   * output just before it may be what it was given.
   */
  #ofOutput(record: Found, layer: string): Cause {
    const { worker, step } = record
    const inputs = (this.#inputs.get(layer) ?? []).filter(name => this.#wasSaved(name, worker, step))
    const from = [...inputs, ...(this.#parameters.get(layer) ?? [])].find(name => this.#has(name, worker, step))
    if (from !== undefined) return propagator(from, worker)
    const [nearest, ...others] = this.#before(record, 'output')
    const outputs = this.#isBlock(layer) ? [nearest, ...others] : inputs.length === 0 ? [nearest] : []
    const output = outputs.find(name => name !== undefined && this.#has(name, worker, step))
    if (output !== undefined) return propagator(output, worker)
    if (inputs.length === 0 && this.#kindOf(record.tensor) === 'losses') return this.#ofLoss(record)
    const before = outputs.filter(name => name !== undefined)
    const sources = [...inputs, ...(this.#parameters.get(layer) ?? []), ...before]
    return this.#ofFinite(record, sources, inputs.length > 0)
  }

  /** True for a block of layers: names of their parameters begin with its name. */
  #isBlock(layer: string): boolean {
    const parameters = new Set(this.#parameters.get(layer))
    return [...this.#roles].some(
      ([name, { kind }]) =>
        kind === 'parameter' &&
        name.startsWith(layer) &&
        /^[._/]/.test(name.slice(layer.length)) &&
        !parameters.has(name),
    )
  }

  /** The cause of a layer's input: the nearest output before it. */
  #ofInput(record: Found, layer: string): Cause {
    const outputs = this.#before(record, 'output')
    const from = this.#firstOf(record, outputs)
    if (from !== undefined) return propagator(from, record.worker)
    if (outputs.length > 0) return this.#ofFinite(record, outputs, false)
    // Only parameters, or other inputs, were saved of what a loss is given.
    const isOfLoss = /loss/i.test(layer)
    const others = this.#before(record, 'input')
    const sources = isOfLoss ? this.#before(record, 'parameter') : others
    const other = this.#firstOf(record, sources)
    if (other !== undefined) return propagator(other, record.worker)
    // What the model itself is given comes from outside.
    return this.#ofFinite(record, sources, !isOfLoss && others.length === 0)
  }

  /** The cause of a loss: the model's output, which is nearest. */
  #ofLoss(record: Found): Cause {
    const [outputs, parameters] = [this.#before(record, 'output'), this.#before(record, 'parameter')]
    const sources = [...outputs, ...this.#before(record, 'input'), ...parameters]
    const from = this.#firstOf(record, sources)
    if (from !== undefined) return propagator(from, record.worker)
    return this.#ofFinite(record, sources, outputs.length > 0)
  }

  /** The cause of a gradient: the loss and activations of its step, earlier gradients, or another worker. */
  #ofGradient(record: Found): Cause {
    const ownCause = this.#ofOwnGradient(record)
    if (ownCause.class === 'propagator') return ownCause
    // Workers add up their gradients: one that has a cause of its own gives it to all, or else the first does.
    const others = this.workersOf(record).filter(worker => worker !== record.worker)
    const cause =
      others.find(worker => this.#ofOwnGradient({ ...record, worker }).class === 'propagator') ??
      others.find(worker => worker < record.worker)
    if (cause !== undefined) return propagator(record.tensor, cause)
    if (ownCause.reason !== null) return ownCause
    const unread = this.#trial
      .workersWithData()
      .flatMap(worker => this.#unreadAmong([record.tensor], worker, record.step))
    const ofOthers = others.map(worker => this.#ofOwnGradient({ ...record, worker }).reason)
    return unknownFor([...unread, ...ofOthers.filter(reason => reason !== null)]) ?? ownCause
  }

  #ofOwnGradient(record: At): Cause {
    const gradients = this.#before(record, 'gradient')
    const outputs = [...this.#before(record, 'loss'), ...this.#before(record, 'output')]
    const others = [...this.#before(record, 'input'), ...this.#before({ ...record, rank: Infinity }, 'parameter')]
    const sources = [...gradients, ...outputs, ...others]
    const from = this.#firstOf(record, sources)
    if (from !== undefined) return propagator(from, record.worker)
    return this.#ofFinite(record, sources, outputs.length + gradients.length > 0)
  }

  /**
   * From itself and its gradient at the step before, if there was none between that was not saved; of another worker, too, since workers add
   * up their gradients.
   */
  #ofParameter(record: Found): Cause {
    const { tensor, worker, step, mode, modeStep } = record
    const before = savedBefore(this.#trial, record)
    if (before === undefined) return PRODUCER
    const gradients = this.#gradients.filter(([, weight]) => isGradientOf(weight, tensor)).map(([name]) => name)
    const others = this.#trial.workersWithData().filter(other => other !== worker)
    const sources = [tensor, ...gradients]
    for (const other of [worker, ...others]) {
      const from = sources.find(name => this.#has(name, other, before.step))
      if (from !== undefined) return propagator(from, other)
    }
    const unread = [worker, ...others].flatMap(other => this.#unreadAmong(sources, other, before.step))
    if (unread.length > 0) return unknownFor(unread)!
    const isNext = before.step === step - 1 || (before.mode === mode && before.modeStep === modeStep - 1)
    const isKnown = gradients.some(name => this.#wasSaved(name, worker, before.step))
    return isNext && isKnown ? PRODUCER : UNKNOWN
  }

  /** The cause of a record none of whose sources is known to have any: it arose here, if all of them that were saved were read. */
  #ofFinite({ worker, step }: At, sources: readonly string[], isKnown: boolean): Cause {
    return unknownFor(this.#unreadAmong(sources, worker, step)) ?? (isKnown ? PRODUCER : UNKNOWN)
  }

  /** A sentence for each of some tensors of a worker that was saved at a step, and not read. */
  #unreadAmong(names: readonly string[], worker: Worker, step: GlobalStep): readonly string[] {
    const saved = this.#savedAt(worker, step)?.tensors
    return names
      .filter(name => saved?.has(name))
      .map(tensor => this.#read.unreadText({ tensor, worker, step }))
      .filter(text => text !== null)
  }

  #firstOf({ worker, step }: At, names: readonly string[]): string | undefined {
    return names.find(name => this.#has(name, worker, step))
  }

  /** The tensors of a kind that were saved before a record at its step, the nearest first. */
  #before({ worker, step, rank }: At, kind: Role['kind']): readonly string[] {
    const ordered = this.#orderOf(worker, step).get(kind) ?? []
    return ordered
      .filter(([, at]) => at < rank)
      .map(([name]) => name)
      .reverse()
  }

  #orderOf(worker: Worker, step: GlobalStep): Order {
    if (step !== this.#ordersStep) this.#orders.clear()
    this.#ordersStep = step
    const known = this.#orders.get(worker)
    if (known) return known
    const saved = this.#savedAt(worker, step)
    const order = new Map<Role['kind'], (readonly [string, number])[]>()
    // Their places ascend.
    for (const entry of saved ? recordsInOrder(saved) : []) listed(order, this.#roles.get(entry[0])!.kind).push(entry)
    this.#orders.set(worker, order)
    return order
  }

  #savedAt(worker: Worker, step: GlobalStep) {
    return stateOf(this.#trial)
      .catalog.atStep(step)
      .find(saved => saved.worker === worker)
  }

  #wasSaved(name: string, worker: Worker, step: GlobalStep): boolean {
    return this.#savedAt(worker, step)?.tensors.has(name) ?? false
  }
}

/** The step before at which a worker saved a tensor. */
function savedBefore(trial: Trial, { tensor, worker, step }: Found) {
  const savedSteps = stateOf(trial).catalog.byTensor.get(tensor)
  for (let at = savedSteps === undefined ? -1 : savedSteps.before(step) - 1; at >= 0; at--) {
    const saved = savedSteps!.at(at)!
    if (saved.worker === worker) return saved
  }
  return undefined
}

function passedOf({ worker, records, lastStep }: Episode): PassedOverflow {
  const tensors = [...new Set(records.map(({ tensor }) => tensor))]
  return { worker, step: records[0]!.step, lastStep, tensors }
}

function propagator(from: string, fromWorker: Worker): Cause {
  return { class: 'propagator', from, fromWorker, reason: null }
}

/** @param unread sentences about what was not read; null if there are none */
function unknownFor([first, ...others]: readonly string[]): Cause | null {
  if (first === undefined) return null
  return {
    ...UNKNOWN,
    reason: others.length === 0 ? first : `${first}, nor ${others.length === 1 ? 'was' : 'were'} ${others.length} more`,
  }
}

/** The chain from the first record to the first loss, along each record's cause. */
function chainOf(all: readonly Classified[], isLoss: (name: string) => boolean): readonly Classified[] {
  const [origin] = all
  const loss = all.find(({ tensor }) => isLoss(tensor) && !/_input(_\d+)?$/.test(tensor))
  if (origin === undefined || loss === undefined) return []
  const byKey = new Map(all.map(record => [keyOf(record), record]))
  const chain = new Set([loss])
  for (let at = loss; at !== origin && at.from !== null; ) {
    const next = byKey.get(keyOf({ tensor: at.from, worker: at.fromWorker! }))
    if (next === undefined || chain.has(next)) break
    chain.add(next)
    at = next
  }
  const records = [...chain].reverse()
  return records[0] === origin ? records : [origin, ...records]
}

function listed<K, V>(map: Map<K, V[]>, key: K): V[] {
  const list = map.get(key) ?? []
  map.set(key, list)
  return list
}

function keyOf({ tensor, worker }: { readonly tensor: string; readonly worker: string }): string {
  return `${worker}\n${tensor}`
}
