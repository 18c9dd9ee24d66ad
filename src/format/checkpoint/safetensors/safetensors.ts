/** Safetensors files as a format of checkpoints. Their reader is loaded on demand. */

import { lazily } from '../../../base/lazily.js'
import type { TensorFormat } from '../stored-tensor.js'
import { LENGTH_BYTES, MAX_HEADER_BYTES } from './dtypes.js'

const reader = lazily(() => import('./read-safetensors.js'))

export const SAFETENSORS: TensorFormat = {
  kind: 'safetensors',
  header: 'json',

  byName: path => (path.endsWith('.safetensors') ? 'yes' : 'no'),

  matches(head) {
    if (head.length <= LENGTH_BYTES) return false
    const length = Number(new DataView(head.buffer, head.byteOffset).getBigUint64(0, true))
    return length > 0 && length <= MAX_HEADER_BYTES && /^\s*\{/.test(new TextDecoder().decode(head.subarray(8, 72)))
  },

  read: async file => (await reader()).readSafetensors(file),
}
