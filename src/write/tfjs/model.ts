/** Watches a Layers model while it is trained and evaluated: layers, losses, weights. */

import { shown } from '../../base/arguments.js'
import { UsageError } from '../../base/errors.js'
import type { Mode } from '../../base/types.js'
import { LOSS, metricOf, ofLayer } from './names.js'
import type { Step } from './steps.js'
import { type Layer, type LayersModel, listOf, type TestFunction, type TfModel, type TfTensor } from './tensorflow.js'

/** Receives a model's tensors, and runs the model's own code as a step. */
export interface Watcher {
  current(): Step | null
  inStep<T>(mode: Mode, work: (step: Step) => T): T
}

/** @throws UsageError for anything but a built model of the Layers API */
export function layersModelOf(call: string, given: TfModel): LayersModel {
  const { model, layers } = (given ?? {}) as Partial<LayersModel>
  const layersModel = model ?? (given as LayersModel)
  if (!Array.isArray(layers) || !Array.isArray(layersModel.inputs)) {
    const wanted = 'a model of the Layers API that knows the shape of its inputs'
    throw new UsageError(`${call}: expected ${wanted}, got ${shown(given)}`, { call })
  }
  return layersModel
}

/** Makes a model report what it computes. @returns a function that restores the model */
export function watchModel(model: LayersModel, watcher: Watcher): () => void {
  const undo = [
    ...layersIn(model).map(layer => watchLayer(layer, inputsOf(model, layer), watcher)),
    watchLosses(model, watcher),
    watchEvaluation(model, watcher),
  ]
  return () => {
    for (const restore of undo) restore()
  }
}

/** All layers, including those of nested models. */
function layersIn({ layers = [] }: Pick<Layer, 'layers'>): readonly Layer[] {
  return layers.flatMap(layer => [layer, ...layersIn((layer as Layer & { model?: Layer }).model ?? layer)])
}

/** The model's inputs that go straight into a layer, by their positions among the layer's inputs. */
function inputsOf({ inputs }: LayersModel, layer: Layer): ReadonlyMap<number, number> {
  const positions = new Map<number, number>()
  for (const [i, input] of inputs.entries()) {
    const [first] = input.sourceLayer.outboundNodes
    if (first?.outboundLayer === layer) positions.set(first.inputTensors.indexOf(input), i)
  }
  return positions
}

function watchLayer(layer: Layer, inputs: ReadonlyMap<number, number>, watcher: Watcher): () => void {
  const { call } = layer
  layer.call = (given, ...more) => {
    const step = watcher.current()
    if (step === null) return call.call(layer, given, ...more)
    // Taken before the call, which may dispose of them.
    for (const [i, tensor] of listOf<TfTensor>(given).entries()) {
      step.takeNext(ofLayer(layer, 'inputs'), 'layers', tensor)
      const input = inputs.get(i)
      if (input !== undefined) takeOnce(step, numbered('inputs', input), 'inputs', tensor)
    }
    const computed = call.call(layer, given, ...more)
    for (const tensor of listOf<TfTensor>(computed)) step.takeNext(ofLayer(layer, 'outputs'), 'layers', tensor)
    return computed
  }
  return () => {
    delete (layer as Partial<Layer>).call
  }
}

/** Watches labels and predictions: the arguments of the loss functions, one pair for each output. */
function watchLosses({ lossFunctions = [] }: LayersModel, watcher: Watcher): () => void {
  const before = [...lossFunctions]
  for (const [i, loss] of before.entries()) {
    lossFunctions[i] = (labels, predictions) => {
      const step = watcher.current()
      if (step !== null) {
        takeOnce(step, numbered('labels', i), 'labels', labels)
        takeOnce(step, numbered('predictions', i), 'outputs', predictions)
      }
      return loss(labels, predictions)
    }
  }
  return () => {
    lossFunctions.splice(0, before.length, ...before)
  }
}

/** Makes each batch of an evaluation a step. */
function watchEvaluation(model: LayersModel, watcher: Watcher): () => void {
  const watched = new WeakSet<TestFunction>()
  const watch = (test: TestFunction): TestFunction => {
    if (watched.has(test)) return test
    const watchedTest: TestFunction = data =>
      watcher.inStep('EVAL', step => {
        const computed = test.call(model, data)
        // The loss so far for each output, then the metrics.
        const losses = model.lossFunctions?.length ?? 1
        takeOnce(step, LOSS.name, LOSS.collection, computed[losses - 1]!)
        for (const [i, metric] of model.metricsNames.slice(1).entries()) {
          const { name, collection } = metricOf(metric)
          takeOnce(step, name, collection, computed[losses + i]!)
        }
        return computed
      })
    watched.add(watchedTest)
    return watchedTest
  }
  const { makeTestFunction, testLoop } = model
  model.makeTestFunction = () => {
    makeTestFunction.call(model)
    model.testFunction = watch(model.testFunction)
  }
  // `fit` creates its function before it announces the model.
  model.testLoop = (f, ...more) => testLoop.call(model, watch(f), ...more)
  return () => {
    delete (model as Partial<LayersModel>).makeTestFunction
    delete (model as Partial<LayersModel>).testLoop
  }
}

function takeOnce(step: Step, name: string, collection: string, tensor: TfTensor): void {
  if (!step.has(name)) step.take(name, collection, tensor)
}

function numbered(name: string, number: number): string {
  return number === 0 ? name : `${name}_${number}`
}
