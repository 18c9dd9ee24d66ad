/** The rules of examples/, on real trials: alone and in one pass, held against plain loops over the values. */

import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import {
  closePools,
  createTrial,
  evaluate,
  invokeRule,
  type Logger,
  NoMoreData,
  type Rule,
  RuleRegistry,
  type Trial,
} from 'trialscan'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { ActivationInputs } from '../examples/ActivationInputs.js'
import { ActivationOutputs } from '../examples/ActivationOutputs.js'
import { GradientsAcrossLayers } from '../examples/GradientsAcrossLayers.js'
import { GradientsLayer } from '../examples/GradientsLayer.js'
import { Inputs } from '../examples/Inputs.js'
import { Outputs } from '../examples/Outputs.js'
import { VanishingGradientRule } from '../examples/VanishingGradientRule.js'
import { WeightRatio } from '../examples/WeightRatio.js'
import { TrialWriter } from '../fixtures/event-writer.js'
import { isRequired, ROOT } from './support/golden.js'
import { writeSamples } from './view/samples.js'

const fixture = (name: string): string => join(ROOT, 'fixtures/trials', name)
const SHARED = join(ROOT, '../shared/trials')

/** Lines of the class in the seed, without blank ones and comments. */
const TWIN_LINES: Readonly<Record<string, number>> = {
  // tensor-analysis-notebook.rst
  ActivationOutputs: 21,
  ActivationInputs: 21,
  GradientsLayer: 15,
  GradientsAcrossLayers: 19,
  WeightRatio: 16,
  Inputs: 16,
  Outputs: 16,
  // analysis-programming-model.txt
  VanishingGradientRule: 12,
}

let scratch: string
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), 'trialscan-examples-'))
  // npx keeps a link to the package's command; one of an earlier build may point to a file that is gone.
  process.env.npm_config_cache = join(scratch, 'npm')
})
afterAll(async () => {
  rmSync(scratch, { recursive: true, force: true })
  await closePools()
})

it('runs the command of the README', () => {
  const text = readFileSync(join(ROOT, 'examples/README.md'), 'utf8')
  const [, command] = /^npx (tsx dist[\s\S]*?)\n```/m.exec(text) as unknown as [string, string]
  const [program, ...args] = command.replaceAll('\\\n', ' ').split(/\s+/)
  const bin = join(ROOT, 'node_modules/.bin', program!)
  const { status, stdout, stderr } = spawnSync(bin, args, { cwd: ROOT, encoding: 'utf8' })
  expect(stdout, stderr).toContain('{"rule":"VanishingGradientRule"')
  expect(status).toBe(1)
})

it('runs the program of the README', async () => {
  const text = readFileSync(join(ROOT, 'examples/README.md'), 'utf8')
  const [, code] = /^```ts run\n([\s\S]*?)^```$/m.exec(text) as unknown as [string, string]
  // Beside the rules, whose names it knows.
  const file = join(ROOT, 'examples', `.readme-${process.pid}.ts`)
  const log = vi.spyOn(console, 'log').mockImplementation(() => {})
  const [info, warn] = (['info', 'warn', 'debug'] as const).map(level =>
    vi.spyOn(console, level).mockImplementation(() => {}),
  )
  try {
    writeFileSync(file, `${code}\nexport {}\n`)
    await import(/* @vite-ignore */ pathToFileURL(file).href)
    expect(Object.keys(log.mock.calls[0]![0] as object)).toHaveLength(9)
    expect(info).toHaveBeenCalled()
    expect(warn).toHaveBeenCalled()
  } finally {
    rmSync(file, { force: true })
    vi.restoreAllMocks()
  }
})

describe('length', () => {
  it.each(Object.entries(TWIN_LINES))('%s takes no more than %i lines', (name, twin) => {
    const text = readFileSync(join(ROOT, 'examples', `${name}.ts`), 'utf8')
    const [rule] = /^export class \w+ extends Rule \{\n[\s\S]*?^\}/m.exec(text) as [string]
    const lines = rule.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*/gm, '').split('\n')
    expect(lines.filter(line => line.trim() !== '').length).toBeLessThanOrEqual(twin)
    // Nor is there more of it outside of the class.
    expect(text.replace(rule, '').replace(/\/\*[\s\S]*?\*\/|^import .*/gm, '')).toMatch(/^\s*$/)
  })

  it('is of every example', () => {
    const files = readdirSync(join(ROOT, 'examples')).filter(name => /^\w+\.ts$/.test(name))
    expect(files.map(name => name.replace('.ts', '')).sort()).toEqual(Object.keys(TWIN_LINES).sort())
  })
})

interface Log extends Logger {
  readonly infos: string[]
  readonly warnings: string[]
}

function log(): Log {
  const [infos, warnings] = [[] as string[], [] as string[]]
  const [info, warn] = [(text: string) => infos.push(text), (text: string) => warnings.push(text)]
  return { infos, warnings, debug: () => {}, info, warn, error: text => expect.unreachable(text) }
}

interface Collecting extends Rule {
  readonly tensors: object
}

/** Runs a rule step by step and in one pass, and makes sure that both collect and log the same. */
async function collected<R extends Collecting>(
  RuleClass: new (trial: Trial, options: { readonly logger: Logger }) => R,
  trial: Trial,
): Promise<{ readonly tensors: R['tensors']; readonly log: Log }> {
  const [invoking, evaluating] = [log(), log()]
  const invoked = new RuleClass(trial, { logger: invoking })
  await expect(invokeRule(invoked)).rejects.toThrow(NoMoreData)
  const evaluated = new RuleClass(trial, { logger: evaluating })
  const { findings, missing, problems, complete } = await evaluate(evaluated)
  expect({ findings, missing, problems, complete }).toEqual({ findings: [], missing: [], problems: [], complete: true })
  expect(evaluated.tensors).toEqual(invoked.tensors)
  expect(evaluating).toMatchObject({ infos: invoking.infos, warnings: invoking.warnings })
  return { tensors: evaluated.tensors, log: evaluating }
}

/** The steps at which a tensor was saved, and its values there: what examples are held against. */
async function valuesOf(
  trial: Trial,
  name: string,
): Promise<[step: number, shape: readonly number[], data: number[]][]> {
  const values: [number, readonly number[], number[]][] = []
  for (const step of trial.tensor(name).steps()) {
    const { shape, data } = await trial.tensor(name).value(step)
    values.push([step, shape, Array.from(data, Number)])
  }
  return values
}

function varianceOf(data: readonly number[]): number {
  let mean = 0
  for (const one of data) mean += one / data.length
  let variance = 0
  for (const one of data) variance += (one - mean) ** 2 / data.length
  return variance
}

const closeTo = (value: number) => expect.closeTo(value, 9 - Math.floor(Math.log10(Math.abs(value) || 1)))
const numbersIn = (text: string): number[] => (text.match(/-?\d+(\.\d+)?(e[-+]\d+)?/g) ?? []).map(Number)
/** How often a tensor of the names was not saved at a step. */
const gaps = (trial: Trial, names: readonly string[]): number =>
  names.reduce((sum, name) => sum + trial.steps().length - trial.tensor(name).steps().length, 0)

/** The inputs of ReLU layers under the names that MXNet gives them; the values are those of a real trial. */
async function mxnetTrial(): Promise<string> {
  const from = await createTrial(fixture('tornasole-2019'))
  const directory = join(scratch, 'mxnet')
  const writer = new TrialWriter(directory)
  for (const [i, step] of from.steps().entries()) {
    const tensors = []
    for (const layer of ['conv0', 'conv1']) {
      const { shape, data } = await from.tensor(`${layer}_output_0`).value(step)
      const values = Array.from(data as Float32Array)
      tensors.push({ name: `${layer}_relu_input_0`, dtype: 'float32', shape, values } as const)
      tensors.push({ name: `gradients/${layer}_relu_input_0`, dtype: 'float32', shape: [1], values: [1] } as const)
    }
    // The second layer is missing at the second step.
    writer.step({ step, modeStep: i, mode: 'TRAIN', tensors: i === 0 ? tensors : tensors.slice(0, 2) })
  }
  writer.end()
  return directory
}

describe.each([
  ['ActivationOutputs', ActivationOutputs, () => fixture('tornasole-2019'), /relu\d*_output/],
  ['ActivationInputs', ActivationInputs, mxnetTrial, /relu\d*_input/],
  ['ActivationInputs', ActivationInputs, () => join(SHARED, 'cnn-dead-relu'), /relu\d*_input/],
  ['ActivationOutputs', ActivationOutputs, () => join(SHARED, 'cnn-dead-relu'), /relu\d*_output/],
] as const)('%s', (_name, RuleClass, directoryOf, pattern) => {
  it('means over the batch, and how much is not above zero', async context => {
    const directory = await directoryOf()
    if (directory.startsWith(SHARED) && !isRequired('shared') && !existsSync(directory)) context.skip()
    const trial = await createTrial(directory)
    const { tensors, log } = await collected(RuleClass, trial)
    const names = trial.tensorNames().filter(name => pattern.test(name) && !name.includes('gradients'))
    expect(names.length).toBeGreaterThan(1)
    expect(Object.keys(tensors).sort()).toEqual(names)
    const percents: number[] = []
    for (const name of names) {
      const values = await valuesOf(trial, name)
      expect(Object.keys(tensors[name]!).map(Number)).toEqual(values.map(([step]) => step))
      for (const [step, shape, data] of values) {
        const batch = shape[0]!
        const width = data.length / batch
        const means = tensors[name]![step]!
        expect(means).toHaveLength(width)
        for (let node = 0; node < width; node++) {
          let sum = 0
          for (let sample = 0; sample < batch; sample++) sum += data[sample * width + node]!
          expect(means[node]).toBeCloseTo(sum / batch, 9)
        }
        let count = 0
        for (const one of data) if (one <= 0) count++
        if (count > 0) percents.push((100 * count) / data.length)
      }
    }
    const logged = log.infos.map(info => Number(/: ([\d.e-]+) %/.exec(info)![1]))
    expect(logged.sort((a, b) => a - b)).toEqual(percents.sort((a, b) => a - b).map(closeTo))
    expect(log.warnings).toHaveLength(gaps(trial, names))
  })
})

describe.each([
  ['GradientsLayer', GradientsLayer, 'mlp-vanishing', /gradient/, /$^/],
  ['WeightRatio', WeightRatio, 'cnn-raw-and-reductions', /weight/, /gradient/],
  ['Inputs', Inputs, 'mlp-all-zero', /input/, /relu/],
  ['Outputs', Outputs, 'tornasole-2019', /output/, /relu/],
] as const)('%s', (ruleName, RuleClass, name, pattern, except) => {
  it('values of all layers', async () => {
    const trial = await createTrial(fixture(name))
    const { tensors, log } = await collected<GradientsLayer | WeightRatio | Inputs | Outputs>(RuleClass, trial)
    const names = trial.tensorNames().filter(name => pattern.test(name) && !except.test(name))
    expect(names.length).toBeGreaterThan(3)
    expect(Object.keys(tensors).sort()).toEqual(names)
    for (const name of names) {
      const values = await valuesOf(trial, name)
      expect(Object.keys(tensors[name]!).map(Number)).toEqual(values.map(([step]) => step))
      for (const [step, shape, data] of values) {
        const value = tensors[name]![step]!
        expect(value.shape).toEqual(shape)
        expect(Array.from(value.data, Number)).toEqual(data)
        const info = log.infos.find(info => info.startsWith(`step ${step}: ${name} has`))!
        let [min, max] = [Infinity, -Infinity]
        for (const one of data) [min, max] = [one < min ? one : min, one > max ? one : max]
        const wanted = ruleName === 'GradientsLayer' ? [min, max] : [varianceOf(data)]
        expect(numbersIn(info.replace(name, '')).slice(1)).toEqual(wanted.map(closeTo))
      }
    }
    expect(log.warnings).toHaveLength(gaps(trial, names))
  })
})

describe('GradientsAcrossLayers', () => {
  it('the least and the largest variance of every step', async () => {
    const trial = await createTrial(fixture('mlp-vanishing'))
    const { tensors, log } = await collected(GradientsAcrossLayers, trial)
    const names = trial.tensorNames().filter(name => name.includes('gradient'))
    const wanted: Record<number, [number, number]> = {}
    for (const name of names) {
      for (const [step, , data] of await valuesOf(trial, name)) {
        const variance = varianceOf(data)
        const [min, max] = wanted[step] ?? [variance, variance]
        wanted[step] = [variance < min ? variance : min, variance > max ? variance : max]
      }
    }
    expect(Object.keys(wanted)).toHaveLength(9)
    expect(Object.keys(tensors)).toEqual(Object.keys(wanted))
    for (const [step, [min, max]] of Object.entries(wanted)) {
      expect(tensors[Number(step)]![0] / min).toBeCloseTo(1, 9)
      expect(tensors[Number(step)]![1] / max).toBeCloseTo(1, 9)
    }
    expect(log.warnings).toHaveLength(gaps(trial, names))
  })

  it('does with saved reductions, too, and warns of those that lack theirs', async () => {
    const directory = join(scratch, 'reduced')
    const writer = new TrialWriter(directory)
    const tensors = [
      { name: 'gradient/a', reductions: { variance: 4 } },
      { name: 'gradient/b', reductions: { mean: 4 } },
      { name: 'gradient/c', dtype: 'float32', shape: [2], values: [1, 3] },
    ] as const
    writer.step({ step: 0, mode: 'TRAIN', tensors })
    writer.end()
    const { tensors: found, log } = await collected(GradientsAcrossLayers, await createTrial(directory))
    expect(found).toEqual({ 0: [1, 4] })
    expect(log.warnings).toEqual([expect.stringMatching(/^can't fetch gradient\/b: .*only abs_mean|only mean/)])
  })
})

describe('VanishingGradientRule', () => {
  const gradientSteps = [0, 10, 20, 30, 40, 62, 72, 82, 92]

  it('fires where the mean of absolute values is too small, step by step and in one pass', async () => {
    const trial = await createTrial(fixture('workers-4'))
    const values = await valuesOf(trial, 'gradient/fc.weight')
    expect(values.length).toBeGreaterThan(3)
    const means = values.map(([step, , data]) => ({
      step,
      mean: data.reduce((sum, one) => sum + Math.abs(one), 0) / data.length,
    }))
    const middle = means.map(({ mean }) => mean).sort((a, b) => a - b)[means.length >> 1]! * 1.0000001
    for (const threshold of [middle, `${middle}`, undefined]) {
      const fired = means.filter(({ mean }) => mean < Number(threshold ?? 1e-7)).map(({ step }) => step)
      const invoked: number[] = []
      const actions = ({ step }: { readonly step: number }) => void invoked.push(step)
      const rule = new VanishingGradientRule(trial, { actions, ...(threshold !== undefined && { threshold }) })
      await expect(invokeRule(rule)).rejects.toThrow(NoMoreData)
      expect(invoked).toEqual(fired)
      const { findings } = await evaluate(
        new VanishingGradientRule(trial, threshold === undefined ? {} : { threshold }),
      )
      expect(findings.map(({ step }) => step)).toEqual(fired)
    }
  })

  it('takes its threshold as text, from JSON', async () => {
    const trial = await createTrial(fixture('mlp-vanishing'))
    const registry = new RuleRegistry()
    registry.register(VanishingGradientRule)
    const rule = new (registry.get('vanishing_gradient_rule'))(trial, { threshold: '1e-3' })
    const { findings, problems } = await evaluate(rule)
    expect(findings.map(({ step }) => step)).toEqual(gradientSteps)
    expect(problems).toEqual([])
  })

  it('reads each gradient once, beside a rule that wants the same', async () => {
    const trial = await createTrial(fixture('mlp-vanishing'))
    const alone = await evaluate(new VanishingGradientRule(trial))
    const both = await evaluate([new VanishingGradientRule(trial), new GradientsAcrossLayers(trial)])
    expect(alone.stats.readBytes).toBeGreaterThan(0)
    expect(both.stats.readBytes).toBe(alone.stats.readBytes)
  })
})

describe('the notebooks as one command each', () => {
  const script = (name: string, ...args: string[]) =>
    execFileSync(join(ROOT, 'examples', name), args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

  it('draw activations, gradients and weights of two trainings side by side', () => {
    const out = join(scratch, 'tensor-analysis.html')
    script('tensor-analysis.sh', fixture('mlp-vanishing'), fixture('mlp-all-zero'), out)
    const html = readFileSync(out, 'utf8')
    expect(html).toContain('<title>Good and bad initialisation – trialscan</title>')
    expect(html).toContain('gradient/DeepSigmoid_hidden.7.weight')
  })

  it('draw samples in the bottleneck, with labels, beside reconstructions', () => {
    const [trial, out] = [join(scratch, 'samples'), join(scratch, 'autoencoder.html')]
    writeSamples(trial)
    script('autoencoder.sh', trial, 'bottleneck_output', out)
    const [, json] = /<script id="data" type="application\/json">(.*?)<\/script>/s.exec(readFileSync(out, 'utf8'))!
    const { embedding } = JSON.parse(json!).trials[0]
    expect(embedding).toMatchObject({
      tensor: 'bottleneck_output_0',
      labels: 'labels',
      reconstructions: 'Net_output_0',
    })
  })
})
