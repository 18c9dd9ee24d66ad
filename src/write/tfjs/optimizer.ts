/** Watches an optimizer: the loss that it minimizes, gradients, its own variables. */

import { shown } from '../../base/arguments.js'
import { UsageError } from '../../base/errors.js'
import { gradientOf, LEARNING_RATE, LOSS, optimizerVariableOf, type VariableNames, weightOf } from './names.js'
import type { Step } from './steps.js'
import type { Gradients, TensorFlow, TfOptimizer, TfTensor, TfVariable } from './tensorflow.js'

/** The internals of an optimizer. */
interface Optimizer {
  minimize: (f: () => TfTensor, returnCost?: boolean, variables?: readonly TfVariable[]) => TfTensor | null
  applyGradients: (gradients: Gradients) => void
  readonly learningRate?: number
}

/** Runs something as part of the current training step, or as a step of its own. */
type InStep = <T>(work: (step: Step) => T) => T

export function expectOptimizer(call: string, given: unknown): asserts given is TfOptimizer {
  const { minimize, applyGradients } = (given ?? {}) as Partial<TfOptimizer>
  if (typeof minimize === 'function' && typeof applyGradients === 'function') return
  throw new UsageError(`${call}: expected an optimizer of TensorFlow.js, got ${shown(given)}`, { call })
}

/** Makes an optimizer report what it does, in place: a model recognises it by its class. @returns a function that restores it */
export function watchOptimizer(given: TfOptimizer, tf: TensorFlow, names: VariableNames, inStep: InStep): () => void {
  const optimizer = given as unknown as Optimizer
  const { minimize, applyGradients } = optimizer
  optimizer.minimize = (f, returnCost, variables) =>
    inStep(step => {
      const watched = (): TfTensor => {
        const loss = f()
        step.take(LOSS.name, LOSS.collection, loss)
        return loss
      }
      return minimize.call(optimizer, watched, returnCost, variables)
    })
  optimizer.applyGradients = gradients =>
    inStep(step => {
      const entries = Array.isArray(gradients)
        ? gradients.map(({ name, tensor }) => [name, tensor] as const)
        : Object.entries(gradients as Readonly<Record<string, TfTensor>>)
      for (const [variable, tensor] of entries) {
        // A variable on which the loss does not depend has no gradient.
        if (tensor == null) continue
        const { name, collection } = gradientOf(names.of({ name: variable }))
        step.take(name, collection, tensor)
      }
      applyGradients.call(optimizer, gradients)
      const { registeredVariables } = tf.engine()
      for (const [variable] of entries) {
        const value = registeredVariables[variable]
        if (value !== undefined) takeWeight(step, names.of({ name: variable }), value)
      }
      takeState(step, optimizer, names)
    })
  return () => {
    // The methods of its class become visible again.
    delete (optimizer as Partial<Optimizer>).minimize
    delete (optimizer as Partial<Optimizer>).applyGradients
  }
}

/** Saves the value of a variable once per step. */
export function takeWeight(step: Step, variable: string, value: TfTensor): void {
  const { name, collection } = weightOf(variable)
  if (!step.has(name)) step.take(name, collection, value)
}

interface OptimizerVariable {
  readonly originalName: string
  readonly variable: TfVariable
}

/** Saves the learning rate, and the optimizer's state for each variable, such as moments. */
function takeState(step: Step, optimizer: Optimizer, names: VariableNames): void {
  const { learningRate } = optimizer
  if (typeof learningRate === 'number') step.take(LEARNING_RATE.name, LEARNING_RATE.collection, learningRate)
  // `getWeights` would return the same, but later, when the next step may have changed it.
  for (const list of Object.values(optimizer)) {
    if (!Array.isArray(list)) continue
    for (const state of list as readonly Partial<OptimizerVariable>[]) {
      if (state?.variable === undefined || state.originalName === undefined) continue
      const at = state.originalName.lastIndexOf('/')
      const variable = names.of({ name: state.originalName.slice(0, at) })
      const { name, collection } = optimizerVariableOf(variable, state.originalName.slice(at))
      step.take(name, collection, state.variable)
    }
  }
}
