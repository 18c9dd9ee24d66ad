/** The names of TensorFlow.js tensors in a trial: those of smdebug's Keras hook, if it has one. */

import type { Layer, LayersModel, TfVariable, Weight } from './tensorflow.js'

export interface NamedTensor {
  readonly name: string
  readonly collection: string
}

export const LOSS: NamedTensor = { name: 'loss', collection: 'losses' }
export const LEARNING_RATE: NamedTensor = { name: 'learning_rate', collection: 'optimizer_variables' }

export function gradientOf(variable: string): NamedTensor {
  return { name: `gradient/${variable}`, collection: 'gradients' }
}

export function weightOf(variable: string): NamedTensor {
  return { name: variable, collection: /(^|\/|_)bias(_\d+)?$/.test(variable) ? 'biases' : 'weights' }
}

/** @param state the optimizer's name for it: the name of its variable, with `/m` and so on */
export function optimizerVariableOf(variable: string, state: string): NamedTensor {
  return { name: `optimizer/${variable}${state}`, collection: 'optimizer_variables' }
}

export function metricOf(name: string): NamedTensor {
  return { name, collection: name.endsWith('loss') ? 'losses' : 'metrics' }
}

/** The name of a layer's inputs or outputs. A fused activation is part of the name of the outputs: dense/relu/outputs. */
export function ofLayer({ name, activation }: Layer, kind: 'inputs' | 'outputs'): string {
  const className = activation?.getClassName()
  return kind === 'inputs' || className === undefined || className === 'linear'
    ? `${name}/${kind}`
    : `${name}/${className}/${kind}`
}

/**
 * Names of variables. They are unique in the process; here they are unique within the trial, so that two models of the same layers have
 * the same names.
 */
export class VariableNames {
  readonly #names = new Map<string, string>()
  readonly #taken = new Set<string>()

  addModel({ weights }: LayersModel): void {
    for (const weight of weights) this.of(weight)
  }

  of({ name, originalName = name }: Pick<Weight, 'name'> & Partial<Weight> & Partial<TfVariable>): string {
    const known = this.#names.get(name)
    if (known !== undefined) return known
    const free = this.#taken.has(originalName) ? name : originalName
    this.#names.set(name, free)
    this.#taken.add(free)
    return free
  }
}
