/** The ways of docs/pytorch.md to a verdict, and the examples in PyTorch, as they stand there. */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTrial } from '#dist/index.js'
import { trialscan } from '../cli/run.js'
import { ROOT } from '../support/golden.js'
import { hasModule, python } from '../support/python.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('pytorch-docs')
const text = readFileSync(join(ROOT, 'docs/pytorch.md'), 'utf8')
const [plain, captured, trainer] = [...text.matchAll(/^```python run\n([\s\S]*?)^```$/gm)].map(([, code]) => code!)

/** Runs code in a directory of its own. @returns that directory */
function run(name: string, code: string, path: readonly string[] = []): string {
  const cwd = join(scratch, name)
  mkdirSync(cwd, { recursive: true })
  const { status, stderr } = python(code, { cwd, path })
  expect([status, stderr]).toEqual([0, ''])
  return join(cwd, 'run')
}

describe.runIf(hasModule('torch'))('docs/pytorch.md', () => {
  it.each([
    ['a file a step', plain!, 'npz'],
    ['trialscan.py', captured!, 'safetensors'],
  ])('%s: check judges gradients, weights and losses', async (name, code, format) => {
    const directory = run(name, code)
    const { code: exit, stdout } = await trialscan('check', directory, '--format', 'table')
    expect([0, 1]).toContain(exit)
    expect(stdout).toMatch(/(judged|steps judged)/)
    const trial = await createTrial(directory, { refresh: 'manual' })
    expect(trial.checkpoint?.formats).toEqual([format])
    expect([trial.steps().length, trial.loadedAllSteps]).toEqual([10, true])
    expect([...trial.collection('gradients').members].sort()).toEqual([
      'gradient/0.bias',
      'gradient/0.weight',
      'gradient/2.bias',
      'gradient/2.weight',
    ])
    expect(trial.collection('losses').members).toEqual(['loss'])
    expect([...trial.collection('weights').members].sort()).toEqual(['0.weight', '2.weight'])
    if (format === 'safetensors') expect(trial.tensorNames()).toContain('1.ReLU_output_0')
    await trial.close()
  })

  it('the callback of the Trainer, which a stand-in calls as the Trainer does', async () => {
    const stub = join(scratch, 'stub', 'transformers')
    mkdirSync(stub, { recursive: true })
    writeFileSync(join(stub, '__init__.py'), 'class TrainerCallback: pass\n')
    const training = `
import types, torch
model = torch.nn.Linear(3, 1)
state, control = types.SimpleNamespace(global_step=0, log_history=[]), None
callback = Capture("run", every=2)
callback.on_train_begin(None, state, control, model=model, optimizer=None)
for step in range(4):
    loss = model(torch.ones(2, 3)).pow(2).mean()
    loss.backward()
    state.global_step += 1
    state.log_history.append({"loss": float(loss), "step": state.global_step})
    callback.on_step_end(None, state, control, model=model)
    model.zero_grad()
callback.on_train_end(None, state, control, model=model)
`
    const directory = run('trainer', trainer! + training, [join(scratch, 'stub')])
    const trial = await createTrial(directory, { refresh: 'manual' })
    expect(trial.steps()).toEqual([0, 2])
    expect(trial.tensorNames()).toEqual(['bias', 'gradient/bias', 'gradient/weight', 'loss', 'weight'])
    expect(trial.loadedAllSteps).toBe(true)
    await trial.close()
  })
})

it.runIf(hasModule('torch'))('what it costs is what bench/capture.py prints', () => {
  const script = 'import runpy, sys; runpy.run_path(sys.argv.pop(1), run_name="__main__")'
  const { status, stdout } = python(script, { args: [join(ROOT, 'bench/capture.py'), '2'] })
  expect(status).toBe(0)
  const namesOf = (table: string) => [...table.matchAll(/^\| ([^|]+) \| [\d.]+ ms \|/gm)].map(([, name]) => name)
  expect(namesOf(stdout)).toEqual(namesOf(text))
  expect(namesOf(text)).toHaveLength(5)
})

describe.runIf(hasModule('torch'))('examples', () => {
  /** What an example prints, with single spaces. */
  function example(name: string): string {
    const { status, stdout, stderr } = python(
      'import runpy, sys; sys.path.insert(0, "examples"); runpy.run_path(sys.argv[2])',
      {
        args: [join(scratch, name), join(ROOT, 'examples', `${name}.py`)],
      },
    )
    expect([status, stderr]).toEqual([0, ''])
    return stdout.replaceAll(/\s+/g, ' ')
  }

  it('a CNN: badly initialised, then well', () => {
    const said = example('pytorch_cnn')
    expect(said).toMatch(/bad: accuracy 0\.[0-3]/)
    expect(said).toMatch(/ bad: PoorWeightInitialization at step 0 \(TRAIN 0\): as initialised, the variance/)
    expect(said).toMatch(/ good: accuracy (1\.00|0\.[89])/)
    expect(said).toMatch(/ good: \d+ rules judged 26 steps and found nothing wrong/)
    expect(said).toContain('good and bad first differ at step 0 (TRAIN 0) in conv0.weight')
  })

  it('an autoencoder: given bytes, then numbers up to 1', () => {
    const said = example('pytorch_autoencoder')
    expect(said).toMatch(/ bytes: SaturatedActivation at step \d+/)
    expect(said).toContain('CheckInputImages fired')
    expect(said).toMatch(/good: of digits not seen, 0\.[0-5]/)
    expect(said).toMatch(/ good: \d+ rules judged 27 steps and found nothing wrong/)
    expect(said).toContain('good and bytes first differ at step 0 (TRAIN 0) in Autoencoder_input_0')
  })
})
