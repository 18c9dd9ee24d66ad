/** The mistakes that docs/pytorch.md lists, in a small training each, and what tells of them. */

import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { trialscan } from '../cli/run.js'
import { hasModule, python } from '../support/python.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('mistakes')

const TRAININGS = `
import torch
from torch import nn
from trialscan import capture
random = torch.Generator().manual_seed(1)
x, truth = torch.randn(1000, 20, generator=random), torch.randn(20, 3, generator=random)
y = (x @ truth).argmax(1)
def train(name, lr=0.1, bias=None, frozen=False, resets=True, zero=False, norm=False, loss_of=nn.functional.cross_entropy, **options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))
    if norm:  # The bias before it gets no gradient: rounding errors alone.
        model.insert(1, nn.BatchNorm1d(32))
    if zero:
        for weight in model.parameters():
            nn.init.zeros_(weight)
    if bias is not None:
        nn.init.constant_(model[0].bias, bias)
    if frozen:
        model[2].requires_grad_(False)
    optimizer = (torch.optim.Adam if zero else torch.optim.SGD)(model.parameters(), lr=lr)
    with capture(model, name, every=10, activations=True, optimizer=True, **options) as c:
        for step in range(100):
            batch = torch.arange(32 * step, 32 * step + 32) % 1000
            loss = loss_of(model(x[batch]), y[batch])
            if resets:
                optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            c.step(loss=loss)
def entropy(output, y):  # log(0) · 0 is NaN.
    truth = nn.functional.one_hot(y, 3)
    return -((output.softmax(1) * truth).log() * truth).sum(1).mean()
train("good")
train("norm", norm=True)
train("fast", lr=30)
train("slow", lr=1e-9)
train("zero", zero=True)
train("fast-reduced", lr=30, reduce=True)
train("dead", bias=-10)
train("log", loss_of=entropy)
train("frozen", frozen=True)
train("summed", resets=False)
`

/** What a command prints about trainings, with single spaces. @param names trainings, and options */
async function said(command: string, ...names: readonly string[]): Promise<string> {
  const places = names.map(name => (/^--|^[A-Z]/.test(name) ? name : join(scratch, name)))
  const { stdout } = await trialscan(command, ...places, '--format', 'table')
  return stdout.replaceAll(/\s+/g, ' ')
}

describe.runIf(hasModule('torch'))('mistakes', () => {
  let stderr = ''
  beforeAll(() => {
    const done = python(TRAININGS, { cwd: scratch })
    expect([done.status, done.stderr.match(/Error/)]).toEqual([0, null])
    stderr = done.stderr
  })

  it('none: nothing is found', async () => {
    expect(await said('check', 'good')).toMatch(/^good: \d+ rules judged 10 steps and found nothing wrong/)
  })

  it('none: a bias before a normalisation has no gradient, and that is no fault', async () => {
    expect(await said('check', 'norm')).toMatch(/^norm: \d+ rules judged 10 steps and found nothing wrong/)
    expect(await said('check', 'norm', '--rule', 'VanishingGradient')).toMatch(/ gradient\/0\.bias is \S+, below 1e-7/)
  })

  it('a learning rate that is too low', async () => {
    expect(await said('check', 'slow')).toMatch(
      /^slow: UnchangedTensor .*the learning rate learning_rate is 1e-9: too low for anything to be learned/,
    )
  })

  it('weights that start at zero explain moments that stay zero', async () => {
    expect(await said('check', 'zero')).toMatch(/^zero: AllZero at step 0 [^.]*\..* explains [^.]*OptimizerReset/)
  })

  it('a learning rate that is too high explains what follows from it', async () => {
    const found = await said('check', 'fast')
    expect(found).toMatch(/^fast: ExplodingNorm at step 10 \(TRAIN 10\): ‖\S+‖ is \S+, at step 0 it was /)
    expect(found).toMatch(/ explains [^.]*DeadRelu/)
    expect(found).toContain('the learning rate learning_rate is 30 from step 0 on, far beyond what trainings take')
    expect(await said('check', 'fast-reduced')).toMatch(/^fast-reduced: .*the learning rate learning_rate is 30/)
  })

  it('ReLUs that are dead from the start', async () => {
    const found = await said('check', 'dead')
    expect(found).toMatch(/^dead: DeadRelu at step 0 \(TRAIN 0\): 100 % of the 32 ReLUs of 1.ReLU_output_0 are dead/)
    expect(found).toMatch(/explains [^.]*UnchangedTensor/)
  })

  it('NaN from log(0)', async () => {
    expect(await said('check', 'log')).toMatch(/^log: ExplodingTensor at step 0 \(TRAIN 0\): loss is NaN/)
    expect(await said('nan', 'log')).toMatch(/^log: NaN first in loss, at step 0 .* it arose here/)
  })

  it('a layer that is frozen', async () => {
    expect(await said('summary', 'frozen')).toContain('1 weight of 3 never changes: 2.weight')
    expect(await said('diff', 'good', 'frozen')).toContain('Only in the first run: gradient/2.weight, gradient/2.bias')
  })

  it('gradients that were not set to zero', () => {
    expect(stderr).toContain('still has its gradient of the step before: zero_grad() was not called')
  })
})
