/** What the two trainings share: TensorFlow.js on its WebAssembly backend, digits of MNIST, and the command line. */

import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { setThreadsCount } from '@tensorflow/tfjs-backend-wasm'
import * as core from '@tensorflow/tfjs-core'
import * as layers from '@tensorflow/tfjs-layers'

/** As `import * as tf from '@tensorflow/tfjs'`, without what is not needed here. */
export const tf = { ...core, ...layers }

// Its threads would go on for ever.
setThreadsCount(1)
await tf.setBackend('wasm')

// That backend lacks the gradient of a convolution by its filter. It has that of a convolution in three dimensions, of which one may be 1.
const { kernelFunc } = tf.getKernel('Conv3DBackpropFilterV2', 'wasm')
tf.registerKernel({
  kernelName: 'Conv2DBackpropFilter',
  backendName: 'wasm',
  kernelFunc({ inputs: { x, dy }, attrs, backend }) {
    const { strides, pad, filterShape } = attrs as unknown as core.Conv2DBackpropFilterAttrs
    const [height, width] = [strides].flat() as [number, number?]
    const deep = (info: core.TensorInfo) => ({ ...info, shape: [info.shape[0]!, 1, ...info.shape.slice(1)] })
    const gradient = kernelFunc({
      inputs: { x: deep(x!), dy: deep(dy!) },
      attrs: { strides: [1, height, width ?? height], pad: pad as string, filterShape: [1, ...filterShape] },
      backend,
    })
    return { ...(gradient as core.TensorInfo), shape: filterShape }
  },
})

export interface Digits {
  /** 28 by 28 pixels from 0 to 1: count × 28 × 28 × 1. */
  readonly images: core.Tensor4D
  /** 0 to 9. */
  readonly classes: core.Tensor1D
}

const SIDE = 28
const require = createRequire(import.meta.url)

/** Images of the digits 0 to 9 in turn, after the first `skip` of each. */
export function mnistDigits(count: number, skip = 0): Digits {
  const pixels = Array.from({ length: 10 }, (_, digit) => require(`mnist/src/digits/${digit}.json`).data as number[])
  const size = SIDE * SIDE
  const images = new Float32Array(count * size)
  for (let i = 0; i < count; i++) {
    const at = skip + Math.floor(i / 10)
    images.set(pixels[i % 10]!.slice(at * size, (at + 1) * size), i * size)
  }
  return {
    images: tf.tensor4d(images, [count, SIDE, SIDE, 1]),
    classes: tf.tensor1d(Int32Array.from({ length: count }, (_, i) => i % 10)),
  }
}

/** Runs a command of trialscan, which prints what it finds. */
export function trialscan(...args: readonly string[]): void {
  console.log(`\n$ trialscan ${args.join(' ')}`)
  const isWindows = process.platform === 'win32'
  const { error, status } = spawnSync('npx', ['trialscan', ...args], { stdio: 'inherit', shell: isWindows })
  // 1 says that there is something to find.
  if (status !== 0 && status !== 1) throw error ?? new Error(`expected exit code 0 or 1, got ${status}`)
}
