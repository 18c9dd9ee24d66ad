/** `trialscan check`: what it prints of what rules find, and its exit codes. */

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Verdict } from '#dist/cli/format/ci/report.js'
import type { JudgingReport, JudgingRule } from '#dist/cli/format/finding/format.js'
import { findingJsonl } from '#dist/cli/format/finding/lines.js'
import { findingTable, worstOf } from '#dist/cli/format/finding/table.js'
import { ruleText, seconds } from '#dist/cli/options/arguments.js'
import { colorsFor, widthOf } from '#dist/cli/terminal.js'
import {
  Confusion,
  type DiagnosedFinding,
  FormatError,
  type GlobalStep,
  type ModeStep,
  parseHookConfig,
  RuleRegistry,
  VanishingGradient,
} from '#dist/index.js'
import { copyTrial, corruptions } from '../../fixtures/corrupt.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { FaultyS3 } from '../support/faulty-s3.js'
import { isRequired, ROOT } from '../support/golden.js'
import { LiveWriter } from '../support/live-writer.js'
import { part, whenLong } from '../support/part.js'
import { following, objects, PLAIN, trialscan } from './run.js'

const fixture = (name: string): string => join(ROOT, 'fixtures/trials', name)
const VANISHING = fixture('mlp-vanishing')
const XGB = fixture('xgb-cancer')
const FINDING_KEYS = [
  ...['rule', 'name', 'step', 'mode', 'mode_step', 'tensor', 'worker', 'value', 'threshold', 'message', 'cause'],
]

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'trialscan-check-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const NASTY = 'w\n\x1b[2J\u202e'
const finding = (given: Partial<Record<keyof DiagnosedFinding, unknown>> = {}): DiagnosedFinding => ({
  rule: 'VanishingGradient',
  name: 'VanishingGradient',
  trial: 't',
  step: 12 as GlobalStep,
  mode: 'TRAIN',
  modeStep: 10 as ModeStep,
  tensor: 'gradient/fc.weight',
  worker: 'worker_0',
  value: 1e-9,
  threshold: 1e-7,
  message: 'mean of |gradient/fc.weight| is 1e-9, below 1e-7',
  cause: null,
  ...(given as Partial<DiagnosedFinding>),
})
const rule = (ruleName: string, name = ruleName): JudgingRule => ({
  ruleName,
  name,
  meaning: `What ${ruleName} means.`,
  advice: 'Do something.',
  isAsked: true,
  counts: true,
  parameters: [],
})
const VERDICT: Verdict = { word: 'failed', exitCode: 1, text: 'what was found' }
const judged = (given: Partial<JudgingReport> = {}): JudgingReport => ({
  trial: 't',
  workers: 1,
  onlyWorkers: null,
  rules: [rule('VanishingGradient')],
  findings: [],
  missing: [],
  toSave: [],
  selection: null,
  onlyByName: [],
  problems: [],
  values: 0,
  unread: 0,
  isOutOfRange: false,
  isUnjudged: false,
  steps: 15,
  state: 'ended',
  ...given,
})
const unreadable = new FormatError('TruncatedRecord', 'file:///t/e%20f: short', { url: 'file:///t/e%20f', offset: 7 })

describe('--rule', () => {
  const parsed = (text: string): unknown => {
    const first = ruleText(text)
    return [first!.rule, first!.parameters]
  }
  it.each<[string, string, Record<string, string>]>([
    ['AllZero', 'AllZero', {}],
    [' AllZero , threshold=90', 'AllZero', { threshold: '90' }],
    ['A,names=gradients,weights,threshold=9', 'A', { names: 'gradients,weights', threshold: '9' }],
    ['A,regex=a=b,c', 'A', { regex: 'a=b,c' }],
    ['A,regex=^(fc|conv){1,3}$,k=', 'A', { regex: '^(fc|conv){1,3}$', k: '' }],
    ['A,numSteps=3,min-diag=.5', 'A', { numSteps: '3', 'min-diag': '.5' }],
  ])('%s', (text, name, parameters) => {
    expect(parsed(text)).toEqual([name, parameters])
  })

  it.each([
    ['', /name of a rule/],
    ['threshold=1', /name of the rule first/],
    ['AllZero,ReLU', /parameter=value after the comma, got "ReLU"/],
    ['AllZero,threshold=1,threshold=2', /threshold is given twice/],
  ])('%j is refused', (text, message) => {
    expect(() => ruleText(text)).toThrow(message)
  })

  it('reads seconds', () => {
    expect([seconds('0'), seconds('1.5'), seconds('.25')]).toEqual([0, 1.5, 0.25])
    for (const text of ['', '-1', '1e3', 'abc', '10000000']) expect(() => seconds(text)).toThrow(/number of seconds/)
  })
})

describe('jsonl', () => {
  const format = findingJsonl(false)

  it('has the keys in their order', () => {
    expect(format.line(finding())).toBe(
      '{"rule":"VanishingGradient","name":"VanishingGradient","step":12,"mode":"TRAIN","mode_step":10,' +
        '"tensor":"gradient/fc.weight","worker":"worker_0","value":1e-9,"threshold":1e-7,' +
        '"message":"mean of |gradient/fc.weight| is 1e-9, below 1e-7","cause":null}\n',
    )
    expect(JSON.parse(format.line(finding({ cause: 7 })))).toMatchObject({ cause: 7 })
  })

  it('has strings for numbers that JSON does not have, and null for what is none', () => {
    const line = format.line(finding({ tensor: null, worker: null, value: Number.NaN, threshold: null }))
    expect(JSON.parse(line)).toMatchObject({ tensor: null, worker: null, value: 'NaN', threshold: null })
    expect(format.line(finding({ value: Number.NEGATIVE_INFINITY }))).toContain('"value":"-Infinity"')
  })

  it('ends with what was missing and what could not be read', () => {
    const missing = { rule: 'DeadRelu', name: 'relus', trial: 't', missing: 'no tensors', partial: false }
    const problems = [{ step: 3, tensor: 'a', error: unreadable }]
    expect(format.end(judged({ findings: [finding()], missing: [missing], problems }), VERDICT)).toBe(
      '{"rule":"DeadRelu","name":"relus","missing":"no tensors","partial":false}\n' +
        '{"problem":"/t/e f: short","step":3,"tensor":"a","code":"TruncatedRecord"}\n',
    )
  })

  it('does no harm on a terminal', () => {
    const line = findingJsonl(true).line(finding({ tensor: NASTY, message: NASTY }))
    expect([line.includes('\x1b'), line.includes('\u202e'), line.match(/\n/g)?.length]).toEqual([false, false, 1])
    expect(JSON.parse(line)).toMatchObject({ tensor: NASTY })
  })
})

describe('table', () => {
  const format = findingTable(100, colorsFor(null))

  it('tells what is wrong, since when, where it is worst, and what to do', () => {
    const findings = [
      finding({ step: 0, mode: 'GLOBAL', modeStep: 0 }),
      finding({ step: 12, tensor: 'b', value: 1e-12 }),
      finding({ step: 106, modeStep: 80, tensor: 'c' }),
    ]
    const rules = [rule('VanishingGradient'), rule('AllZero'), rule('DeadRelu'), rule('DeadRelu', 'my relus')]
    const missing = [
      { rule: 'DeadRelu', name: 'my relus', trial: 't', missing: 'tensors that match "x"', partial: false },
    ]
    expect(format.end(judged({ rules, findings, missing }), VERDICT)).toMatchInlineSnapshot(`
      "t: VanishingGradient at step 0: mean of |gradient/fc.weight| is 1e-9, below 1e-7.

      1 of 3 rules fired; 15 steps judged; the job has ended

      VanishingGradient fired at 3 steps, from 0 to 106, because of 3 tensors
        gradient/fc.weight, b and c
        What VanishingGradient means.
        Worst at step 12 (TRAIN 10): mean of |gradient/fc.weight| is 1e-9, below 1e-7
        What to do: Do something.

      Nothing found by
        AllZero, DeadRelu

      Data missing
        my relus (DeadRelu): tensors that match "x"
      "
    `)
  })

  it('says so when nothing is wrong', () => {
    expect(format.end(judged(), VERDICT)).toMatchInlineSnapshot(`
      "t: 1 rule judged 15 steps and found nothing wrong; the job has ended

      Nothing found by
        VanishingGradient
      "
    `)
  })

  it('says which part of a rule was not judged', () => {
    const missing = [
      { rule: 'DeadRelu', name: 'DeadRelu', trial: 't', missing: 'tensors that match "x"', partial: true },
    ]
    const text = format.end(judged({ rules: [rule('DeadRelu')], missing }), VERDICT)
    expect(text).toMatch(/^t: 1 rule judged 15 steps and found nothing wrong;/)
    expect(text).toContain('Nothing found by\n  DeadRelu\n')
    expect(text).toContain('Data missing\n  DeadRelu, for a part of it: tensors that match "x"\n')
  })

  it('names three tensors, and all where it is told to', () => {
    const findings = ['a', 'b', 'c', 'd', 'e'].map(tensor => finding({ tensor }))
    expect(format.end(judged({ findings }), VERDICT)).toMatch(/because of 5 tensors\n {2}a, b, c and 2 more\n/)
    const full = findingTable(100, colorsFor(null), { isFull: true })
    expect(full.end(judged({ findings }), VERDICT)).toMatch(/because of 5 tensors\n {2}a, b, c, d and e\n/)
  })

  it('names workers where there are several', () => {
    const findings = [finding({ worker: 'worker_1' }), finding({ worker: 'worker_1', tensor: 'b', cause: 0 })]
    const text = format.end(judged({ workers: 2, findings }), VERDICT)
    expect(text).toMatch(/^t: VanishingGradient at step 12 \(TRAIN 10\) of worker_1: /)
    expect(text).toContain('fired at step 12, because of 2 tensors of worker_1\n')
    expect(format.end(judged({ findings }), VERDICT)).not.toContain('worker_1')
    const all = format.end(judged({ workers: 3, steps: null }), VERDICT)
    expect(all).toMatch(/^t: 1 rule judged what there was of 3 workers and found nothing wrong/)
  })

  it('indents what follows under its cause, and tells what does not follow', () => {
    const findings = [
      finding({ rule: 'DeadRelu', name: 'DeadRelu', tensor: 'relu', message: 'dead' }),
      finding({ cause: 0 }),
      finding({ step: 20, cause: 0 }),
      finding({ rule: 'Overfit', name: 'Overfit', step: 40, tensor: null, message: 'by heart' }),
    ]
    const rules = ['Overfit', 'VanishingGradient', 'DeadRelu'].map(name => rule(name))
    expect(format.end(judged({ findings, rules }), VERDICT)).toMatchInlineSnapshot(`
      "t: DeadRelu at step 12 (TRAIN 10): relu: dead (1e-9, threshold 1e-7). It explains VanishingGradient.
        Apart from that, Overfit fired at step 40.

      3 of 3 rules fired; 15 steps judged; the job has ended

      DeadRelu fired at step 12
        What DeadRelu means.
        Worst at step 12 (TRAIN 10): relu: dead (1e-9, threshold 1e-7)
        What to do: Do something.
        What follows from it:
          VanishingGradient at 2 steps, from 12 to 20: gradient/fc.weight

      Overfit fired at step 40
        What Overfit means.
        Worst at step 40 (TRAIN 10): by heart (1e-9, threshold 1e-7)
        What to do: Do something.
      "
    `)
  })

  it('says in a sentence each what is alike, what spreads, what follows, and what does not', () => {
    const other = (rule: string, cause: number | null, step = 12) =>
      finding({ rule, name: rule, tensor: rule, cause, step })
    const text = (findings: readonly DiagnosedFinding[]) => {
      const rules = [...new Set(findings.map(({ rule }) => rule))].map(name => rule(name))
      return format
        .end(judged({ findings, rules, workers: 2 }), VERDICT)
        .split('\n\n')[0]!
        .replaceAll(/\s+/g, ' ')
    }
    const first =
      't: VanishingGradient at step 12 (TRAIN 10) of worker_0: mean of |gradient/fc.weight| is 1e-9, below 1e-7.'
    const same = [finding(), finding({ tensor: 'b' }), finding({ tensor: 'c' })]
    expect(text(same)).toBe(`${first} The same is true of 2 more tensors.`)
    expect(text([finding(), finding({ worker: 'worker_1' })])).toBe(`${first} The same is true of 1 more worker.`)
    const spread = [finding(), finding({ tensor: 'b', cause: 0 })]
    expect(text(spread)).toBe(`${first} It spreads to 1 more tensor.`)
    expect(text([...spread, other('AllZero', 0)])).toBe(`${first} It spreads to 1 more tensor and explains AllZero.`)
    expect(text([...spread, other('AllZero', 0), other('DeadRelu', 0)])).toBe(
      `${first} It spreads to 1 more tensor, and explains AllZero and DeadRelu.`,
    )
    expect(text([finding(), other('AllZero', null), other('AllZero', 1, 20), other('DeadRelu', null)])).toBe(
      `${first} Apart from that, AllZero fired from step 12 on and DeadRelu at step 12.`,
    )
    const many = ['A', 'B', 'C', 'D', 'E'].map(name => other(name, null))
    expect(text([finding(), ...many])).toBe(
      `${first} Apart from that, A fired at step 12, B at step 12, C at step 12, and so did 2 more rules.`,
    )
  })

  it('keeps to the width, whatever the names', () => {
    const long = 'a/very/long/name/'.repeat(12)
    const advice = 'Lower the learning rate. '.repeat(20)
    for (const width of [40, 80, 300]) {
      const text = findingTable(width, colorsFor(null)).end(
        judged({
          rules: [
            { ...rule('VanishingGradient', long), advice },
            ...Array.from({ length: 20 }, (_, i) => rule(`R${i}`)),
          ],
          findings: [finding({ name: long, tensor: long })],
          missing: [{ rule: 'R1', name: 'R1', trial: 't', missing: advice, partial: false }],
          problems: Array.from({ length: 30 }, (_, step) => {
            const url = `file:///t/e${step}`
            return { step, tensor: long, error: new FormatError('TruncatedRecord', `${long}, ${url}: short`, { url }) }
          }),
        }),
        VERDICT,
      )
      const words = text.split('\n').filter(line => !line.includes(long))
      expect(Math.max(...words.map(widthOf))).toBeLessThanOrEqual(Math.min(100, width))
      expect(text).toMatch(/and 20 more\n/)
    }
  })

  it('does no harm', () => {
    const rules = [rule('VanishingGradient', NASTY)]
    const text = format.end(
      judged({ rules, trial: NASTY, findings: [finding({ name: NASTY, tensor: NASTY })] }),
      VERDICT,
    )
    expect([text.includes('\x1b'), text.includes('\u202e')]).toEqual([false, false])
    expect(text).toContain('w\\n\\x1b[2J\\u202e')
  })

  it.each<[string, readonly (readonly [number | null, number | null])[], number]>([
    [
      'times too small',
      [
        [1e-8, 1e-7],
        [1e-12, 1e-7],
        [1e-6, 1e-7],
      ],
      1,
    ],
    [
      'times too large',
      [
        [20, 10],
        [1e6, 10],
        [10.1, 10],
      ],
      1,
    ],
    [
      'zero below one that is not',
      [
        [1e-30, 1e-7],
        [0, 1e-7],
      ],
      1,
    ],
    [
      'of another sign, by distance',
      [
        [-1, 0.1],
        [-50, 0.1],
        [0.01, 0.1],
      ],
      1,
    ],
    [
      'NaN above all',
      [
        [1e300, 1],
        [Number.NaN, 1],
        [-1e300, 1],
      ],
      1,
    ],
    [
      'infinite above all',
      [
        [1e300, 1],
        [Number.POSITIVE_INFINITY, null],
      ],
      1,
    ],
    [
      'measured above not measured',
      [
        [null, null],
        [1, null],
      ],
      1,
    ],
    [
      'the first of equals',
      [
        [null, null],
        [null, 3],
      ],
      0,
    ],
  ])('worst: %s', (_, numbers, expected) => {
    const findings = numbers.map(([value, threshold]) => finding({ value, threshold }))
    expect(worstOf(findings)).toBe(findings[expected])
  })
})

const firstLines: readonly [trial: string, code: number, line: RegExp][] = [
  ['cnn-good', 0, /^cnn-good: \d+ rules judged 15 steps and found nothing wrong; /],
  ['cnn-bad-init', 1, /^cnn-bad-init: PoorWeightInitialization at step 0 /],
  ['cnn-dead-relu', 1, /^cnn-dead-relu: DeadRelu at step 0 /],
  ['cnn-exploding', 1, /^cnn-exploding: ExplodingTensor at step 5 .*: CNN_conv1.weight has 72 NaN/],
  ['cnn-overfit', 1, /^cnn-overfit: Overfit at step 393 /],
  ['mlp-vanishing', 1, /^mlp-vanishing: VanishingGradient at step 0 /],
  ['mlp-saturated', 1, /^mlp-saturated: SaturatedActivation at step 0 /],
  ['mlp-all-zero', 1, /^mlp-all-zero: AllZero at step 0 /],
  ['autoencoder', 0, /^autoencoder: \d+ rules judged 16 steps and found nothing wrong; /],
  ['xgb-cancer', 0, /^xgb-cancer: \d+ rules judged 7 steps and found nothing wrong; /],
]
const available = firstLines.filter(
  ([trial]) => isRequired('shared') || existsSync(join(ROOT, '../shared/trials', trial)),
)
it.each(part(available, ([trial]) => trial === 'mlp-vanishing'))(
  'the first line of the report of %s tells the cause',
  async (trial, code, line) => {
    const outcome = await trialscan('check', join(ROOT, '../shared/trials', trial), '--format', 'table')
    expect([outcome.stdout.split('\n')[0], outcome.code]).toEqual([expect.stringMatching(line), code])
  },
)

describe('check', () => {
  it('prints a line a finding, and exits with 1', async () => {
    const { code, stdout, stderr } = await trialscan('check', VANISHING, '--rule', 'VanishingGradient,threshold=0.001')
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^trialscan: verdict: failed; 1 of 1 rule fired; .*\n$/)])
    const found = objects(stdout)
    for (const one of found) expect(Object.keys(one)).toEqual(FINDING_KEYS)
    expect([...new Set(found.map(({ step }) => step))]).toEqual([0, 10, 20, 30, 40, 62, 72, 82, 92])
    expect(found[0]).toMatchObject({ rule: 'VanishingGradient', mode: 'TRAIN', threshold: 0.001 })
  })

  it('exits with 0 where nothing is found, or findings are no failure', async () => {
    const silent = await trialscan('check', VANISHING, '--rule', 'VanishingGradient,threshold=1e-30')
    const text = '1 rule judged 9 steps and found nothing wrong; the job has ended'
    expect(silent).toEqual({ code: 0, stdout: '', stderr: `trialscan: verdict: passed; ${text}\n` })
    const loud = ['check', VANISHING, '--rule', 'VanishingGradient,threshold=0.001']
    expect((await trialscan(...loud, '--no-fail-on-finding')).code).toBe(0)
    expect((await trialscan(...loud, '--fail-on-finding')).code).toBe(1)
  })

  it('runs all rules that the data allow, and says what the others lack', async () => {
    const { stdout } = await trialscan('check', XGB)
    expect(await trialscan('check', XGB, '--all')).toMatchObject({ stdout })
    const missing = objects(stdout).filter(one => 'missing' in one)
    expect(missing.map(({ rule }) => rule)).toEqual(expect.arrayContaining(['VanishingGradient', 'DeadRelu']))
    for (const one of missing) expect(Object.keys(one)).toEqual(['rule', 'name', 'missing', 'partial'])
    const table = await trialscan('check', XGB, '--format', 'table')
    expect(table.stdout).toMatch(/^xgb-cancer: \d+ rules judged 3 steps and found nothing wrong; the job has ended\n/)
    expect(table.stdout).not.toMatch(/Data missing|Overtraining/)
    const [, count, names] = /\nNot judged\n {2}(\d+) rules had nothing to judge: ((.*\n)*)/.exec(table.stdout)!
    const lacking = missing.filter(({ partial }) => !partial)
    const tooShort = [...names!.matchAll(/^ {2}(\w+) needs /gm)].map(([, name]) => name)
    expect(tooShort).toEqual(['LossNotDecreasing'])
    expect(Number(count)).toBe(new Set(lacking.map(({ name }) => name)).size - tooShort.length)
    for (const { name } of lacking) expect(names).toContain(name)
    expect(table.stdout).toContain('(--explain says why)')
  })

  it('explains which rules judge, with which parameters, and why the others do not', async () => {
    const { stdout } = await trialscan(
      'check',
      VANISHING,
      '--explain',
      '--rule',
      'AllZero,collection_names=gradients',
      '--all',
    )
    const explained = objects(stdout).filter(one => 'judges' in one)
    const of = (name: string) => explained.find(({ rule }) => rule === name)
    const { suggested, reasons } = VanishingGradient
    expect(of('VanishingGradient')).toEqual({
      rule: 'VanishingGradient',
      name: 'VanishingGradient',
      judges: true,
      parameters: Object.entries(suggested).map(([parameter, value]) => ({
        parameter,
        value,
        reason: reasons[parameter],
      })),
    })
    expect(of('AllZero')).toMatchObject({
      parameters: [{ parameter: 'collection_names', value: 'gradients', reason: 'as it was asked for' }],
    })
    expect(of('Confusion')).toEqual({
      rule: 'Confusion',
      name: 'Confusion',
      judges: false,
      reason: Confusion.onlyByName,
    })
    expect(of('DeadRelu')).toBeUndefined()
    expect(objects(stdout).find(({ rule }) => rule === 'DeadRelu')).toMatchObject({ partial: false })

    const table = (await trialscan('check', VANISHING, '--explain', '--format', 'table')).stdout
    const flat = table.replaceAll(/\s+/g, ' ')
    for (const [parameter, value] of Object.entries(suggested)) {
      expect(flat).toContain(` ${parameter}=${value}: ${reasons[parameter]} `)
    }
    expect(table).toContain('\n  StalledTrainingRule: with its defaults\n')
    expect(table).toMatch(/\nData missing\n(.*\n)* {2}DeadRelu: (.*\n)*\nOnly if asked for by name\n {2}Overtraining: /)
    expect(table).not.toContain('Not judged')
    const short = (await trialscan('check', VANISHING, '--format', 'table')).stdout
    expect(table.startsWith(short.slice(0, short.indexOf('\nNot judged')))).toBe(true)
  })

  it('says what has to be saved for rules that were asked for and lack data', async () => {
    const rules = ['--rule', 'DeadRelu', '--rule', 'DeadRelu,name=b,tensor_regex=nosuch', '--rule', 'VanishingGradient']
    const { stdout } = await trialscan('check', VANISHING, ...rules, '--format', 'table')
    const json = /\nWhat to save\n([\s\S]*?\n {2}\]\}\n)/.exec(stdout)![1]!
    const { options } = parseHookConfig(json)
    expect(Object.keys(options.collections!)).toEqual(['relu_output', 'dead_relu_tensors'])
    // By the names of the trial's framework, and as often as the trial was saved.
    expect(options.collections).toMatchObject({
      relu_output: {
        includeRegex: ['(?i)(?<![pr])(?<!leaky)(?<!leaky_)relu[^/]*_output'],
        saveConfig: { saveInterval: 10 },
      },
      dead_relu_tensors: { includeRegex: ['nosuch'] },
    })
    const lines = objects((await trialscan('check', VANISHING, ...rules, '--format', 'jsonl')).stdout)
    expect(lines.filter(line => 'CollectionConfigurations' in line)).toEqual([JSON.parse(json)])
    expect(lines.map(line => ('missing' in line ? 'missing' : Object.keys(line)[0])).slice(-3)).toEqual([
      'missing',
      'missing',
      'CollectionConfigurations',
    ])
    expect((await trialscan('check', VANISHING, '--explain', '--format', 'table')).stdout).not.toContain('What to save')
  })

  it('calls a rule by what was written where it is given more than once', async () => {
    const texts = ['VanishingGradient,threshold=0.001', 'vanishinggradient,threshold=0.01']
    const { stdout } = await trialscan('check', VANISHING, ...texts.flatMap(text => ['--rule', text]))
    expect(new Set(objects(stdout).map(({ rule, name }) => `${rule} ${name}`))).toEqual(
      new Set(texts.map(text => `VanishingGradient ${text}`)),
    )
  })

  it.each(whenLong)('judges every worker, or those that are named', async () => {
    const trial = join(directory, 'two-workers')
    const writer = new TrialWriter(trial, { workers: ['worker_0', 'worker_1'] })
    for (const step of [0, 1, 2]) {
      const saved = { step, mode: 'TRAIN', modeStep: step } as const
      const tensor = (value: number) =>
        ({ name: 'fc.weight', dtype: 'float32', shape: [2], values: [step, value] }) as const
      writer.step({ ...saved, worker: 'worker_0', tensors: [tensor(1)] })
      writer.step({ ...saved, worker: 'worker_1', tensors: [tensor(step === 1 ? Number.NaN : 1)] })
    }
    writer.end()
    const first = (text: string) => text.split('\n')[0]
    const all = await trialscan('check', trial, '--format', 'table')
    expect([all.code, first(all.stdout)]).toEqual([
      1,
      'two-workers: ExplodingTensor at step 1 (TRAIN 1) of worker_1: fc.weight has 1 NaN among its 2',
    ])
    for (const rules of [[], ['--rule', 'ExplodingTensor']]) {
      const sound = await trialscan('check', trial, '--worker', 'worker_0', '--format', 'table', ...rules)
      expect([sound.code, first(sound.stdout)]).toEqual([
        0,
        expect.stringMatching(/^two-workers: \d+ rules? judged 3 steps of worker_0 and found nothing wrong; /),
      ])
      expect((await trialscan('check', trial, '--worker', 'worker_1', ...rules)).code).toBe(1)
      expect((await trialscan('check', trial, '--worker', 'worker_0', '--worker', 'worker_1', ...rules)).code).toBe(1)
    }
    const invoker = ['rule-invoker', '--trial-dir', trial, '--rule-name', 'ExplodingTensor']
    expect((await trialscan(...invoker)).code).toBe(1)
    expect((await trialscan(...invoker, '--worker', 'worker_0')).code).toBe(0)
    const refused = await trialscan('scan', trial, '--worker', 'worker_9')
    expect(refused).toMatchObject({ code: 5, stderr: expect.stringMatching(/"worker_9".*worker_0.*worker_1/) })
    expect(await trialscan('check', trial, '--worker', 'worker_9')).toEqual(refused)
    expect(await trialscan(...invoker, '--worker', 'worker_9')).toEqual(refused)
  })

  it('takes rules from a file, and rules of your own', async () => {
    const rules = join(directory, 'rules.json')
    const configuration = {
      RuleConfigurationName: 'tiny',
      RuleParameters: { rule_to_invoke: 'VanishingGradient', threshold: '0.001' },
    }
    writeFileSync(rules, JSON.stringify({ DebugRuleConfigurations: [configuration] }))
    const module = join(directory, 'own.mjs')
    writeFileSync(
      module,
      `import { Rule } from '${join(ROOT, 'dist/bundle/index.js')}'
       export class Never extends Rule { invokeAtStep() { return false } }
       export class Always extends Rule {
         invokeAtStep(step) { this.logger.info('looking'); return step === 43 }
       }`,
    )
    const { code, stdout, stderr } = await trialscan(
      ...['check', VANISHING, '--rules', rules, '--module', module, '--rule', 'Never', '--rule', 'Always'],
    )
    expect(code).toBe(1)
    const found = objects(stdout)
    expect(new Set(found.map(({ name }) => name))).toEqual(new Set(['tiny', 'Always']))
    expect(found.filter(({ name }) => name === 'Always')).toMatchObject([{ step: 43, mode: 'EVAL', value: null }])
    expect(stderr).toMatch(/^(trialscan: .*looking\n){15}trialscan: verdict: .*\n$/)
  })

  it('takes rules in TypeScript where Node.js reads that, and else says which does', async () => {
    const module = join(directory, 'typed.ts')
    const library = join(ROOT, 'dist/bundle/index.js')
    writeFileSync(
      module,
      `import { Rule } from '${library}'
       export class Typed extends Rule { override invokeAtStep(step: number): boolean { return step === 43 } }`,
    )
    const { code, stdout, stderr } = await trialscan('check', VANISHING, '--module', module, '--rule', 'Typed')
    if ((process.features as { typescript?: unknown }).typescript) {
      expect([code, objects(stdout).map(({ step }) => step)]).toEqual([1, [43]])
    } else {
      expect(code).toBe(2)
      expect(stderr).toMatch(
        /typed\.ts is TypeScript, which Node\.js [\d.]+ does not read: take Node\.js 22\.18, 24 or newer/,
      )
    }
  })

  it('runs the class of one’s own that a configuration with source_s3_uri means, or refuses', async () => {
    const rules = join(directory, 'custom.json')
    const of = (name: string, parameters: object) => ({
      RuleConfigurationName: name,
      RuleParameters: { rule_to_invoke: 'VanishingGradient', ...parameters },
    })
    const source_s3_uri = 's3://bucket/rules/custom.py'
    const configurations = [of('own', { source_s3_uri, limit: '43' }), of('built-in', { threshold: '0.001' })]
    writeFileSync(rules, JSON.stringify({ DebugRuleConfigurations: configurations }))
    const refused = await trialscan('check', VANISHING, '--rules', rules)
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toContain(
      'own: expected the class VanishingGradient of s3://bucket/rules/custom.py, which has not been loaded',
    )
    expect(refused.stderr).toContain('--module FILE')
    const module = join(directory, 'same-name.mjs')
    writeFileSync(
      module,
      `import { Rule } from '${join(ROOT, 'dist/bundle/index.js')}'
       export class VanishingGradient extends Rule {
         constructor(trial, { limit, ...options }) { super(trial, options); this.limit = Number(limit) }
         invokeAtStep(step) { return step === this.limit }
       }`,
    )
    const { code, stdout } = await trialscan('check', VANISHING, '--rules', rules, '--module', module)
    expect(code).toBe(1)
    const found = objects(stdout)
    expect(found.filter(({ name }) => name === 'own').map(({ step }) => step)).toEqual([43])
    expect(found.filter(({ name }) => name === 'built-in').length).toBeGreaterThan(10)
    const byName = await trialscan('check', VANISHING, '--module', module, '--rule', 'VanishingGradient,limit=47')
    expect(objects(byName.stdout).map(({ step }) => step)).toEqual([47])
  })

  it('counts the steps that were judged', async () => {
    const of = async (rule: string) => {
      const args = ['--rule', rule, '--format', 'table']
      return (await trialscan('check', VANISHING, ...args)).stdout.split('\n')[0]
    }
    expect(await of('VanishingGradient,threshold=1e-30')).toMatch(
      /^mlp-vanishing: 1 rule judged 9 steps and found nothing wrong; /,
    )
    expect(await of('ExplodingTensor')).toMatch(/^mlp-vanishing: 1 rule judged 15 steps and found nothing wrong; /)
  })

  it('loads a module from S3, beside a trial there, and says so', async () => {
    const s3 = await FaultyS3.start()
    for (const path of readdirSync(VANISHING, { recursive: true, encoding: 'utf8' })) {
      if (statSync(join(VANISHING, path)).isFile())
        s3.objects.set(`runs/one/${path}`, readFileSync(join(VANISHING, path)))
    }
    const code = Buffer.from(
      "import { Rule } from 'trialscan'; export class FromS3 extends Rule { invokeAtStep(step) { return step === 43 } }",
    )
    s3.objects.set('rules/mine.mjs', code)
    const flags = ['--s3-endpoint', s3.endpoint, '--s3-region', 'us-east-1', '--s3-force-path-style', '--s3-anonymous']
    const args = ['check', 's3://bucket/runs/one', '--threads', '0', ...flags, '--rule', 'FromS3']
    const found = await trialscan(...args, '--module', 's3://bucket/rules/mine.mjs')
    expect(found.stderr).toContain(`s3://bucket/rules/mine.mjs is loaded: ${code.length} bytes of code`)
    expect([found.code, objects(found.stdout).map(({ step }) => step)]).toEqual([1, [43]])
    for (const place of ['s3://', 's3://bucket', 's3://bucket/rules/']) {
      const wrong = await trialscan(...args, '--module', place)
      expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining(`rules.mjs, got ${place}`)])
    }
    const lost = await trialscan(...args, '--module', 's3://bucket/rules/none.mjs')
    expect([lost.code, lost.stderr]).toEqual([3, expect.stringContaining('none.mjs')])
    await s3.stop()
  })

  it('does not take what goes wrong in a module for a finding', async () => {
    const module = join(directory, 'bad.mjs')
    writeFileSync(
      module,
      `import { Rule } from '${join(ROOT, 'dist/bundle/index.js')}'
       export class Throws extends Rule {
         invokeAtStep(step) { if (step === 20) throw new TypeError('oh no'); return false }
       }
       export class Later extends Rule {
         invokeAtStep() { Promise.reject(new Error('too late')); return false }
       }`,
    )
    const thrown = await trialscan('check', VANISHING, '--module', module, '--rule', 'Throws')
    expect(thrown.code).toBe(4)
    expect(objects(thrown.stdout)).toMatchObject([{ step: 20, problem: expect.stringContaining('TypeError: oh no') }])
    const { code, stderr } = await trialscan('check', VANISHING, '--module', module, '--rule', 'Later')
    expect([code, stderr]).toEqual([70, expect.stringMatching(/too late(.*\n)*If it is none of your module/)])
  })

  it.each([
    ['ends the process', 'process.exit(0)'],
    ['waits for what never comes', 'await new Promise(() => {})'],
  ])('does not take a module that %s for a training in which all is well', async (_, text) => {
    const module = join(directory, 'ends.mjs')
    writeFileSync(module, text)
    const { code, stdout, stderr } = await trialscan('check', VANISHING, '--module', module)
    expect([code, stdout, stderr]).toEqual([
      70,
      '',
      expect.stringMatching(/^trialscan: check was ended before it was done/),
    ])
  })

  it('reads rules in UTF-8, with a byte order mark or without, and says so of other encodings', async () => {
    const rules = join(directory, 'encoded.json')
    const parameters = { rule_to_invoke: 'VanishingGradient', threshold: '1e-30' }
    const text = JSON.stringify([{ RuleConfigurationName: 'v', RuleParameters: parameters }])
    const run = (bytes: string | Buffer) => {
      writeFileSync(rules, bytes)
      return trialscan('check', VANISHING, '--rules', rules)
    }
    expect(await run(`\ufeff${text}`)).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^trialscan: verdict: passed; .*\n$/),
    })
    const { code, stderr } = await run(Buffer.from(`\ufeff${text}`, 'utf16le'))
    expect([code, stderr]).toEqual([4, `trialscan: ${rules}: expected JSON in UTF-8, got bytes of another encoding\n`])
  })

  it('judges a range of steps, in one file if it is told to', async () => {
    const out = join(directory, 'findings.jsonl')
    const command = ['check', VANISHING, '--rule', 'VanishingGradient,threshold=0.001', '--out', out]
    expect(await trialscan(...command, '--steps', '20:41')).toMatchObject({ code: 1, stdout: '' })
    expect(new Set(objects(readFileSync(out, 'utf8')).map(({ step }) => step))).toEqual(new Set([20, 30, 40]))
    const { code, stderr } = await trialscan(...command, '--steps', '500:')
    expect([code, stderr]).toEqual([
      5,
      expect.stringMatching(/no step is in --steps 500:; the trial has global steps 0 to 106 \(15/),
    ])
  })

  it('says what could not be read, and exits with 4', async () => {
    const copy = join(directory, 'corrupt')
    copyTrial(PLAIN, copy)
    corruptions.find(({ name }) => name === 'unknown dtype')!.apply(copy)
    const { code, stdout, stderr } = await trialscan('check', copy, '--rule', 'ExplodingTensor')
    expect(code).toBe(4)
    expect(objects(stdout)).toMatchObject([{ step: 1, tensor: 'fc.bias', code: 'UnknownDType' }])
    expect(Object.keys(objects(stdout)[0]!)).toEqual(['problem', 'step', 'tensor', 'code'])
    expect(stderr).toMatch(/^trialscan: 14 of 15 tensor values could be read, so the findings are incomplete/)
  })

  const refused: [string, number, RegExp, readonly string[]][] = [
    ['unknown rule', 2, /VanishingGradient/, [VANISHING, '--rule', 'VanishingGradients']],
    [
      'unknown parameter',
      2,
      /"treshold"; did you mean threshold/,
      [VANISHING, '--rule', 'VanishingGradient,treshold=1'],
    ],
    ['bad value', 2, /threshold to be a number.*"x"/, [VANISHING, '--rule', 'VanishingGradient,threshold=x']],
    ['a parameter without a value', 2, /parameter=value/, [VANISHING, '--rule', 'AllZero,gradients']],
    ['no parameter', 2, /no parameter "logger"/, [VANISHING, '--rule', 'VanishingGradient,logger=x']],
    ['two of a name', 2, /called "x"/, [VANISHING, '--rule', 'DeadRelu,name=x', '--rule', 'VanishingGradient,name=x']],
    ['no tensors named', 2, /AllZero.*collection_names/, [VANISHING, '--rule', 'AllZero']],
    ['no other trial', 2, /SimilarAcrossRuns.*trial/, [VANISHING, '--rule', 'SimilarAcrossRuns']],
    ['--timeout alone', 2, /expected --follow/, [VANISHING, '--timeout', '5']],
    ['no such file of rules', 3, /no-such.json: no such file/, [VANISHING, '--rules', 'no-such.json']],
    ['no such module', 3, /no-such.mjs: no such file/, [VANISHING, '--module', 'no-such.mjs']],
    ['a module that is none', 2, /package-lock.json can't be loaded/, [VANISHING, '--module', 'package-lock.json']],
    [
      'nothing to judge',
      5,
      /DeadRelu had nothing to judge: expected .*; the trial has/,
      [VANISHING, '--rule', 'DeadRelu', '--format', 'jsonl', '--out', '/dev/null'],
    ],
    [
      'a name that is nearly one',
      2,
      /the trial has no collection "gradient"; did you mean "gradients"/,
      [VANISHING, '--rule', 'AllZero,collection_names=gradient', '--out', '/dev/null'],
    ],
    [
      'no step of its tensors',
      5,
      /expected more steps with its tensors.*from 0 to 92/,
      [VANISHING, '--rule', 'VanishingGradient', '--steps', '43:48', '--out', '/dev/null'],
    ],
    ['no such trial', 3, /\/no\/such/, ['/no/such']],
    ['no such other trial', 3, /\/no\/such/, [VANISHING, '--other-trials', '/no/such']],
  ]
  it.each(part(refused, (_, i) => i % 6 === 0))('%s: exit code %i', async (_, code, message, args) => {
    const outcome = await trialscan('check', ...args)
    expect(outcome.stderr).toMatch(message)
    expect(outcome.stderr).toMatch(/^trialscan: /)
    expect(outcome.stderr).not.toMatch(/^ {4}at /m)
    expect(outcome).toMatchObject({ code, stdout: '' })
  })

  it.each(whenLong)(
    'exits with 1 where another rule has fired, and with 5 where findings are no failure (%s)',
    async () => {
      const args = ['check', VANISHING, '--rule', 'DeadRelu', '--rule', 'VanishingGradient']
      expect((await trialscan(...args)).code).toBe(1)
      expect((await trialscan(...args, '--no-fail-on-finding')).code).toBe(5)
      // What nobody asked for by name is not missed.
      expect((await trialscan('check', VANISHING, '--all', '--no-fail-on-finding')).code).toBe(0)
    },
  )

  it('has help with examples and exit codes, which names every built-in rule', async () => {
    const { code, stdout } = await trialscan('check', '--help')
    expect(code).toBe(0)
    expect(stdout).toMatch(/Examples:\n( {2}\$ trialscan check .*(\n {6}.*)*\n){5}/)
    expect(stdout).toMatch(/trialscan help exit-codes\.\n$/)
    for (const name of new RuleRegistry().names) expect(stdout).toContain(name)
  })

  describe('of a job that runs', () => {
    let args: readonly string[]
    let job: LiveWriter
    const follow = (...more: readonly string[]) => following(...args, ...more)
    beforeAll(async () => {
      const trial = join(directory, 'live')
      const module = join(directory, 'always.mjs')
      const index = join(ROOT, 'dist/bundle/index.js')
      writeFileSync(
        module,
        `export { Always as default } from './always.mjs'
         import { Rule } from '${index}'
         export class Always extends Rule { invokeAtStep() { return true } }`,
      )
      args = [trial, '--module', module, '--rule', 'Always']
      job = await LiveWriter.start(trial)
      await job.step(0)
    })
    afterAll(() => job.stop())

    it('judges what is there if it is not told to follow', async () => {
      const { code, stdout } = await trialscan('check', ...args, '--format', 'table')
      expect([code, stdout]).toEqual([1, expect.stringMatching(/1 step judged; the job may still run: --follow goes/)])
    })

    it('tells a person of the first time, and of all when interrupted', async () => {
      const { child, texts, until, code } = follow('--format', 'table')
      await until('stderr', /Always fires at step 0: .*\n/)
      child.kill('SIGINT')
      expect(await code).toBe(130)
      expect(texts.stdout).toMatch(
        /^live: Always at step 0: .*\n\n1 of 1 rule fired; interrupted\n\nAlways fired at step 0\n/,
      )
    })

    it('follows it to its end, each line at once', async () => {
      const { texts, until, code } = follow()
      await until('stdout', /"step":0,.*\n/)
      for (const step of [1, 2]) {
        await job.step(step)
        await until('stdout', new RegExp(`"step":${step},.*\\n`))
      }
      await job.do({ do: 'end' })
      expect(await code).toBe(1)
      expect(objects(texts.stdout).map(({ step }) => step)).toEqual([0, 1, 2])
      expect(texts.stderr).toMatch(/^trialscan: verdict: failed; .*\n$/)
    })
  })

  it('waits no longer than it is told', async () => {
    const running = fixture('workers-running')
    const { code, stderr } = await trialscan(
      ...['check', running, '--rule', 'ExplodingTensor', '--follow', '--timeout', '1.2'],
    )
    expect(code).toBe(0)
    expect(stderr).toMatch(
      /^trialscan: no new step came for 1 s, and the job has not ended: gave up; the last is 5\ntrialscan: verdict: passed; .*\n$/,
    )
  })
})
