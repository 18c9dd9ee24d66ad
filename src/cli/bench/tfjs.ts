/** TensorFlow.js with its WebAssembly backend, where it is installed in the directory that the command is started in. */

import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

interface Tensor {
  dataSync(): ArrayLike<number>
}

/** The used part of @tensorflow/tfjs-core. */
interface Core {
  readonly version_core: string
  setBackend(name: string): Promise<boolean>
  tensor1d(data: Float32Array): Tensor
  tensor(data: Float32Array, shape: readonly number[]): Tensor
  tidy<T>(work: () => T): T
  abs(x: Tensor): Tensor
  min(x: Tensor): Tensor
  max(x: Tensor): Tensor
  sum(x: Tensor, axis?: number): Tensor
  prod(x: Tensor): Tensor
  sqrt(x: Tensor): Tensor
  square(x: Tensor): Tensor
  moments(x: Tensor): { readonly mean: Tensor; readonly variance: Tensor }
}

export type TfjsKernel = 'moments' | 'mean and std' | 'min and max'

export class Tfjs {
  readonly version: string
  readonly #core: Core

  private constructor(core: Core) {
    this.version = core.version_core
    this.#core = core
  }

  /** Starts TensorFlow.js. @returns null if it is not installed, or does not start */
  static async start(): Promise<Tfjs | null> {
    const require = createRequire(join(process.cwd(), 'package.json'))
    const load = (name: string) => import(pathToFileURL(require.resolve(name)).href)
    try {
      const [core, wasm]: [Core, { setThreadsCount(count: number): void }] = [
        await load('@tensorflow/tfjs-core'),
        await load('@tensorflow/tfjs-backend-wasm'),
      ]
      wasm.setThreadsCount(1)
      return (await core.setBackend('wasm')) ? new Tfjs(core) : null
    } catch {
      return null
    }
  }

  /** A sum along the first axis. */
  prepareSum(data: Float32Array, shape: readonly number[]): () => Float64Array {
    const tf = this.#core
    const x = tf.tensor(data, shape)
    return () => Float64Array.from(tf.tidy(() => tf.sum(x, 0).dataSync()))
  }

  /** A run of a kernel, on data that is in the backend already. */
  prepare(kernel: TfjsKernel, data: Float32Array): () => Float64Array {
    const tf = this.#core
    const x = tf.tensor1d(data)
    const nine = (t: Tensor, l1: Tensor): Tensor[] => {
      const { mean, variance } = tf.moments(t)
      const l2 = tf.sqrt(tf.sum(tf.square(t)))
      return [tf.min(t), tf.max(t), mean, tf.sqrt(variance), variance, tf.sum(t), tf.prod(t), l1, l2]
    }
    const answers = (): Tensor[] => {
      if (kernel === 'min and max') return [tf.min(x), tf.max(x)]
      if (kernel === 'mean and std') {
        const { mean, variance } = tf.moments(x)
        return [mean, tf.sqrt(variance)]
      }
      const a = tf.abs(x)
      const l1 = tf.sum(a)
      return [...nine(x, l1), ...nine(a, l1)]
    }
    return () => Float64Array.from(tf.tidy(() => answers().map(answer => answer.dataSync()[0]!)))
  }
}
