/** @tensorflow/tfjs-backend-wasm: an operation a reduction, SIMD, one thread. */
import { setThreadsCount } from '@tensorflow/tfjs-backend-wasm'
import * as tf from '@tensorflow/tfjs-core'

export const NAME = 'tfjs-backend-wasm'

/** All 18 reductions, in the order of REDUCTIONS. */
export async function moments(data: Float32Array): Promise<() => Float64Array> {
  setThreadsCount(1)
  await tf.setBackend('wasm')
  const x = tf.tensor1d(data)
  return () => {
    const numbers = tf.tidy(() => {
      const a = tf.abs(x)
      return [x, a].flatMap(t => {
        const { mean, variance } = tf.moments(t)
        const l1 = t === a ? tf.sum(t) : tf.sum(tf.abs(t))
        const l2 = tf.sqrt(tf.sum(tf.square(t)))
        const answers = [tf.min(t), tf.max(t), mean, tf.sqrt(variance), variance, tf.sum(t), tf.prod(t), l1, l2]
        return answers.map(answer => answer.dataSync()[0]!)
      })
    })
    return Float64Array.from(numbers)
  }
}
