/** The tensors that a rule needs at a step (smdebug's RequiredTensors). */

import { expectArray, expectStep, expectText } from '../base/arguments.js'
import { InvalidWorker, TensorUnavailableForStep, type TrialscanError, UsageError } from '../base/errors.js'
import { checkOptions, type Kind, kinds, optionsOf } from '../base/options.js'
import type { StatisticName, Worker } from '../base/types.js'
import type { Ahead } from '../scan/catalog/hold.js'
import { WAIT_OPTIONS, type WaitOptions, waitingOf } from '../scan/catalog/wait.js'
import { Inquiry, MEASURE_OPTIONS, type MeasureOptions } from '../trial/measure/measure.js'
import type { Question } from '../trial/measure/question.js'
import type { TensorAtStep } from '../trial/measure/tensor-at-step.js'
import { parseReductions } from '../trial/reduction.js'
import type { Tensor } from '../trial/tensor.js'
import { stateOf, Trial } from '../trial/trial.js'

export interface RequireOptions {
  /** The trial. Default: the rule's base trial. */
  readonly trial?: Trial | null | undefined
  /** True if `name` is a Python pattern; it stands for every tensor whose name has a match. */
  readonly regex?: boolean
  /** The worker. Default: the first, in sorted order, that has the tensor. */
  readonly worker?: string | null | undefined
  /** The reductions that are needed (`mean`, `abs_max`, …). Default: the value. */
  readonly reductions?: readonly StatisticName[]
}

export const trialKind: Kind<Trial> = kinds.that('a trial', given => given instanceof Trial)
const REQUIRE_OPTIONS = optionsOf<RequireOptions>({
  trial: kinds.orNull(trialKind),
  regex: kinds.flag,
  worker: kinds.orNull(kinds.text),
  // Unknown names are reported separately, with suggestions.
  reductions: kinds.listOf<StatisticName>(
    'names of reductions',
    kinds.that('a name', name => typeof name === 'string'),
  ),
})
/** The options of `rule.invoke` and `reqTensors.fetch`. */
export const READ_OPTIONS = optionsOf<WaitOptions & MeasureOptions>({ ...WAIT_OPTIONS, ...MEASURE_OPTIONS })

interface Required {
  readonly trial: Trial
  readonly name: string
  /** The worker; null for the first that has the tensor. */
  readonly worker: string | null
  readonly steps: Set<number>
  /** The reductions; null for the value. */
  readonly reductions: readonly StatisticName[] | null
}

export class RequiredTensors {
  readonly #trials: readonly Trial[]
  readonly #inquiry: Inquiry
  readonly #workers: ReadonlySet<string> | null
  readonly #tensorFilter: ((name: string) => boolean) | null
  readonly #required: Required[] = []
  #questions: Question<unknown>[] = []
  /** The judgement of a built-in rule. @internal */
  judgement:
    | { readonly count: number; readonly atOnce: () => boolean; readonly inTurns: () => Promise<boolean> }
    | undefined

  /**
   * @param trials the rule's trials, the base trial first
   * @param inquiry collects questions that are answered together
   * @param workers the workers of the base trial to use; null for all
   * @param tensorFilter true for the tensors of the base trial to use; null for all
   * @internal
   */
  constructor(
    trials: readonly Trial[],
    inquiry = new Inquiry(),
    workers: ReadonlySet<string> | null = null,
    tensorFilter: ((name: string) => boolean) | null = null,
  ) {
    this.#trials = trials
    this.#inquiry = inquiry
    this.#workers = workers
    this.#tensorFilter = tensorFilter
  }

  /**
   * Declares that a tensor is needed at some global steps.
   * @throws TensorUnavailable for a name that was not saved, UsageError for an unknown reduction
   */
  add(name: string, steps: readonly number[], options?: RequireOptions): void {
    const {
      trial = null,
      regex = false,
      worker = null,
      reductions,
    } = checkOptions('reqTensors.add', REQUIRE_OPTIONS, options)
    expectText('reqTensors.add', 'name', name)
    expectArray('reqTensors.add', 'steps', 'an array of steps', steps)
    for (const step of steps) expectStep(step)
    const from = this.#trial(trial)
    const statistics = reductions === undefined ? null : parseReductions(reductions)
    const names = regex ? from.tensorNames({ regex: name }) : [from.tensor(name).name]
    const isMeant = from === this.#trials[0] ? this.#tensorFilter : null
    for (const tensorName of isMeant === null ? names : names.filter(isMeant)) {
      const same = this.#required.find(
        known =>
          known.trial === from &&
          known.name === tensorName &&
          known.worker === worker &&
          String(known.reductions) === String(statistics),
      )
      if (same) for (const step of steps) same.steps.add(step)
      else this.#required.push({ trial: from, name: tensorName, worker, steps: new Set(steps), reductions: statistics })
    }
  }

  /** The names of the required tensors of a trial; null or absent: of the base trial. */
  getNames(trial?: Trial | null): string[] {
    const from = this.#trial(trial)
    return [...new Set(this.#required.filter(known => known.trial === from).map(({ name }) => name))]
  }

  /** The steps at which a tensor is required, ascending. */
  getTensorSteps(name: string, trial?: Trial | null): number[] {
    const from = this.#trial(trial)
    const ofTensor = this.#required.filter(known => known.trial === from && known.name === name)
    return [...new Set(ofTensor.flatMap(({ steps }) => [...steps]))].sort((a, b) => a - b)
  }

  /** The required tensors of a trial. */
  get(trial?: Trial | null): Tensor[] {
    return this.getNames(trial).map(name => this.#trial(trial).tensor(name))
  }

  /** Discards all requirements. */
  clear(): void {
    this.#required.length = 0
    this.#questions = []
  }

  /**
   * A tensor at a step, for more than its value and reductions: in `setRequiredTensors` a call poses the question, in `invokeAtStep` the
   * same call returns the answer.
   * @param worker default: the first, in sorted order, that has the tensor
   * @throws StepUnavailable, StepNotYetAvailable, TensorUnavailable, TensorUnavailableForStep, InvalidWorker
   */
  at(name: string, step: number, trial?: Trial | null, worker?: string | null): TensorAtStep {
    const from = this.#trial(trial)
    const tensor = this.find(name, step, from, worker)
    if (tensor) return tensor
    const { name: known } = from.tensor(name)
    const { catalog } = stateOf(from)
    if (worker && !catalog.workers.includes(worker as Worker)) throw new InvalidWorker(worker, catalog.workers)
    stateOf(from).knownSteps(step, 'GLOBAL')
    const steps = catalog.byTensor.get(known)!.filter(saved => !worker || saved.worker === worker)
    const nearest = steps.stepAt(steps.before(step + 1) - 1) ?? steps.stepAt(0)
    const detail = `it was not saved then${worker ? ` by ${worker}` : ''}; the nearest step with it: ${nearest ?? 'none'}`
    throw new TensorUnavailableForStep(name, step, 'GLOBAL', detail)
  }

  /** The tensor that `at` finds; undefined if there is none. */
  find(name: string, step: number, trial?: Trial | null, worker?: string | null): TensorAtStep | undefined {
    const from = this.#trial(trial)
    const tensors = this.#inquiry.atStep(stateOf(from), step)
    return worker ? tensors.of(worker)?.get(name) : tensors.get(name, this.#among(from))
  }

  /** The tensors that `at` finds, without those that were not saved at the step. */
  select(
    names: readonly string[],
    step: number,
    trial?: Trial | null,
    worker?: string | null,
  ): readonly TensorAtStep[] {
    const from = this.#trial(trial)
    const tensors = this.#inquiry.atStep(stateOf(from), step)
    return worker ? (tensors.of(worker)?.select(names) ?? []) : tensors.select(names, this.#among(from))
  }

  /** The workers that wrote a step, sorted, for use with `at`, `find` and `select`. */
  workers(step: number, trial?: Trial | null): Worker[] {
    const from = this.#trial(trial)
    const among = this.#among(from)
    const workers = stateOf(from)
      .catalog.atStep(step)
      .map(({ worker }) => worker)
    return among === null ? workers : workers.filter(worker => among.has(worker))
  }

  /** Turns the requirements into questions. @throws what `at` throws */
  pose(): void {
    this.#questions = []
    for (const { trial, name, worker, steps, reductions } of this.#required) {
      for (const step of steps) {
        const tensor = this.at(name, step, trial, worker)
        if (reductions === null) {
          this.#questions.push(tensor.value())
          // Moments cost little beside the value, and avoid a second read if a reduction is requested.
          tensor.moments()
        } else for (const reduction of reductions) this.#questions.push(tensor.reduction(reduction))
      }
    }
  }

  /** The error of a requirement that could not be met. */
  get error(): TrialscanError | undefined {
    return this.#questions.find(({ error }) => error)?.error
  }

  /**
   * Waits for the steps, and reads all requirements in one pass.
   * @throws what `at` and `trial.waitForSteps` throw; FormatError or StoreError for unreadable data
   */
  async fetch(options?: WaitOptions & MeasureOptions): Promise<void> {
    const reading = checkOptions('reqTensors.fetch', READ_OPTIONS, options)
    for (const trial of this.#trials) {
      const ofTrial = this.#required.filter(known => known.trial === trial)
      const steps = [...new Set(ofTrial.flatMap(({ steps }) => [...steps]))].sort((a, b) => a - b)
      if (steps.length > 0) await trial.waitForSteps(steps, waitingOf(reading))
    }
    this.pose()
    await this.#inquiry.run(reading, { records: 0, unread: 0, readBytes: 0, reads: 0, jobs: 0, threads: 0 })
    if (this.error) throw this.error
  }

  /** The values that were read ahead for the rule's judgement. */
  get ahead(): Ahead {
    return this.#inquiry
  }

  /** The workers to use; null for all. */
  #among(trial: Trial): ReadonlySet<string> | null {
    return trial === this.#trials[0] ? this.#workers : null
  }

  #trial(trial: Trial | null | undefined): Trial {
    const chosenTrial = trial ?? this.#trials[0]!
    if (!this.#trials.includes(chosenTrial)) {
      throw new UsageError(
        `expected the base trial or one of the other trials of the rule, got ${JSON.stringify(chosenTrial.name)}`,
      )
    }
    return chosenTrial
  }
}
