/** Compares weights with their quantised form in the other run. */

import { errorFromData, QueryError, TensorUnavailableForStep, TrialscanError } from '../../base/errors.js'
import { recordPlace } from '../../scan/catalog/worker-steps.js'
import type { MeasuredPlace } from '../../scan/job/measure-job.js'
import { checkLevelNumber } from '../../scan/job/plan/coalesce.js'
import { measuredColumns } from '../../scan/job/plan/measure-plan.js'
import { aheadByteLength, DEFAULT_MEMORY, windowByteLength } from '../../scan/job/plan/memory.js'
import type { QuantisationError, QuantisedJob } from '../../scan/job/quantised-job.js'
import { pump } from '../../scan/runner/pump.js'
import { runTwice } from '../../scan/runner/runner.js'
import type { MeasureOptions, MeasureStats } from '../../trial/measure/measure.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import type { Paired, Pairing } from '../pairing.js'
import { decibels } from '../wording.js'
import {
  isPacked,
  isScale,
  otherQuantisation,
  type QuantisedTensors,
  quantisedTensors,
  stemOfPart,
  stemOfScale,
} from './names.js'

/** A weight of one run, and its quantised tensors in the other; a text names the quantisation if it can't be compared. */
export interface QuantisedPair extends Paired {
  readonly tensors: QuantisedTensors | string
  /** The run with the quantised weights. */
  readonly side: 'a' | 'b'
}

/** The result for such a pair. */
export interface QuantisedOutcome {
  readonly is: 'equal' | 'quantised' | 'shape' | 'unreadable' | 'missing'
  readonly message: string
  readonly quantised: QuantisationError | null
}

interface Sorted {
  readonly quantised: readonly QuantisedPair[]
  readonly others: readonly Paired[]
  /** The number of weights that are quantised on both sides, and compared as they are stored. */
  readonly stored: number
  /** True for a tensor that is a part of quantised weights, or is compared with them. */
  isPart(name: string): boolean
}

/** Separates the pairs of a step with weights that one run has quantised from the others. */
export function quantisedAmong(pairing: Pairing, step: number, pairs: readonly Paired[]): Sorted {
  const { a, b } = pairing
  const names = { a: namesOf(a), b: namesOf(b) }
  if (a === b || (names.a ?? names.b) === null) return { quantised: [], others: pairs, stored: 0, isPart: () => false }
  const ofB = sortedBy('b', names, pairing, step, pairs)
  const ofA = sortedBy('a', names, pairing, step, ofB.others)
  const { others } = ofA
  const isOnBoth = ({ place, otherTensor }: Paired) => isStored(place.tensor, names.a) && isStored(otherTensor, names.b)
  return {
    quantised: [...ofB.quantised, ...ofA.quantised],
    others,
    stored: others.filter(isOnBoth).length,
    isPart: name => ofB.isPart(name) || ofA.isPart(name),
  }
}

type QuantisedNames = Readonly<Record<'a' | 'b', ReadonlySet<string> | null>>

/** @param side the run whose weights are quantised, of all or some layers */
function sortedBy(
  side: 'a' | 'b',
  { [side]: names, [side === 'a' ? 'b' : 'a']: otherNames }: QuantisedNames,
  pairing: Pairing,
  step: number,
  pairs: readonly Paired[],
): Omit<Sorted, 'stored'> {
  if (!names) return { quantised: [], others: pairs, isPart: () => false }
  const quantised: QuantisedPair[] = []
  const parts = new Set<string>()
  const stems = new Set<string>()
  const rest: Paired[] = []
  const take = (pair: Paired, weight: string): boolean => {
    const tensors = quantisedTensors(weight, names) ?? otherQuantisation(weight, names)
    if (tensors === null || isStored(side === 'a' ? pair.otherTensor : pair.place.tensor, otherNames ?? null))
      return false
    quantised.push({ ...pair, tensors, side })
    stems.add(weight.replace(/\.weight$/, ''))
    if (typeof tensors !== 'string') for (const part of [tensors.weight, tensors.scale]) parts.add(part)
    return true
  }
  const tensorOf = ({ place, otherTensor }: Paired) => (side === 'a' ? place.tensor : otherTensor)
  for (const pair of pairs) {
    const isThere = (side === 'b' ? pair.a : pair.b) !== undefined
    if (!isThere || !take(pair, tensorOf(pair))) rest.push(pair)
  }
  // Tensors that the first run has under other names.
  for (const alone of side === 'a' ? pairing.onlyInB(step, pairs) : []) {
    const { otherTensor: tensor, otherWorker } = alone
    const stored = quantisedTensors(tensor, names)?.weight
    const pair = rest.find(candidate => candidate.place.tensor === stored && candidate.b === undefined)
    if (take({ ...(pair ?? alone), otherTensor: tensor, otherWorker }, tensor)) parts.add(tensor)
  }
  // Where both runs have scales, those of weights that are quantised in both are tensors as others are.
  const isPart = (name: string) =>
    parts.has(name) ||
    stems.has(stemOfPart(name) ?? '') ||
    (isScale(name) && (!otherNames || stems.has(stemOfScale(name))))
  const others = rest.filter(pair => !(side === 'a' && pair.b === undefined && isPart(tensorOf(pair))))
  return { quantised, others, isPart }
}

/** True if a tensor holds quantised codes. */
function isStored(name: string, names: ReadonlySet<string> | null): boolean {
  if (names === null) return false
  return (
    isPacked(name) ||
    name.endsWith('.qweight') ||
    (quantisedTensors(name, names) ?? otherQuantisation(name, names)) !== null
  )
}

/** The names of a run with quantised weights; null if it has none. */
function namesOf(trial: Trial): ReadonlySet<string> | null {
  const { names } = stateOf(trial).catalog
  const isQuantised = (name: string) => isScale(name) || /\.(?:qweight|absmax|quant_map|SCB)$/.test(name)
  return names.some(isQuantised) ? new Set(names) : null
}

/** Compares the pairs, several at once, and yields the results in order. */
export async function* judgeQuantised(
  pairing: Pairing,
  pairs: readonly QuantisedPair[],
  options: MeasureOptions,
  stats: MeasureStats,
): AsyncGenerator<QuantisedOutcome> {
  if (pairs.length === 0) return
  const plans = pairs.map(pair => planOf(pairing, pair, options))
  const bytes = plans.reduce((sum, plan) => sum + ('job' in plan ? plan.byteLength : 0), 0)
  const { threads, memory, callerWorks, signal } = options
  const runner = await stateOf(pairing.a).access.runner(threads, bytes, memory, callerWorks)
  const work = async (plan: Plan): Promise<QuantisedOutcome> => {
    if ('is' in plan) return plan
    const { error, failures, stats: read } = await runTwice(runner, plan.job, signal)
    stats.records += read.records
    stats.readBytes += read.readBytes
    stats.reads += read.reads
    stats.jobs++
    return error === null ? failed(errorFromData(failures[0]!.error)) : outcomeOf(error)
  }
  for await (const { reply, error } of pump(plans, work, { ahead: runner.ahead, signal })) {
    if (reply !== null) yield reply
    else if (error instanceof TrialscanError) yield failed(error)
    else throw error
  }
}

type Plan = QuantisedOutcome | { readonly job: QuantisedJob; readonly byteLength: number }

/** The job that compares a pair, or the reason why there is none. */
function planOf(
  pairing: Pairing,
  { tensors, side, place, otherTensor, otherWorker }: QuantisedPair,
  { memory = DEFAULT_MEMORY, checkLevel = 'minimal' }: MeasureOptions,
): Plan {
  if (typeof tensors === 'string') {
    return { is: 'missing', message: `quantised by ${tensors}, which is not compared`, quantised: null }
  }
  const steps = { a: place.step, b: pairing.stepInB(place.step) }
  const workers = { a: place.worker, b: otherWorker }
  const recordOf = (run: 'a' | 'b', name: string): MeasuredPlace => {
    const saved = stateOf(pairing[run]).catalog.atStep(steps[run])
    const workerStep = saved.find(({ worker }) => worker === workers[run])
    const value = workerStep?.tensors.get(name)?.value
    if (!value) throw new TensorUnavailableForStep(name, steps[run], 'GLOBAL', 'its value was not saved')
    return { ...recordPlace(workerStep!, value), store: run === 'a' ? 0 : 1 }
  }
  const { weight, scale, outer } = tensors
  try {
    const records = [
      side === 'a' ? recordOf('b', otherTensor) : recordOf('a', place.tensor),
      ...[weight, scale, ...(outer ? [outer.name] : [])].map(name => recordOf(side, name)),
    ]
    const { files, storeOf, tags, columns } = measuredColumns(records)
    const job: QuantisedJob = {
      kind: 'quantised',
      stores: [stateOf(pairing.a).access.spec, stateOf(pairing.b).access.spec],
      storeOf,
      checkLevel: checkLevelNumber(checkLevel),
      files,
      tags,
      records: columns,
      windowByteLength: windowByteLength(memory),
      aheadByteLength: aheadByteLength(memory),
      form: tensors.form,
      divides: outer?.divides === true,
    }
    return { job, byteLength: records.reduce((sum, { byteLength }) => sum + byteLength, 0) }
  } catch (error) {
    if (!(error instanceof TrialscanError)) throw error
    return failed(error)
  }
}

function outcomeOf(quantised: QuantisationError): QuantisedOutcome {
  const isEqual = quantised.normalisedError === 0 && quantised.notFinite === 0
  return { is: isEqual ? 'equal' : 'quantised', message: messageOf(quantised), quantised }
}

function failed(error: TrialscanError): QuantisedOutcome {
  const { code, message } = error
  const is = code === 'NotComparable' ? 'shape' : error instanceof QueryError ? 'missing' : 'unreadable'
  return { is, message, quantised: null }
}

function messageOf({ scheme, sqnr, normalisedError, notFinite }: QuantisationError): string {
  const lost = `${scheme}: ${decibels(sqnr)} dB, normalised squared error ${Number(normalisedError.toPrecision(3))}`
  return notFinite === 0 ? lost : `${lost}; ${notFinite} elements are not finite`
}
