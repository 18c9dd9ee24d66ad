/** A hook for trainings with TensorFlow.js: it saves what they compute, as the writer is configured, and lets rules judge it. */

import { shown } from '../../base/arguments.js'
import { UsageError } from '../../base/errors.js'
import { checkOptions, kinds, optionsOf } from '../../base/options.js'
import type { Mode } from '../../base/types.js'
import type { Finding } from '../../rules/finding.js'
import { TrialWriter } from '../writer.js'
import { layersModelOf, watchModel } from './model.js'
import { metricOf, VariableNames } from './names.js'
import { expectOptimizer, takeWeight, watchOptimizer } from './optimizer.js'
import { type HookReport, type HookRules, TrainingRules } from './rules.js'
import { type Step, Steps } from './steps.js'
import type { LayersModel, TensorFlow, TfModel, TfOptimizer, TfTensor, TfVariable } from './tensorflow.js'

export interface HookOptions<T extends TensorFlow = TensorFlow> {
  /** The TensorFlow.js module that trains: `import * as tf from '@tensorflow/tfjs'`. */
  readonly tf: T
}

const HOOK_OPTIONS = optionsOf<HookOptions>(
  { tf: kinds.that<TensorFlow>("TensorFlow.js, as import * as tf from '@tensorflow/tfjs' has it", isTensorFlow) },
  'tf',
)

/** A hook that saves the tensors of a training; `createHook` makes it. */
export interface TrialHook {
  /** True if a rule has asked to stop the training. `fit` stops by itself. */
  readonly isStopped: boolean
  /** The findings of rules so far. */
  readonly findings: readonly Finding[]

  /** Saves a model's layers, losses, weights and evaluations, also outside of `fit`. `fit` does this for its own model. */
  registerModel(model: TfModel): void

  /** Makes each `minimize` or `applyGradients` of an optimizer a step. @returns the same optimizer */
  wrap<O extends TfOptimizer>(optimizer: O): O

  /**
   * Runs a training step: `optimizer.minimize(f, true, variables)`. Waits while earlier steps are still being written.
   * @returns the loss, which the caller must dispose of
   */
  minimize<L extends TfTensor>(optimizer: TfOptimizer, f: () => L, variables?: readonly TfVariable[]): Promise<L>

  /**
   * Runs a step of any kind: everything that `work` computes with registered models and optimizers, and everything that it saves, belongs
   * to the step.
   * @param work a synchronous function
   * @returns what `work` returns
   */
  step<R>(mode: Mode, work: () => R): Promise<R>

  /**
   * Saves a tensor of the current step with its present value, if it is to be saved.
   * @param options.collection default: `default`
   * @throws UsageError outside of a step
   */
  save(name: string, tensor: TfTensor | number, options?: { readonly collection?: string }): void

  /** Saves a number at the current step, whichever steps are saved, as `scalar/` and its name. @throws UsageError outside of a step */
  saveScalar(name: string, value: number): void

  /**
   * Lets rules judge each step as soon as it is written. The training waits for them, so that it can stop at that step.
   * @throws UsageError for an unknown rule or parameter
   */
  rules(rules: HookRules): Promise<void>

  /** Waits until all steps that have ended can be read. @throws StoreError */
  flush(): Promise<void>

  /** Ends the trial, restores models and optimizers, and closes the writer. @returns the report of the rules */
  close(): Promise<HookReport>
}

/** The callback type of the Layers API, if there is one. */
export type CallbackOf<T> = T extends { readonly Callback: abstract new () => infer C } ? C : unknown

/**
 * Makes a hook that saves with a writer: a callback for `model.fit` and `model.fitDataset`, and methods for custom loops.
 * @param writer made with `framework: 'tfjs'`. Only the hook may call its `step`, `setMode` and `close`.
 * @throws UsageError
 */
export function createHook<T extends TensorFlow>(
  writer: TrialWriter,
  options: HookOptions<T>,
): TrialHook & CallbackOf<T> {
  const { tf } = checkOptions('createHook', HOOK_OPTIONS, options)
  if (!(writer instanceof TrialWriter)) {
    throw new UsageError(`createHook: expected what createWriter returns, got ${shown(writer)}`, { call: 'createHook' })
  }
  const { framework = 'pytorch' } = writer.options
  if (framework !== 'tfjs') {
    const message = `createHook: expected a writer with framework: 'tfjs', got one with '${framework}'`
    throw new UsageError(message, { call: 'createHook', framework })
  }
  // `fit` accepts only instances of the caller's own Callback class.
  return hookOf((tf.Callback ?? Object) as new () => object, writer, tf) as TrialHook & CallbackOf<T>
}

function isTensorFlow(given: unknown): boolean {
  const { keep, engine } = (given ?? {}) as Partial<TensorFlow>
  return typeof keep === 'function' && typeof engine === 'function'
}

function hookOf(Callback: new () => object, writer: TrialWriter, tf: TensorFlow): TrialHook {
  const Hook = class extends Callback implements TrialHook {
    isStopped = false
    readonly #steps = new Steps(writer, tf)
    readonly #names = new VariableNames()
    /** The models and optimizers, each with the function that restores it. */
    readonly #models = new Map<LayersModel, () => void>()
    readonly #optimizers = new Map<TfOptimizer, () => void>()
    #current: Step | null = null
    #rules: TrainingRules | null = null

    get findings(): readonly Finding[] {
      return this.#report.findings
    }

    get #report(): HookReport {
      return this.#rules?.report ?? { findings: [], missing: [], problems: [] }
    }

    registerModel(model: TfModel): void {
      this.setModel(layersModelOf('hook.registerModel', model))
    }

    wrap<O extends TfOptimizer>(optimizer: O): O {
      this.#addOptimizer('hook.wrap', optimizer)
      return optimizer
    }

    async minimize<L extends TfTensor>(
      optimizer: TfOptimizer,
      f: () => L,
      variables?: readonly TfVariable[],
    ): Promise<L> {
      this.#addOptimizer('hook.minimize', optimizer)
      const minimize = (): unknown => optimizer.minimize(f as () => never, true, variables as never)
      return this.step('TRAIN', minimize as () => L)
    }

    async step<R>(mode: Mode, work: () => R): Promise<R> {
      const result = this.#inStep(mode, work)
      await this.#steps.room()
      return result
    }

    save(name: string, tensor: TfTensor | number, { collection = 'default' } = {}): void {
      this.#expectStep('hook.save').take(name, collection, tensor)
    }

    saveScalar(name: string, value: number): void {
      this.#expectStep('hook.saveScalar').addScalar(name, value)
    }

    async rules(given: HookRules): Promise<void> {
      if (this.#rules !== null) throw new UsageError('hook.rules: expected one call, got another')
      const rules = new TrainingRules(writer, given, () => this.#stop())
      this.#rules = rules
      await rules.open()
      this.#steps.onWritten = () => rules.judge()
    }

    async flush(): Promise<void> {
      this.#current = null
      await this.#steps.flush()
      await writer.flush()
    }

    async close(): Promise<HookReport> {
      for (const undo of [...this.#models.values(), ...this.#optimizers.values()]) undo()
      this.#models.clear()
      this.#optimizers.clear()
      this.#current = null
      try {
        await this.#steps.flush()
        return this.#report
      } finally {
        await this.#rules?.close()
        await writer.close()
      }
    }

    // ------------------------------------------------------------------------------------------ What `fit` calls

    setModel(model: LayersModel): void {
      // Picks up what `compile` has changed.
      this.#models.get(model)?.()
      this.#names.addModel(model)
      const inStep = <T>(mode: Mode, work: (step: Step) => T): T => this.#inStep(mode, work)
      this.#models.set(model, watchModel(model, { current: () => this.#current, inStep }))
      if (model.optimizer) this.#addOptimizer('hook.registerModel', model.optimizer)
    }

    async onBatchBegin(): Promise<void> {
      this.#current = this.#steps.begin('TRAIN')
    }

    async onBatchEnd(_batch: number, logs: Readonly<Record<string, TfTensor | number>> = {}): Promise<void> {
      const step = this.#current
      if (step !== null) {
        for (const [metric, value] of Object.entries(logs)) {
          if (metric === 'batch' || metric === 'size' || step.has(metric)) continue
          const { name, collection } = metricOf(metric)
          step.take(name, collection, value)
        }
        this.#takeWeights(step)
        this.#current = null
        this.#steps.end(step)
      }
      await this.#steps.room()
    }

    onTrainEnd(): Promise<void> {
      return this.flush()
    }

    // ------------------------------------------------------------------------------------------------- Its state

    /** @throws UsageError outside of a step */
    #expectStep(call: string): Step {
      if (this.#current !== null) return this.#current
      const expected = 'expected a step under way, got none: call it within hook.step or hook.minimize'
      throw new UsageError(`${call}: ${expected}`, { call })
    }

    #addOptimizer(call: string, optimizer: TfOptimizer): void {
      expectOptimizer(call, optimizer)
      if (this.#optimizers.has(optimizer)) return
      const inStep = <T>(work: (step: Step) => T): T => this.#inStep('TRAIN', work)
      this.#optimizers.set(optimizer, watchOptimizer(optimizer, tf, this.#names, inStep))
    }

    /** Runs something as part of the current step if that has the same mode, or as a step of its own. */
    #inStep<T>(mode: Mode, work: (step: Step) => T): T {
      const before = this.#current
      if (before?.mode === mode) return work(before)
      const step = this.#steps.begin(mode)
      this.#current = step
      try {
        const result = work(step)
        this.#takeWeights(step)
        return result
      } catch (error) {
        step.dispose()
        throw error
      } finally {
        this.#current = before
        this.#steps.end(step)
      }
    }

    #takeWeights(step: Step): void {
      for (const { weights } of this.#models.keys()) {
        for (const weight of weights) takeWeight(step, this.#names.of(weight), weight.read())
      }
    }

    #stop(): void {
      this.isStopped = true
      for (const model of this.#models.keys()) model.stopTraining = true
    }
  }
  return new Hook()
}
