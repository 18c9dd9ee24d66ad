/** Evaluations, invocations and plain reads at once over one trial: each answers as if it were alone. */

import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import {
  AllZero,
  closePools,
  createTrial,
  type EvaluateOptions,
  evaluate,
  invokeRule,
  LossNotDecreasing,
  NLPSequenceRatio,
  noRefresh,
  Overfit,
  Overtraining,
  Rule,
  RuleRegistry,
  StalledTrainingRule,
  type Trial,
  UnchangedTensor,
  UsageError,
  VanishingGradient,
} from '#dist/index.js'
import { LocalStore } from '#dist/storage/local/local-store.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { uniform } from '../../fixtures/random.js'
import { fixtureTrial } from '../support/golden.js'
import { part } from '../support/part.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('together')
let trial: Trial

beforeAll(async () => {
  const writer = new TrialWriter(join(scratch, 'trial'), {
    collections: { losses: { includeRegex: ['loss'] }, weights: { includeRegex: ['weight'] } },
  })
  const random = uniform(7)
  for (let step = 0; step < 24; step++) {
    const mode = step % 5 === 4 ? 'EVAL' : 'TRAIN'
    const values = Array.from({ length: 8 }, () => (step % 7 === 3 ? 0 : random() - 0.5))
    writer.step({
      step,
      mode,
      modeStep: mode === 'EVAL' ? (step - 4) / 5 : step - Math.floor((step + 1) / 5),
      tensors: [
        { name: 'loss', dtype: 'float32', shape: [1], values: [1 + random() / 10] },
        { name: 'fc.weight', dtype: 'float32', shape: [8], values },
        ...(step % 3 === 0 ? [{ name: 'seldom', dtype: 'float32', shape: [1], values: [step] } as const] : []),
      ],
    })
  }
  writer.end()
  trial = await createTrial(join(scratch, 'trial'))
})

afterAll(closePools)

/** Gives way to whatever else goes on. */
const pause = () => setImmediate()

/** Reads what it required, and what it did not, with pauses between; keeps nothing. */
class Reads extends Rule {
  override setRequiredTensors(step: number): void {
    this.reqTensors.add('weight$', [step, Math.max(0, step - 2)], { regex: true })
    this.reqTensors.add('loss', [step], { reductions: ['max'] })
  }

  override async invokeAtStep(step: number): Promise<boolean> {
    let sum = 0
    for (const tensor of this.reqTensors.get()) {
      for (const at of this.reqTensors.getTensorSteps(tensor.name)) {
        await pause()
        sum += Number(await tensor.reductionValue(at, 'max')) * (at + 1)
        await pause()
        if (tensor.name !== 'loss') sum += Number((await this.baseTrial.tensor(tensor.name).value(at)).data[0])
      }
    }
    await pause()
    const loss = Number(await this.baseTrial.tensor('loss').reductionValue(step, 'mean'))
    this.found({ tensor: 'fc.weight', value: sum + loss, message: `${sum} at ${step}` })
    await pause()
    return this.hasFound && step % 2 === 0
  }
}

/** Counts the steps that it is asked about on end: it can be used by one alone. */
class Counts extends Rule {
  #last = -1
  #count = 0

  override async invokeAtStep(step: number): Promise<boolean> {
    this.#count = step > this.#last ? this.#count + 1 : 1
    this.#last = step
    const count = this.#count
    await pause()
    this.found({ value: count, message: `${count} on end` })
    return true
  }
}

const MAKERS: readonly (() => Rule)[] = [
  () => new Overtraining(trial, { patience_train: 2, patience_validation: 2 }),
  () => new Overfit(trial, { patience: 2 }),
  () => new LossNotDecreasing(trial, { num_steps: 3, mode: 'TRAIN' }),
  () => new UnchangedTensor(trial, { tensor_regex: '.*', num_steps: 2, rtol: 0.5 }),
  () => new AllZero(trial, { tensor_regex: '.*' }),
  () => new NLPSequenceRatio(trial, { tensor_regex: 'weight', token_thresholds_percent: 10 }),
  () => new Reads(trial),
  () => new Counts(trial),
]

const tell = async (rules: Rule | readonly Rule[], options: EvaluateOptions = {}) => {
  const { findings, missing, problems, complete, stats } = await evaluate(rules, options)
  return { findings, missing, problems, complete, steps: stats.steps }
}

describe('two evaluations at once', () => {
  const windows: readonly EvaluateOptions[] = [
    {},
    { startStep: 10 },
    { endStep: 25 },
    { startStep: 5, endStep: 30, threads: 2 },
  ]

  it.each(part([0, 2], threads => threads === 2))(
    'of the same rules answer as alone, whatever the windows and the order (%i threads)',
    async threads => {
      for (const first of windows) {
        for (const second of windows) {
          const alone = await tell(
            MAKERS.map(make => make()),
            { ...first, threads },
          )
          const other = await tell(MAKERS.map(make => make()).reverse(), { ...second, threads })
          const shared = MAKERS.map(make => make())
          const both = [tell(shared, { ...first, threads }), tell([...shared].reverse(), { ...second, threads })]
          expect(await Promise.all(both)).toEqual([alone, other])
          expect(alone.findings.length).toBeGreaterThan(20)
        }
      }
    },
  )

  it.each(['mlp-vanishing', 'workers-4', 'xgb-cancer'])('of all rules that %s has data for', async name => {
    const trial = await createTrial(fixtureTrial(name).directory)
    const rules = () => [
      ...new RuleRegistry().all(trial).rules,
      new AllZero(trial, { tensor_regex: '.*', threshold: 0 }),
    ]
    const alone = await tell(rules(), { follow: false })
    const shared = rules()
    const both = [tell(shared, { follow: false }), tell(shared, { follow: false, threads: 2 })]
    expect(await Promise.all(both)).toEqual([alone, alone])
    expect(alone.findings).not.toEqual([])
  })

  it('begin anew: what a built-in rule has seen is of one evaluation', async () => {
    const rule = new Overtraining(trial, { patience_train: 2 })
    const first = await tell(rule)
    expect(await tell(rule)).toEqual(first)
    expect(rule.report).toMatchObject({ datapoints: 24, violations: first.findings.length })
    await Promise.all([tell(rule), tell(rule)])
    expect(rule.report).toMatchObject({ datapoints: 24, violations: first.findings.length })
  })

  it('a rule twice in one evaluation is two rules', async () => {
    const rule = new Overtraining(trial, { patience_train: 2 })
    const { findings } = await tell(rule)
    expect((await tell([rule, rule])).findings).toEqual(findings.flatMap(finding => [finding, finding]))
  })

  it('that share rules of one’s own don’t wait for each other, in whichever order', async () => {
    const [a, b] = [new Counts(trial, { name: 'a' }), new Counts(trial, { name: 'b' })]
    const [first, second] = await Promise.all([tell([a, b]), tell([b, a])])
    expect(first.findings.map(({ value }) => value)).toEqual(second.findings.map(({ value }) => value))
    expect(first.findings).toHaveLength(48)
  })
})

describe('an evaluation', () => {
  it('answers as alone beside invokeRule, and so does that', async () => {
    for (const make of MAKERS) {
      const steps: number[] = []
      const alone = make()
      await invokeRule(alone, { endStep: 20 })
      const findings = await tell(make())
      const shared = make()
      const fire = vi.spyOn(shared, 'fire').mockImplementation(async step => void steps.push(step))
      const [, found] = await Promise.all([invokeRule(shared, { endStep: 20 }), tell(shared)])
      expect(found).toEqual(findings)
      // A rule of one's own fires in both.
      const fired = fire.mock.calls.length
      const both = new Set(findings.findings.map(({ step }) => step)).size
      expect(fired).toBe(alone.report.ruleTriggered + (shared.forEvaluation() === shared ? both : 0))
    }
  })

  it('is not what a read of the program beside it is answered from', async () => {
    let go = () => {}
    const gone = new Promise<void>(resolve => {
      go = resolve
    })
    let isThere = () => {}
    const there = new Promise<void>(resolve => {
      isThere = resolve
    })
    const own: unknown[] = []
    class Waits extends Rule {
      override setRequiredTensors(step: number): void {
        this.reqTensors.add('fc.weight', [step])
      }
      async invokeAtStep(step: number): Promise<boolean> {
        isThere()
        await gone
        own.push((await this.baseTrial.tensor('fc.weight').value(step)).data)
        return false
      }
    }
    const evaluation = evaluate(new Waits(trial), { endStep: 1 })
    await there
    const spy = vi.spyOn(LocalStore.prototype, 'readInto')
    const { data } = await trial.tensor('fc.weight').value(0)
    expect(spy).toHaveBeenCalledTimes(1)
    if (data instanceof Float32Array) data.fill(7)
    go()
    await evaluation
    expect(spy).toHaveBeenCalledTimes(1)
    spy.mockRestore()
    expect(own).toHaveLength(1)
    expect(own[0]).not.toEqual(data)
  })

  it('stops at a signal while it waits for another one', async () => {
    const rule = new Counts(trial)
    const abort = new AbortController()
    const first = evaluate(rule)
    const second = evaluate(rule, { signal: abort.signal })
    const third = evaluate(rule, { endStep: 2 })
    abort.abort(new Error('enough'))
    await expect(second).rejects.toThrow('enough')
    expect((await third).findings.map(({ value }) => value)).toEqual([1, 2])
    expect((await first).findings).toHaveLength(24)
  })

  it('of a rule that asks for itself is refused, and not waited for', async () => {
    class Selfish extends Rule {
      async invokeAtStep(): Promise<boolean> {
        await evaluate(this)
        return false
      }
    }
    class SelfishAtOnce extends Rule {
      async invokeAtStep(step: number): Promise<boolean> {
        await this.invoke(step)
        return false
      }
    }
    for (const rule of [new Selfish(trial), new SelfishAtOnce(trial)]) {
      const { problems } = await evaluate(rule)
      expect(problems.map(({ error }) => error.message)).toEqual([
        expect.stringMatching(/expected another instance of rule Selfish.*: this one is in the middle of judging/),
      ])
      await expect(rule.invoke(0)).rejects.toThrow(UsageError)
    }
  })

  it('can be made by a rule, of others', async () => {
    class Asks extends Rule {
      async invokeAtStep(step: number): Promise<boolean> {
        const { findings } = await evaluate(new Counts(this.baseTrial), { endStep: step })
        return findings.length > 22
      }
    }
    expect((await evaluate(new Asks(trial))).findings.map(({ step }) => step)).toEqual([23])
  })
})

describe('a trial of a running job', () => {
  async function running() {
    const directory = mkdtempSync(join(scratch, 'running-'))
    const writer = new TrialWriter(directory)
    const write = (step: number): void => {
      writer.step({ step, tensors: [{ name: 'a', dtype: 'float32', shape: [1], values: [step] }] })
    }
    write(0)
    write(1)
    return { live: await createTrial(directory), write, end: () => writer.end() }
  }

  it('stays as it is for a rule that judges, and for nobody else', async () => {
    const { live, write, end } = await running()
    const seen: unknown[] = []
    class Looks extends Rule {
      override setRequiredTensors(step: number): void {
        this.reqTensors.add('a', [step])
      }
      async invokeAtStep(step: number): Promise<boolean> {
        if (step > 0) return false
        await new Promise<void>(resolve => outside.push(resolve))
        seen.push(this.baseTrial.steps(), await live.hasPassedStep(2), this.baseTrial.loadedAllSteps)
        seen.push(this.reqTensors.at('a', step).value().value.data[0])
        return false
      }
    }
    const outside: (() => void)[] = []
    const evaluation = evaluate(new Looks(live), { follow: true, pollMs: 5 })
    while (outside.length === 0) await pause()
    write(2)
    expect(await live.hasPassedStep(2)).toBe('AVAILABLE')
    expect(await live.refresh()).toBe(false)
    expect(live.steps()).toEqual([0, 1, 2])
    end()
    outside[0]!()
    expect((await evaluation).stats.steps).toBe(3)
    expect(seen).toEqual([[0, 1], 'NOT_YET_AVAILABLE', false, 0])
  })

  it('is refreshed by who asks for it, also within noRefresh', async () => {
    const { live, write } = await running()
    await noRefresh([live], async () => {
      write(2)
      expect(await live.hasPassedStep(2)).toBe('NOT_YET_AVAILABLE')
      await noRefresh(live, async () => {
        expect(await live.refresh()).toBe(true)
        expect(live.steps()).toEqual([0, 1, 2])
      })
      expect(live.steps()).toEqual([0, 1, 2])
      write(3)
      expect(await live.hasPassedStep(3)).toBe('NOT_YET_AVAILABLE')
    })
    expect(await live.hasPassedStep(3)).toBe('AVAILABLE')
  })

  it('is seen as it is now by what outlives the work that held it', async () => {
    const { live, write } = await running()
    let later = Promise.resolve('')
    await live.withoutRefresh(() => {
      later = sleep(20).then(() => live.hasPassedStep(2))
    })
    write(2)
    expect(await later).toBe('AVAILABLE')
  })

  it('ends for two evaluations that follow it, with the findings of each alone', async () => {
    const { live, write, end } = await running()
    const rule = new AllZero(live, { tensor_regex: 'a' })
    const both = [
      evaluate(rule, { follow: true, pollMs: 5 }),
      evaluate([new Counts(live), rule], { follow: true, pollMs: 5 }),
    ]
    for (const step of [2, 3, 4]) {
      await sleep(15)
      write(step)
    }
    end()
    const [first, second] = await Promise.all(both)
    expect(first!.findings.map(({ step }) => step)).toEqual([0])
    expect(second!.findings.map(({ rule, step, value }) => `${rule} ${step} ${value}`)).toEqual([
      'Counts 0 1',
      'AllZero 0 100',
      ...[1, 2, 3, 4].map(step => `Counts ${step} ${step + 1}`),
    ])
  })

  it('a stall is counted from the evaluation’s own beginning, by its own clock', async () => {
    const { live } = await running()
    let now = 0
    const rule = new StalledTrainingRule(live, { threshold: 60, now: () => now })
    now = 120_000
    const { findings } = await evaluate(rule, { follow: true, pollMs: 5, timeoutMs: 30 })
    expect(findings).toEqual([])
    const waiting = evaluate(rule, { follow: true, pollMs: 5, timeoutMs: 60_000 })
    await sleep(30)
    now += 61_000
    expect((await waiting).findings.map(({ value }) => value)).toEqual([61])
  })
})

describe.each([0, 2])('any number of them, however they interleave (%i threads)', threads => {
  it.each(part([1, 2, 3, 4, 5, 6], seed => seed <= 2))('%i', async seed => {
    const random = uniform(seed * 101 + threads)
    const below = (count: number): number => Math.floor(random() * count)
    const shared = MAKERS.map(make => make())
    const work: { readonly ran: Promise<unknown>; readonly alone: () => Promise<unknown> }[] = []
    for (let i = 0; i < 5; i++) {
      const startStep = below(20)
      const endStep = startStep + 1 + below(20)
      const chosen = shared.map((_, at) => at).filter(() => random() < 0.5)
      const options = { startStep, endStep, threads, ...(random() < 0.3 && { memory: 4 << 20 }) }
      const delay = below(6)
      // `Counts` goes on from where another one has left it: that is its own business.
      const ask = (rules: readonly Rule[]) =>
        tell(
          rules.filter(rule => !(rule instanceof Counts)),
          options,
        )
      const read = async () => {
        const { data } = await trial.tensor('fc.weight').value(startStep)
        return [...data, await trial.tensor('loss').reductionValue(startStep, 'max'), trial.steps()]
      }
      const isRead = random() < 0.2
      work.push({
        ran: sleep(delay).then((): Promise<unknown> => (isRead ? read() : ask(chosen.map(at => shared[at]!)))),
        alone: () => (isRead ? read() : ask(chosen.map(at => MAKERS[at]!()))),
      })
    }
    const answers = await Promise.all(work.map(({ ran }) => ran))
    for (const [i, { alone }] of work.entries()) expect(answers[i]).toEqual(await alone())
  })
})

it('a rule made of a built-in one is itself in every evaluation', async () => {
  class Mine extends VanishingGradient {
    readonly steps: number[] = []
    override invokeAtStep(step: number): boolean {
      this.steps.push(step)
      return super.invokeAtStep(step)
    }
  }
  const rule = new Mine(trial)
  await Promise.all([evaluate(rule, { endStep: 3 }), evaluate(rule, { endStep: 2 })])
  expect(rule.steps).toEqual([0, 1, 2, 0, 1])
})
