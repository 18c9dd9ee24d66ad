/** Tensors asked for one by one, as a loop over steps does, and a rule: what a call takes. */

import { REDUCTIONS } from '#dist/base/types.js'
import { createTrial, evaluate, invokeRule, Rule, type Tensor, type TensorValue, type Trial } from '#dist/index.js'
import {
  type Case,
  type Contender,
  contender,
  type Definition,
  expectClose,
  type Judge,
  type Options,
} from '../definition.js'
import { NAME } from '../engines/ours.js'
import { expectedOf, type TrialName, trial } from '../trials.js'

/** The calls of a run, at most one for each tensor at each step. */
const CALLS = 1000
/** The calls that are made before the first is awaited. */
const AT_ONCE = 100

export const calls: Definition = {
  name: 'calls',
  measures: 'one call after the other, each awaited; files in the page cache',
  async *cases({ quick }: Options): AsyncGenerator<Case> {
    for (const name of ['many', 'eight workers'] satisfies TrialName[]) yield await trialCase(name, quick)
  },
}

/** A call: of a tensor at a step. */
type Call = readonly [tensor: Tensor, step: number]

/** The means of values that it says it wants. */
class Means extends Rule {
  readonly means: number[] = []
  readonly #names: ReadonlyMap<number, readonly string[]>

  constructor(trial: Trial, names: ReadonlyMap<number, readonly string[]>) {
    super(trial)
    this.#names = names
  }

  override setRequiredTensors(step: number): void {
    for (const name of this.#names.get(step) ?? []) this.reqTensors.add(name, [step])
  }

  override async invokeAtStep(step: number): Promise<boolean> {
    for (const name of this.#names.get(step) ?? []) {
      this.means.push(meanOfValue(await this.baseTrial.tensor(name).value(step)))
    }
    return false
  }
}

const meanOfValue = ({ data }: TensorValue): number =>
  (data as Float32Array).reduce((sum, value) => sum + value, 0) / data.length

async function trialCase(name: TrialName, quick: boolean): Promise<Case> {
  const input = trial(name, quick)
  const { dir, title, steps, tensors, workers } = input
  const rows = expectedOf(input)
  const mean = REDUCTIONS.indexOf('mean')
  const opened = await createTrial(dir)
  const calls: Call[] = []
  const means: number[] = []
  for (let i = 0; i < Math.min(CALLS, steps.length * tensors.length); i++) {
    const [at, k] = [Math.floor(i / tensors.length), i % tensors.length]
    calls.push([opened.tensor(tensors[k]!.name), steps[at]!])
    means.push(rows[(at * workers * tensors.length + k) * REDUCTIONS.length + mean]!)
  }
  const wrong = expectClose(Float64Array.from(means), i => `${calls[i]![0].name} at step ${calls[i]![1]}, mean`)
  const wrongValues = (values: TensorValue[]): string | undefined => wrong(values.map(meanOfValue))
  const loop = <A>(
    engine: string,
    call: (tensor: Tensor, step: number) => Promise<A>,
    wrong: Judge<A[]>,
    forget = true,
  ): Contender =>
    contender(
      engine,
      async () => {
        if (forget) await opened.close()
        const answers: A[] = []
        for (const [tensor, step] of calls) answers.push(await call(tensor, step))
        return answers
      },
      wrong,
    )
  const together = <A>(
    engine: string,
    call: (tensor: Tensor, step: number) => Promise<A>,
    wrong: Judge<A[]>,
  ): Contender =>
    contender(
      `${engine}, ${AT_ONCE} at once`,
      async () => {
        await opened.close()
        const answers: A[] = []
        for (let first = 0; first < calls.length; first += AT_ONCE) {
          const some = calls.slice(first, first + AT_ONCE)
          answers.push(...(await Promise.all(some.map(([tensor, step]) => call(tensor, step)))))
        }
        return answers
      },
      wrong,
    )
  const byStep = new Map<number, string[]>()
  for (const [{ name }, step] of calls) byStep.set(step, [...(byStep.get(step) ?? []), name])
  const endStep = calls.at(-1)![1] + 1
  const judged = (engine: string, run: (rule: Rule) => Promise<unknown>): Contender =>
    contender(
      engine,
      async () => {
        const rule = new Means(opened, byStep)
        await run(rule)
        return rule.means
      },
      wrong,
    )
  const meanOf = async (tensor: Tensor, step: number): Promise<number> =>
    (await tensor.reductionValue(step, 'mean')) as number
  const valueAt = (tensor: Tensor, step: number): Promise<TensorValue> => tensor.value(step)
  return {
    size: `${title}, ${calls.length} calls`,
    records: calls.length,
    contenders: [
      loop(`${NAME}, reductionValue`, meanOf, wrong),
      loop(`${NAME}, reductionValue, remembered`, meanOf, wrong, false),
      loop(`${NAME}, value`, valueAt, wrongValues),
      together(`${NAME}, reductionValue`, meanOf, wrong),
      together(`${NAME}, value`, valueAt, wrongValues),
      judged(`${NAME}, a rule's values, evaluate`, rule => evaluate(rule, { endStep })),
      judged(`${NAME}, a rule's values, invokeRule`, rule => invokeRule(rule, { endStep })),
    ],
  }
}
