/** The pairs that are asked about together: some of a step that has very many, or those of several steps. */

import { REDUCTIONS } from '../base/types.js'
import type { DifferenceTolerance } from '../trial/measure/difference.js'
import { Inquiry } from '../trial/measure/measure.js'
import type { Question, TensorDifference } from '../trial/measure/question.js'
import type { TensorAtStep } from '../trial/measure/tensor-at-step.js'
import { stateOf, type Trial } from '../trial/trial.js'
import type { joined } from './joined.js'
import { embeddingsAmong, type TiedTensor, tiedHead } from './names/aliases.js'
import type { Paired, Pairing, Side } from './pairing.js'
import type { ReductionPair } from './reductions.js'

/** Questions that are asked at once. */
const WINDOW_QUESTIONS = 1 << 14

/** A pair, and what was asked about it. */
export interface Asked extends Paired {
  /** True if a value of either was saved, not only reductions. */
  readonly hasValue: boolean
  /** The tie that a head may have which one run lacks. It is held against the embeddings of its own run. */
  readonly tied: TiedTensor | null
  readonly values: Question<TensorDifference | null> | null
  readonly wholes: readonly (readonly Question<Parameters<typeof joined>[0][number]>[])[]
  readonly reductions: readonly ReductionPair[]
}

export class Window {
  readonly inquiry = new Inquiry()
  readonly questions: Asked[] = []
  readonly #pairing: Pairing
  readonly #tolerance: DifferenceTolerance
  #bytes = 0
  /** True if the run that lacks a head has problems: only one of the runs can. */
  #isDamaged: boolean | null = null

  constructor(pairing: Pairing, { rtol, atol, tolerance }: DifferenceTolerance) {
    this.#pairing = pairing
    this.#tolerance = {
      ...(rtol !== undefined && { rtol }),
      ...(atol !== undefined && { atol }),
      ...(tolerance && { tolerance }),
    }
  }

  isFull(bytes: number): boolean {
    return Math.max(this.inquiry.questionCount, this.questions.length) >= WINDOW_QUESTIONS || this.#bytes >= bytes
  }

  add(pair: Paired): void {
    const { a, b } = this.#pairing
    const { step, tensor } = pair.place
    const shardsA = this.#shards(a, step, tensor, pair.a)
    const shardsB = this.#shards(b, this.#pairing.stepInB(step), pair.otherTensor, pair.b)
    for (const shard of [...shardsA, ...shardsB]) if (shard.hasValue) this.#bytes += shard.valueRecord.byteLength
    const tied = this.#tiedIn(pair)
    const head = [...shardsA, ...shardsB]
    const [x, y] = tied ? [head, this.#embeddingsBeside(head, tied)] : [shardsA, shardsB]
    this.questions.push({ ...pair, tied, ...this.#ask(x, y) })
  }

  #tiedIn({ place: { tensor }, a, b }: Paired): TiedTensor | null {
    if (a && b) return null
    const other = a ? this.#pairing.b : this.#pairing.a
    const tied = tiedHead(tensor, a ? 'first' : 'second', stateOf(other).catalog.names)
    if (tied === null) return null
    // A head that a damaged checkpoint lost is missing, not tied. The problems are collected from all steps.
    this.#isDamaged ??= other.problems.length > 0
    return this.#isDamaged ? null : tied
  }

  /** The embeddings of the workers that have a head; [] if one has none. */
  #embeddingsBeside(head: readonly TensorAtStep[], { only }: TiedTensor): readonly TensorAtStep[] {
    const state = stateOf(only === 'first' ? this.#pairing.a : this.#pairing.b)
    const name = embeddingsAmong(state.catalog.names) ?? ''
    const all = head.flatMap(({ step, worker }) => this.inquiry.atStep(state, step).of(worker)?.get(name) ?? [])
    return all.length === head.length ? all : []
  }

  #shards(trial: Trial, step: number, tensor: string, side: Side | undefined): readonly TensorAtStep[] {
    const saved = this.inquiry.atStep(stateOf(trial), step)
    return (side?.workers ?? []).map(worker => saved.of(worker)!.get(tensor)!)
  }

  #ask(a: readonly TensorAtStep[], b: readonly TensorAtStep[]): Omit<Asked, keyof Paired | 'tied'> {
    const [[first], [other]] = [a, b]
    if (first === undefined || other === undefined) return { hasValue: false, values: null, wholes: [], reductions: [] }
    const isSplit = a.length + b.length > 2
    const hasValue = first.hasValue || other.hasValue
    if ([...a, ...b].every(shard => shard.hasValue)) {
      const wholes = isSplit ? [a, b].map(shards => shards.map(shard => shard.value())) : []
      return { hasValue, values: isSplit ? null : first.difference(other, this.#tolerance), wholes, reductions: [] }
    }
    if (isSplit) return { hasValue, values: null, wholes: [], reductions: [] }
    // What one has as a value, the other as reductions: these are computed.
    const saved = first.hasValue ? other.savedReductions : first.savedReductions
    // Frameworks divide spreads by n or by n - 1.
    const common = REDUCTIONS.filter(
      name => saved.includes(name) && (hasValue ? !/std|variance/.test(name) : other.savedReductions.includes(name)),
    )
    const reductions = common.map(name => [name, first.reduction(name), other.reduction(name)] as const)
    return { hasValue, values: null, wholes: [], reductions }
  }
}

export function isAnswered({ values, wholes, reductions }: Asked): boolean {
  if (values !== null) return values.isAnswered
  return (
    wholes.every(shards => shards.every(question => question.isAnswered)) &&
    reductions.every(([, a, b]) => a.isAnswered && b.isAnswered)
  )
}
