/** What is true of each trial: the rules that have to fire where `check` chooses them, no others, and why. */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './golden.js'

export interface Truth {
  readonly trial: string
  /** In the order of their names. */
  readonly rules: readonly string[]
  /** Checked by hand against the values: `trialscan scan` and `show` print them. */
  readonly because: string
}

export const TRUTHS: readonly Truth[] = [
  {
    trial: 'cnn-good',
    rules: [],
    because:
      'The loss falls from 2.33 to 0.12, of validation from 1.70 to 0.23; weights move at every step of TRAIN, and rest only while EVAL goes on.',
  },
  {
    trial: 'cnn-bad-init',
    rules: ['DeadRelu', 'PoorWeightInitialization'],
    because:
      'At step 0 the variance of the inputs of relu0, relu1 and relu2 is 1.0, 4.1 and 263, and the loss 62; at step 20 nearly two thirds of relu0 put out zero for all 32 samples.',
  },
  {
    trial: 'cnn-dead-relu',
    rules: ['AllZero', 'DeadRelu', 'UnchangedTensor'],
    because:
      'Biases of -10 keep relu0 and relu1 at zero from step 0 on; so no gradient reaches conv0, conv1 and fc0.weight (exactly zero at all five steps), whose weights stay what they were.',
  },
  {
    trial: 'cnn-exploding',
    rules: ['AllZero', 'DeadRelu', 'ExplodingTensor', 'LossNotDecreasing', 'WeightUpdateRatio'],
    because:
      'By step 5 weights are NaN and the loss with them; conv0 alone is finite, 2.7e31 times what it was, so that relu0 puts out zeros, and its gradients are exactly zero.',
  },
  {
    trial: 'cnn-overfit',
    rules: ['Overfit'],
    because: 'The loss of validation falls to 0.65 and goes up to 0.88, while that of the training falls on to 0.007.',
  },
  {
    trial: 'mlp-vanishing',
    rules: ['UnchangedTensor', 'VanishingGradient'],
    because:
      'Mean |gradient| is 0.02 to 0.05 at the output and 1e-9 at the input; the weights of the first layers do not move by 1e-5 of their size in 92 steps.',
  },
  {
    trial: 'mlp-saturated',
    rules: ['AllZero', 'SaturatedActivation'],
    because:
      'Inputs of tanh have a variance of 50,000 and more, outputs are 1 or -1 in float32; behind them the gradients of hidden.0 and inp are exactly zero.',
  },
  {
    trial: 'mlp-all-zero',
    rules: ['AllZero', 'UnchangedTensor'],
    because:
      'All weights are zero at every step, and so are all gradients but that of the last bias: nothing but that bias can move.',
  },
  {
    trial: 'autoencoder',
    rules: [],
    because:
      'The loss falls from 0.185 to 0.032, of validation from 0.070 to 0.029; gradients are small in all layers alike, 1e-4 to 1e-3, and images lie within [0, 1].',
  },
  {
    trial: 'xgb-cancer',
    rules: [],
    because:
      'The train-error falls to 0; validation-logloss falls to the end, 0.49 to 0.064, five times train-logloss, which it may be, as it never rises. 0.614 of the labels are 1. Trees are at most 4 deep.',
  },
  {
    trial: 'cnn-reductions',
    rules: [],
    because: 'The same training as cnn-good, of which only reductions were saved.',
  },
  {
    trial: 'cnn-raw-and-reductions',
    rules: [],
    because: 'The first steps of cnn-good.',
  },
  {
    trial: 'tornasole-2019',
    rules: [],
    because: 'The same training as cnn-good, saved by Tornasole.',
  },
  {
    trial: 'workers-4',
    rules: ['ReplicaDrift'],
    because:
      'Made up: on each worker the loss is 2 / (step + 1) and the gradient shrinks tenfold a step, to 8e-7; each has weights of its own, all 153 of them.',
  },
  {
    trial: 'workers-running',
    rules: ['ReplicaDrift'],
    because: 'As workers-4, with three workers and up to step 5.',
  },
  {
    trial: 'workers-tf-devices',
    rules: ['ReplicaDrift'],
    because: 'As workers-4, with the names of two devices for workers.',
  },
  {
    trial: 'dtypes',
    rules: ['ExplodingTensor'],
    because: 'No training: edge/nan, edge/nanonly and three others are there to hold NaN and infinities.',
  },
  {
    trial: 'dtypes-checksummed',
    rules: ['ExplodingTensor'],
    because: 'As dtypes.',
  },
]

/** Of fixtures/, which have less than the trials that lie beside the project: too few tensors or steps for these rules. */
const LEFT_OUT: Readonly<Record<string, readonly string[]>> = {
  'mlp-vanishing': ['UnchangedTensor'],
  'mlp-all-zero': ['UnchangedTensor'],
}

/** The truths of the trials that are there. */
export const truths = [join(ROOT, '../shared/trials'), join(ROOT, 'fixtures/trials')].flatMap(place =>
  TRUTHS.map(({ trial, rules, because }) => {
    const isFixture = place.startsWith(join(ROOT, 'fixtures'))
    const left = isFixture ? (LEFT_OUT[trial] ?? []) : []
    const directory = join(place, trial)
    const name = `${isFixture ? 'fixtures' : 'shared'} ${trial}`
    return { name, trial, directory, rules: rules.filter(rule => !left.includes(rule)), because }
  }).filter(({ directory }) => existsSync(directory)),
)
