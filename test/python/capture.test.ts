/** trialscan.py saves what PyTorch computes: read back, it is what PyTorch itself says. */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTrial } from '#dist/index.js'
import { hasModule, python, TRIALSCAN_PY } from '../support/python.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('capture')

const PREAMBLE = `
import json, sys, warnings
import torch
from torch import nn
from trialscan import capture
torch.manual_seed(1)
out = sys.argv[1]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc0, self.relu, self.fc1 = nn.Linear(4, 3), nn.ReLU(inplace=True), nn.Linear(3, 2)
    def forward(self, x):
        return {"logits": self.fc1(self.relu(self.relu(self.fc0(x)) + 0))}
def listed(tensor):
    return tensor.detach().double().flatten().tolist()
`

/** Runs a script that saves into its first argument. @returns what it prints, as JSON */
function save(name: string, script: string, env: Readonly<Record<string, string>> = {}) {
  const directory = join(scratch, name)
  const { status, stdout, stderr } = python(PREAMBLE + script, { args: [directory], env })
  if (status !== 0) throw new Error(stderr)
  return { directory, said: stdout === '' ? null : JSON.parse(stdout), stderr }
}

const numbersOf = (data: unknown) => [...(data as Iterable<number | bigint>)].map(Number)

it('the part that saves comes to 200 lines', () => {
  const [saving] = readFileSync(TRIALSCAN_PY, 'utf8').split(/^# -+ reading$/m) as [string]
  expect(saving.trimEnd().split('\n').length).toBeLessThanOrEqual(200)
})

describe.runIf(hasModule('torch'))('capture', () => {
  it('has everything in the order of execution, with modes, collections and an end', async () => {
    const { directory, said } = save(
      'all',
      `
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
answers = {}
with capture(model, out, every={"TRAIN": 2, "EVAL": 1}, activations=True, optimizer=True) as c:
    for step in range(4):
        before = {name: listed(weight) for name, weight in model.named_parameters()}
        x = torch.randn(5, 4)
        loss = model(x)["logits"].pow(2).mean()
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        answers[step] = {**before, **{"gradient/" + name: listed(weight.grad) for name, weight in model.named_parameters()}}
        answers[step].update({"Net_input_0": listed(x), "loss": listed(loss), "accuracy": [0.5]})
        optimizer.step()
        moments = {name: listed(optimizer.state[weight]["exp_avg"]) for name, weight in model.named_parameters()}
        answers[step].update({"optimizer.%s.exp_avg" % name: moment for name, moment in moments.items()})
        if step == 2:  # Too early, and yet the gradients are there.
            optimizer.zero_grad(set_to_none=False)
        c.step(loss=loss, accuracy=0.5)
    model.eval()
    with torch.no_grad():
        loss = model(x)["logits"].pow(2).mean()
    c.step(loss=loss)
print(json.dumps(answers))`,
    )
    expect(readdirSync(directory).sort()).toEqual([
      'step_00000000.safetensors',
      'step_00000002.safetensors',
      'step_00000004.safetensors',
      'training_job_end.ts',
    ])
    const trial = await createTrial(directory, { refresh: 'manual' })
    expect([trial.steps({ mode: 'TRAIN' }), trial.steps({ mode: 'EVAL' })]).toEqual([[0, 2], [0]])
    expect(trial.loadedAllSteps).toBe(true)
    for (const step of [0, 2]) {
      for (const [name, numbers] of Object.entries(said[step])) {
        expect([name, numbersOf((await trial.tensor(name).value(step)).data)]).toEqual([name, numbers])
      }
    }
    const order: string[] = []
    for await (const { tensor } of trial.scan({ steps: [0, 1], reductions: ['mean'] })) order.push(tensor!)
    expect(order.slice(0, 12)).toEqual([
      'Net_input_0',
      'fc0.weight',
      'fc0.bias',
      'fc0_output_0',
      'relu_input_0',
      'relu_output_0',
      'relu_input_1',
      'relu_output_1',
      'fc1.weight',
      'fc1.bias',
      'fc1_output_0',
      'Net_output_0',
    ])
    expect(order.slice(12, 15)).toEqual(['loss', 'accuracy', 'gradient/fc0.weight'])
    // What is given in place is saved as it was.
    const given = numbersOf((await trial.tensor('relu_input_0').value(0)).data)
    expect(given.some(number => number < 0)).toBe(true)
    const members = (name: string) => trial.collection(name).members
    expect(members('biases')).toEqual(['fc0.bias', 'fc1.bias'])
    expect(members('losses')).toEqual(['loss'])
    expect(members('gradients')).toHaveLength(4)
    expect([...members('scalars')].sort()).toEqual(['accuracy', 'learning_rate', 'loss'])
    expect(members('exp_avg_sq')).toHaveLength(4)
    expect(await trial.tensor('learning_rate').reductionValue(2, 'max')).toBe(0.01)
    expect(await trial.tensor('optimizer.fc1.bias.step').reductionValue(2, 'max')).toBe(3)
    expect(trial.problems).toEqual([])
    await trial.close()
  })

  it('has statistics that PyTorch computes, brought from the device at once', async () => {
    const { directory, said } = save(
      'reduced',
      `
fetched = []
cpu = torch.Tensor.cpu
torch.Tensor.cpu = lambda self: fetched.append(1) or cpu(self)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
answers = {}
with capture(model, out, activations=True, optimizer=optimizer, reduce=True) as c:
    for step in range(2):
        x = torch.randn(5, 4)
        loss = model(x)["logits"].pow(2).mean()
        loss.backward()
        for name, value in [("Net_input_0", x), ("gradient/fc1.weight", model.fc1.weight.grad), ("fc0.bias", model.fc0.bias)]:
            value = value.detach().double()
            answers["%d %s" % (step, name)] = dict(
                min=value.min().item(), max=value.max().item(), mean=value.mean().item(), std=value.std(unbiased=False).item(),
                l2=value.norm().item(), abs_max=value.abs().max().item(), abs_mean=value.abs().mean().item())
        optimizer.step()
        optimizer.zero_grad()
        c.step(loss=loss)
print(json.dumps([answers, len(fetched)]))`,
    )
    const [answers, fetched] = said as [Readonly<Record<string, Readonly<Record<string, number>>>>, number]
    expect(fetched).toBe(2)
    const trial = await createTrial(directory, { refresh: 'manual' })
    for (const [key, reductions] of Object.entries(answers)) {
      const [step, name] = key.split(' ') as [string, string]
      for (const [reduction, number] of Object.entries(reductions)) {
        const got = await trial.tensor(name).reductionValue(Number(step), reduction as 'max')
        expect([key, reduction, Math.abs((got as number) - number) < 1e-5]).toEqual([key, reduction, true])
      }
    }
    const order: string[] = []
    for await (const row of trial.scan({ steps: [0, 1], reductions: ['mean'] })) order.push(row.tensor!)
    expect(order.slice(0, 3)).toEqual(['Net_input_0', 'fc0.weight', 'fc0.bias'])
    expect(order.indexOf('loss')).toBeLessThan(order.indexOf('gradient/fc0.weight'))
    await trial.close()
  })

  it('has statistics of numbers whose squares are too large or too small for float32, and of such as are not finite', async () => {
    const { directory } = save(
      'range',
      `
with capture(Net(), out, reduce=True) as c:
    c.step(large=torch.full((4,), 1e30), small=torch.full((4,), 1e-30), zero=torch.zeros(4), off=torch.tensor([1.0, float("inf")]))`,
    )
    const trial = await createTrial(directory, { refresh: 'manual' })
    const of = (name: string, reduction: 'l2' | 'std' | 'abs_max' | 'mean') =>
      trial.tensor(name).reductionValue(0, reduction) as Promise<number>
    expect((await of('large', 'l2')) / 2e30).toBeCloseTo(1, 5)
    expect((await of('small', 'l2')) / 2e-30).toBeCloseTo(1, 5)
    expect([await of('large', 'std'), await of('zero', 'l2'), await of('zero', 'mean')]).toEqual([0, 0, 0])
    expect([await of('off', 'abs_max'), await of('off', 'mean')]).toEqual([Infinity, Infinity])
    await trial.close()
  })

  it('warns of gradients that were not set to zero, once, and not where they add up within a step', () => {
    const script = (isReset: boolean) => `
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with capture(model, out) as c:
    for step in range(3):
        if ${isReset ? 'True' : 'False'}:
            optimizer.zero_grad()
        for part in range(2):
            model(torch.ones(1, 4))["logits"].sum().backward()
        optimizer.step()
        c.step()`
    const told = /UserWarning: fc1.bias still has its gradient of the step before: zero_grad\(\) was not called/
    expect(save('reset', script(true)).stderr).toBe('')
    expect(save('kept', script(false)).stderr.split(told)).toHaveLength(2)
  })

  it('keeps dtypes, and tells which it can not save', async () => {
    const { directory, said, stderr } = save(
      'dtypes',
      `
kinds = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
         torch.float64, torch.complex64]
model = nn.Linear(2, 2).to(torch.bfloat16)
values = {str(kind)[6:]: torch.tensor([[1, 0, 3], [4, 5, 6]]).to(kind).t() for kind in kinds}
with capture(model, out) as c:
    model(torch.ones(1, 2, dtype=torch.bfloat16)).sum().backward()
    c.step(**values, wide=torch.ones(2, dtype=torch.complex128), none=torch.ones(0, 3), sparse=torch.eye(3).to_sparse())
print(json.dumps({name: listed(value.abs() if value.is_complex() else value) for name, value in values.items()}))`,
    )
    expect(stderr).toContain('wide is not saved: safetensors has no torch.complex128')
    const trial = await createTrial(directory, { refresh: 'manual' })
    for (const [dtype, numbers] of Object.entries(said as Record<string, number[]>)) {
      const value = await trial.tensor(dtype).value(0)
      expect([dtype, value.dtype, value.shape]).toEqual([dtype, dtype, [3, 2]])
      if (dtype !== 'complex64') expect([dtype, ...numbersOf(value.data)]).toEqual([dtype, ...numbers])
    }
    expect((await trial.tensor('gradient/weight').value(0)).dtype).toBe('bfloat16')
    expect((await trial.tensor('none').value(0)).shape).toEqual([0, 3])
    expect(numbersOf((await trial.tensor('sparse').value(0)).data)).toEqual([1, 0, 0, 0, 1, 0, 0, 0, 1])
    expect(trial.problems).toEqual([])
    await trial.close()
  })

  it('has a file for each rank, and names without those of wrappers', async () => {
    const script = `
class Wrapper(nn.Module):
    def __init__(self):
        super().__init__()
        self.module = Net()
    def forward(self, x):
        return self.module(x)
model = Wrapper()
with capture(model, out, every=2) as c:
    for step in range(3):
        for _ in range(2):
            model(torch.ones(1, 4))["logits"].sum().backward()
        c.step()
`
    for (const rank of ['0', '1']) save('ranks', script, { RANK: rank, WORLD_SIZE: '2' })
    const directory = join(scratch, 'ranks')
    expect(readdirSync(join(directory, 'step_00000002'))).toEqual(['rank_0.safetensors', 'rank_1.safetensors'])
    expect(existsSync(join(directory, 'training_job_end.ts'))).toBe(true)
    const trial = await createTrial(directory, { refresh: 'manual' })
    expect(trial.workers()).toEqual(['rank_0', 'rank_1'])
    expect(trial.tensorNames()).toContain('gradient/fc0.weight')
    expect(trial.steps()).toEqual([0, 2])
    expect(trial.problems).toEqual([])
    await trial.close()
  })

  it('refuses a directory that has steps, and goes on in it if it is told where', () => {
    const script = (options: string) => `
model = Net()
with capture(model, out${options}) as c:
    c.step(loss=1)`
    const { directory } = save('again', script(''))
    expect(() => save('again', script(''))).toThrow(
      /has steps already: name another directory, or first_step=N to go on/,
    )
    save('again', script(', first_step=1'))
    expect(readdirSync(directory).filter(name => name.startsWith('step'))).toEqual([
      'step_00000000.safetensors',
      'step_00000001.safetensors',
    ])
  })

  it.each([
    ['every={"train": 1}', 'loss=1', `ValueError: every: expected the modes TRAIN and EVAL, got 'train'`],
    ['every=5', 'loss=1, note="x"', `TypeError: step: expected a number or a tensor as note, got 'x'`],
    ['every=5', 'loss=None', 'TypeError: step: expected a number or a tensor as loss, got None'],
  ])('refuses %s and step(%s)', (options, values, message) => {
    expect(() => save('refused', `\nwith capture(Net(), out, ${options}) as c:\n    c.step(${values})`)).toThrow(
      message,
    )
  })

  it('leaves nothing behind a step that can not be written, and no end of several ranks that failed', () => {
    const script = `
import os
model = Net()
os.replace = lambda *_: (_ for _ in ()).throw(OSError("no space left"))
with capture(model, out) as c:
    c.step(loss=1)`
    expect(() => save('full', script, { RANK: '0', WORLD_SIZE: '2' })).toThrow('no space left')
    const left = readdirSync(join(scratch, 'full'), { recursive: true })
    expect(left.filter(name => String(name).endsWith('.safetensors') || String(name).endsWith('.ts'))).toEqual([])
  })
})
