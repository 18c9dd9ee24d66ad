/** Types of the parts of TensorFlow.js that are used. The caller passes the module, so that there is one copy; no package is imported. */

/** A tensor of TensorFlow.js. */
export interface TfTensor {
  readonly shape: number[]
  readonly dtype: string
  data(): Promise<ArrayLike<number> | string[]>
  clone(): TfTensor
  dispose(): void
}

export interface TfVariable extends TfTensor {
  readonly name: string
}

/** The TensorFlow.js module, as `import * as tf` has it: `@tensorflow/tfjs`, or one of its parts. */
export interface TensorFlow {
  keep(tensor: never): unknown
  engine(): { readonly registeredVariables: Readonly<Record<string, TfVariable>> }
  /** The callbacks of the Layers API; absent in builds that have only custom loops. */
  readonly Callback?: abstract new () => object
}

/** An optimizer of TensorFlow.js. */
export interface TfOptimizer {
  minimize(f: () => never, returnCost?: boolean, variables?: never): unknown
  applyGradients(gradients: never): void
}

/** A model of the Layers API. */
export interface TfModel {
  readonly layers: readonly object[]
  stopTraining: boolean
}

// ------------------------------------------------------------------------------ What Layers has for its own use

export type Gradients =
  | Readonly<Record<string, TfTensor>>
  | readonly { readonly name: string; readonly tensor: TfTensor }[]

export interface Weight {
  /** The unique name among all models of the process. */
  readonly name: string
  /** The layer's own name: layer/kernel. */
  readonly originalName: string
  read(): TfVariable
}

export interface Layer {
  readonly name: string
  readonly activation?: { getClassName(): string } | null
  /** The layers of a nested model. */
  readonly layers?: readonly Layer[]
  call: (inputs: TfTensor | readonly TfTensor[], ...more: readonly unknown[]) => TfTensor | readonly TfTensor[]
}

export interface SymbolicTensor {
  readonly sourceLayer: {
    readonly outboundNodes: readonly {
      readonly outboundLayer: Layer
      readonly inputTensors: readonly SymbolicTensor[]
    }[]
  }
}

export type Loss = (labels: TfTensor, predictions: TfTensor) => TfTensor
export type TestFunction = (data: readonly TfTensor[]) => readonly TfTensor[]

/** The internals of a model. */
export interface LayersModel extends TfModel {
  readonly layers: readonly Layer[]
  readonly weights: readonly Weight[]
  readonly inputs: readonly SymbolicTensor[]
  readonly metricsNames: readonly string[]
  /** The optimizer of a compiled model. */
  readonly optimizer?: TfOptimizer
  readonly lossFunctions?: Loss[]
  testFunction: TestFunction
  makeTestFunction: () => void
  testLoop: (f: TestFunction, ...more: readonly unknown[]) => readonly TfTensor[]
  /** The model that a Sequential makes of its layers. */
  readonly model?: LayersModel
}

export function listOf<T>(value: T | readonly T[]): readonly T[] {
  return Array.isArray(value) ? value : [value as T]
}
