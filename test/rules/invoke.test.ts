/** invokeRule, rule.invoke and RequiredTensors, as smdebug has them. */

import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import {
  createTrial,
  InvalidWorker,
  invokeRule,
  type Logger,
  NoMoreData,
  Rule,
  RuleEvaluationConditionMet,
  ShapeUnavailableForStep,
  SimilarAcrossRuns,
  StalledTrainingRule,
  StepNotYetAvailable,
  StepUnavailable,
  TensorUnavailable,
  TensorUnavailableForStep,
  type Trial,
  UsageError,
  WaitTimeout,
} from '#dist/index.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { fixtureTrial } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('invoke')
let trial: Trial

beforeAll(async () => {
  const writer = new TrialWriter(join(scratch, 'trial'))
  // Steps 0, 2, 4, …, 10; `b` at every other of them, `c` without its value.
  for (let step = 0; step <= 10; step += 2) {
    writer.step({
      step,
      mode: 'TRAIN',
      modeStep: step / 2,
      tensors: [
        { name: 'a', dtype: 'float32', shape: [2], values: [step, 1] },
        ...(step % 4 === 0 ? [{ name: 'b', dtype: 'float32', shape: [1], values: [step] } as const] : []),
        { name: 'c', reductions: { mean: step } },
      ],
    })
  }
  writer.end()
  trial = await createTrial(join(scratch, 'trial'))
})

/** Keeps the steps it was invoked at, and does what it is told there. */
class Told extends Rule {
  readonly steps: number[] = []
  readonly #act: (step: number, rule: Told) => boolean | Promise<boolean>

  constructor(base: Trial, act: (step: number, rule: Told) => boolean | Promise<boolean>, logger?: Logger | null) {
    super(base, { logger })
    this.#act = act
  }

  invokeAtStep(step: number): boolean | Promise<boolean> {
    this.steps.push(step)
    return this.#act(step, this)
  }
}

const silent = () => false

describe('the log', () => {
  afterEach(() => {
    vi.restoreAllMocks()
  })

  it('goes to the console by default: each step that meets the condition', async () => {
    const info = vi.spyOn(console, 'info').mockImplementation(() => {})
    const rule = new Told(trial, step => {
      rule.logger.debug(`looking at ${step}`)
      return step % 4 === 0
    })
    await invokeRule(rule, { endStep: 7 })
    expect(info.mock.calls).toEqual([0, 4].map(step => [new RuleEvaluationConditionMet('Told', step).message]))
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const error = vi.spyOn(console, 'error').mockImplementation(() => {})
    rule.logger.warn('careful')
    rule.logger.error('broken')
    expect([warn.mock.calls, error.mock.calls]).toEqual([[['careful']], [['broken']]])
  })

  it('is silent if it is null, and goes where it is told', async () => {
    const info = vi.spyOn(console, 'info').mockImplementation(() => {})
    await invokeRule(new Told(trial, () => true, null), { endStep: 7 })
    const told: string[] = []
    const logger = { debug: () => {}, info: (text: string) => told.push(text), warn: () => {}, error: () => {} }
    await invokeRule(new Told(trial, () => true, logger), { endStep: 3 })
    expect([info.mock.calls, told.length]).toEqual([[], 2])
  })
})

describe('invokeRule', () => {
  it('goes on to the end of the job, past steps that were not saved, and throws NoMoreData there', async () => {
    const rule = new Told(trial, silent)
    await expect(invokeRule(rule)).rejects.toThrow(NoMoreData)
    expect(rule.steps).toEqual([0, 2, 4, 6, 8, 10])
  })

  it('invokes at the first step, and not at the last', async () => {
    const rule = new Told(trial, silent)
    await invokeRule(rule, { startStep: 2, endStep: 8 })
    expect(rule.steps).toEqual([2, 4, 6])
    await invokeRule(rule, { startStep: null, endStep: 1 })
    expect(rule.steps).toEqual([2, 4, 6, 0])
  })

  it.each([
    ['TensorUnavailableForStep', () => new TensorUnavailableForStep('a', 2, 'GLOBAL', 'gone')],
    ['StepUnavailable', () => new StepUnavailable(2, 'GLOBAL', 'gone')],
    ['TensorUnavailable', () => new TensorUnavailable('a', 'trial', [])],
  ])('goes on after a %s', async (_, error) => {
    const debug = vi.fn()
    const rule = new Told(
      trial,
      step => {
        if (step === 2) throw error()
        return false
      },
      { debug, info() {}, warn() {}, error() {} },
    )
    await invokeRule(rule, { endStep: 6 })
    expect(rule.steps).toEqual([0, 2, 4])
    expect(debug).toHaveBeenCalled()
  })

  it('throws any other error', async () => {
    const rule = new Told(trial, () => Promise.reject(new RangeError('mine')))
    await expect(invokeRule(rule, { endStep: 6 })).rejects.toThrow(RangeError)
    expect(rule.steps).toEqual([0])
  })

  it.each([
    ['NoMoreData', new NoMoreData(4, 'GLOBAL', 2)],
    ['StepNotYetAvailable', new StepNotYetAvailable(4, 'GLOBAL', 'not yet')],
    ['ShapeUnavailableForStep', new ShapeUnavailableForStep('a', 4, 'GLOBAL', 'gone')],
    ['InvalidWorker', new InvalidWorker('nobody', [])],
  ])('throws a %s', async (_, error) => {
    const rule = new Told(trial, () => Promise.reject(error))
    await expect(invokeRule(rule, { endStep: 6 })).rejects.toBe(error)
    expect(rule.steps).toEqual([0])
  })

  it('throws NoMoreData where the last step is beyond the end of the job', async () => {
    const rule = new Told(trial, silent)
    await expect(invokeRule(rule, { startStep: 8, endStep: 100 })).rejects.toThrow(NoMoreData)
    expect(rule.steps).toEqual([8, 10])
  })

  it('logs that the condition is met, and goes on', async () => {
    const info = vi.fn()
    const rule = new Told(trial, step => step >= 4, { debug() {}, info, warn() {}, error() {} })
    await invokeRule(rule, { endStep: 10 })
    expect(rule.steps).toEqual([0, 2, 4, 6, 8])
    expect(info).toHaveBeenCalledTimes(3)
  })

  it('throws that the condition is met if it is asked to', async () => {
    const rule = new Told(trial, step => step === 4)
    const met = invokeRule(rule, { raiseEvalCond: true })
    await expect(met).rejects.toMatchObject({ ruleName: 'Told', step: 4, endOfRule: false })
    await expect(met).rejects.toThrow(RuleEvaluationConditionMet)
  })

  it('ends where the rule has nothing left to look for', async () => {
    const rule = new Told(trial, step => {
      throw new RuleEvaluationConditionMet('Told', step, true)
    })
    await invokeRule(rule)
    expect(rule.steps).toEqual([0])
  })

  it('does not wait for ever', async () => {
    const running = await createTrial(fixtureTrial('workers-running').directory)
    const rule = new Told(running, silent)
    await expect(invokeRule(rule, { timeoutMs: 20, pollMs: 5 })).rejects.toThrow(WaitTimeout)
    expect(rule.steps).toEqual([0, 1, 2, 3, 4])
  })

  it('stops at a signal', async () => {
    const abort = new AbortController()
    const rule = new Told(trial, () => {
      abort.abort(new Error('enough'))
      return false
    })
    await expect(invokeRule(rule, { signal: abort.signal })).rejects.toThrow('enough')
  })

  it.each([{ startStep: -1 }, { endStep: Number.NaN }])('refuses %j', async options => {
    await expect(invokeRule(new Told(trial, silent), options)).rejects.toThrow(UsageError)
  })

  it('finds a stall, or the end, whatever the step', async () => {
    const running = await createTrial(fixtureTrial('workers-running').directory)
    let now = 0
    const clock = () => {
      now += 40_000
      return now
    }
    const rule = new StalledTrainingRule(running, { threshold: '60', now: clock })
    await expect(invokeRule(rule, { raiseEvalCond: true, pollMs: 1 })).rejects.toMatchObject({ endOfRule: true })
    await expect(invokeRule(new StalledTrainingRule(trial))).rejects.toThrow(NoMoreData)
  })

  it('waits for a stall longer than any threshold, if no other time is given', async () => {
    const running = await createTrial(fixtureTrial('workers-running').directory)
    let minutes = 0
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => minutes * 60_000)
    const rule = new StalledTrainingRule(running, { threshold: String(30 * 60), now: () => 0 })
    const abort = new AbortController()
    const onWait = (): void => {
      if (minutes > 0) abort.abort(new Error('it still waits'))
      minutes = 20
    }
    try {
      const invoked = rule.invoke(0, { pollMs: 1, signal: abort.signal, onWait })
      await expect(invoked).rejects.toThrow('it still waits')
    } finally {
      clock.mockRestore()
    }
  })
})

describe('an invocation', () => {
  /** A running job, and what writes its next step. */
  async function running(): Promise<{ readonly trial: Trial; readonly writeStep: (step: number) => void }> {
    const directory = mkdtempSync(join(scratch, 'running-'))
    const writer = new TrialWriter(directory)
    const writeStep = (step: number): void => {
      writer.step({ step, tensors: [{ name: 'a', dtype: 'float32', shape: [1], values: [step] }] })
    }
    writeStep(0)
    return { trial: await createTrial(directory), writeStep }
  }

  it('sees one trial: what comes meanwhile is not looked for', async () => {
    const { trial, writeStep } = await running()
    const seen: string[] = []
    const rule = new Told(trial, async step => {
      writeStep(1)
      seen.push(
        await trial.hasPassedStep(1),
        String(trial.steps()),
        String((await trial.tensor('a').value(step)) !== null),
      )
      return false
    })
    await rule.invoke(0)
    expect(seen).toEqual(['NOT_YET_AVAILABLE', '0', 'true'])
  })

  it('leaves the trial as it was, also where it fails', async () => {
    const { trial, writeStep } = await running()
    const rule = new Told(trial, () => Promise.reject(new Error('in the middle')))
    await expect(rule.invoke(0)).rejects.toThrow('in the middle')
    writeStep(1)
    expect(await trial.hasPassedStep(1)).toBe('AVAILABLE')
  })

  it('waits for its step', async () => {
    const { trial, writeStep } = await running()
    const rule = new Told(trial, silent)
    const invoked = rule.invoke(1, { pollMs: 5 })
    writeStep(1)
    await invoked
    expect(rule.steps).toEqual([1])
  })

  it('of SimilarAcrossRuns waits for the step of the other trial', async () => {
    const { trial: base, writeStep } = await running()
    writeStep(1)
    await base.refresh()
    const { trial: other } = await running()
    const rule = new SimilarAcrossRuns(base, { otherTrials: [other] })
    await expect(rule.invoke(1, { pollMs: 5, timeoutMs: 20 })).rejects.toThrow(WaitTimeout)
  })

  it('runs the actions before it throws', async () => {
    const fired: unknown[] = []
    class Large extends Rule {
      async invokeAtStep(step: number): Promise<boolean> {
        const value = (await this.baseTrial.tensor('a').reductionValue(step, 'max')) as number
        this.found({ tensor: 'a', value, threshold: 3, message: `a is ${value}` })
        return value > 3
      }
    }
    const rule = new Large(trial, { actions: firing => void fired.push(firing), name: 'mine' })
    await rule.invoke(2)
    await expect(rule.invoke(4)).rejects.toThrow(RuleEvaluationConditionMet)
    expect(fired).toEqual([
      expect.objectContaining({ rule: 'Large', name: 'mine', step: 4, message: 'a is 4', trial: trial.name }),
    ])
    expect(rule.report).toMatchObject({ ruleTriggered: 1, violations: 1, datapoints: 2 })
  })
})

describe('required tensors', () => {
  class Needs extends Rule {
    readonly got: unknown[] = []
    readonly #add: (rule: Needs, step: number) => void

    constructor(base: Trial, add: (rule: Needs, step: number) => void, otherTrials: Trial[] = []) {
      super(base, { otherTrials })
      this.#add = add
    }

    override setRequiredTensors(step: number): void {
      this.#add(this, step)
    }

    invokeAtStep(): boolean {
      const names = this.reqTensors.getNames()
      this.got.push(names.map(name => [name, this.reqTensors.getTensorSteps(name)]))
      return false
    }
  }

  it('are added by name and by pattern, and their steps are put together', async () => {
    const steps = [4]
    const rule = new Needs(trial, ({ reqTensors }, step) => {
      reqTensors.add('a', steps)
      reqTensors.add('a', [step, 0])
      reqTensors.add('^[ab]$', [step], { regex: true })
    })
    await rule.invoke(8)
    expect(rule.got).toEqual([
      [
        ['a', [0, 4, 8]],
        ['b', [8]],
      ],
    ])
    expect(steps).toEqual([4])
  })

  it('can be had as tensors, and be cleared', async () => {
    const rule = new Needs(trial, ({ reqTensors }, step) => {
      reqTensors.add('b', [step])
      reqTensors.clear()
      reqTensors.add('a', [step])
    })
    await rule.invoke(0)
    expect(rule.reqTensors.get().map(({ name }) => name)).toEqual(['a'])
    rule.reqTensors.clear()
    expect(rule.reqTensors.getNames()).toEqual([])
  })

  it.each([
    ['a name nobody saved', 'z', TensorUnavailable],
    ['a tensor that this step does not have', 'b', TensorUnavailableForStep],
    ['a value of which only a reduction was saved', 'c', TensorUnavailableForStep],
  ])('fail for %s', async (_, name, error) => {
    const rule = new Needs(trial, ({ reqTensors }, step) => reqTensors.add(name, [step]))
    await expect(rule.invoke(2)).rejects.toThrow(error)
    expect(rule.got).toEqual([])
  })

  it('are had by their reductions where those were saved', async () => {
    const rule = new Needs(trial, ({ reqTensors }, step) => reqTensors.add('c', [step], { reductions: ['mean'] }))
    await rule.invoke(2)
    expect(rule.reqTensors.at('c', 2).reduction('mean').value).toBe(2)
  })

  it('come from another trial of the rule, and from no other', async () => {
    const other = await createTrial(join(scratch, 'trial'), { name: 'other' })
    const rule = new Needs(
      trial,
      ({ reqTensors, otherTrials: [from] }, step) => reqTensors.add('a', [step], { trial: from! }),
      [other],
    )
    await rule.invoke(2)
    expect(rule.reqTensors.getNames(other)).toEqual(['a'])
    expect(rule.reqTensors.getNames()).toEqual([])
    const stranger = await createTrial(join(scratch, 'trial'))
    expect(() => rule.reqTensors.add('a', [2], { trial: stranger })).toThrow(UsageError)
  })

  it('know the nearest step of a tensor', () => {
    const rule = new Needs(trial, () => {})
    expect(() => rule.reqTensors.at('b', 6)).toThrow(/the nearest step with it: 4/)
    expect(() => rule.reqTensors.at('b', 5)).toThrow(StepUnavailable)
  })
})
