/** What is used of TensorFlow.js. It comes from the caller, so that there is one copy of it; no package is imported, types neither. */

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

/** TensorFlow.js, as `import * as tf` has it: `@tensorflow/tfjs`, or what it is made of. */
export interface TensorFlow {
  keep(tensor: never): unknown
  engine(): { readonly registeredVariables: Readonly<Record<string, TfVariable>> }
  /** Of the Layers API. Without it there are only loops of one's own. */
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
  /** Unique among all models of the process. */
  readonly name: string
  /** As the layer has it: layer/kernel. */
  readonly originalName: string
  read(): TfVariable
}

export interface Layer {
  readonly name: string
  readonly activation?: { getClassName(): string } | null
  /** Of a model that is a layer. */
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

/** A model as it is inside. */
export interface LayersModel extends TfModel {
  readonly layers: readonly Layer[]
  readonly weights: readonly Weight[]
  readonly inputs: readonly SymbolicTensor[]
  readonly metricsNames: readonly string[]
  /** Those of a model that was compiled. */
  readonly optimizer?: TfOptimizer
  readonly lossFunctions?: Loss[]
  testFunction: TestFunction
  makeTestFunction: () => void
  testLoop: (f: TestFunction, ...more: readonly unknown[]) => readonly TfTensor[]
  /** Of a Sequential: the model that it makes of its layers. */
  readonly model?: LayersModel
}

export function listOf<T>(one: T | readonly T[]): readonly T[] {
  return Array.isArray(one) ? one : [one as T]
}
