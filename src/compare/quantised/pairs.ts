/** Pairs of two runs of which one has quantised weights, and how far these are from the other's. */

import { TrialscanError } from '../../base/errors.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import type { Paired, Pairing } from '../pairing.js'
import {
  isScale,
  otherQuantisation,
  type QuantisationError,
  type QuantisedTensors,
  quantisationError,
  quantisedTensors,
  scaledOf,
} from './error.js'

/** A weight of one run, and the tensors of the other that it was quantised to; a text: how, where that is not compared. */
export interface QuantisedPair extends Paired {
  readonly tensors: QuantisedTensors | string
  /** The run that has the quantised weights. */
  readonly side: 'a' | 'b'
}

/** The outcome of such a pair. */
export interface QuantisedOutcome {
  readonly is: 'equal' | 'quantised' | 'shape' | 'unreadable' | 'missing'
  readonly message: string
  readonly quantised: QuantisationError | null
}

interface Sorted {
  readonly quantised: readonly QuantisedPair[]
  readonly others: readonly Paired[]
  /** True of a tensor that only stands beside quantised weights, or for them. */
  isPart(name: string): boolean
}

/** Sorts pairs of a step into those of quantised weights and others. */
export function quantisedAmong({ a, b }: Pairing, pairs: readonly Paired[]): Sorted {
  const [namesA, namesB] = [namesOf(a), namesOf(b)]
  const none: Sorted = { quantised: [], others: pairs, isPart: () => false }
  if (a === b || (namesA === null) === (namesB === null)) return none
  const [side, names] = namesA === null ? (['b', namesB!] as const) : (['a', namesA] as const)
  const quantised: QuantisedPair[] = []
  const parts = new Set<string>()
  const rest: Paired[] = []
  const tensorOf = ({ place, otherTensor }: Paired) => (side === 'a' ? place.tensor : otherTensor)
  for (const pair of pairs) {
    const name = tensorOf(pair)
    const isWeight = side === 'b' ? pair.a !== undefined : true
    const tensors = isWeight ? (quantisedTensors(name, names) ?? otherQuantisation(name, names)) : null
    if (tensors === null) rest.push(pair)
    else {
      quantised.push({ ...pair, tensors, side })
      if (typeof tensors !== 'string') for (const part of [tensors.weight, tensors.scale]) parts.add(part)
    }
  }
  const isPart = (name: string) => parts.has(name) || isScale(name)
  const others = rest.filter(pair => !(side === 'a' && pair.b === undefined && isPart(tensorOf(pair))))
  return { quantised, others, isPart }
}

/** The names of a run that has quantised weights; null: it has none. */
function namesOf(trial: Trial): ReadonlySet<string> | null {
  const { names } = stateOf(trial).catalog
  const isQuantised = (name: string) => isScale(name) || /\.(?:qweight|absmax|quant_map)$/.test(name)
  return names.some(isQuantised) ? new Set(names) : null
}

/** Reads both and compares them. */
export async function judgeQuantised(pairing: Pairing, pair: QuantisedPair): Promise<QuantisedOutcome> {
  const { tensors, side, place, otherTensor, otherWorker } = pair
  if (typeof tensors === 'string') {
    return { is: 'missing', message: `quantised by ${tensors}, which is not compared`, quantised: null }
  }
  const steps = { a: place.step, b: pairing.stepInB(place.step) }
  const workers = { a: place.worker, b: otherWorker }
  const value = (of: 'a' | 'b', name: string) => pairing[of].tensor(name).value(steps[of], { worker: workers[of] })
  try {
    const weight = await (side === 'a' ? value('b', otherTensor) : value('a', place.tensor))
    const [stored, scale] = [await value(side, tensors.weight), await value(side, tensors.scale)]
    const outer = tensors.outer && {
      value: await value(side, tensors.outer.name),
      divides: tensors.outer.divides,
    }
    const quantised = quantisationError(weight, scaledOf(tensors, stored, scale, outer))
    const isEqual = quantised.normalisedError === 0 && quantised.notFinite === 0
    return { is: isEqual ? 'equal' : 'quantised', message: messageOf(quantised), quantised }
  } catch (error) {
    if (!(error instanceof TrialscanError)) throw error
    const { code, message } = error
    return { is: code === 'NotComparable' ? 'shape' : 'unreadable', message, quantised: null }
  }
}

function messageOf({ scheme, sqnr, normalisedError, notFinite }: QuantisationError): string {
  const lost = `${scheme}: ${sqnr.toFixed(1)} dB, normalised squared error ${Number(normalisedError.toPrecision(3))}`
  return notFinite === 0 ? lost : `${lost}; ${notFinite} elements are not finite`
}
