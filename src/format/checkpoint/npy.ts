/** numpy's files as formats of checkpoints: .npy, an array; .npz, a ZIP archive of them. Their reader is loaded on demand. */

import { lazily } from '../../base/lazily.js'
import type { TensorFormat } from './stored-tensor.js'

const reader = lazily(() => import('./read-npy.js'))

export const NPY: TensorFormat = {
  kind: 'npy',
  byName: path => (path.endsWith('.npy') ? 'yes' : 'no'),
  matches: head => new TextDecoder('latin1').decode(head.subarray(1, 6)) === 'NUMPY',
  read: async file => (await reader()).readNpyFile(file),
}

export const NPZ: TensorFormat = {
  kind: 'npz',
  byName: path => (path.endsWith('.npz') ? 'yes' : 'no'),
  matches: head => head[0] === 0x50 && head[1] === 0x4b,
  read: async file => (await reader()).readNpzFile(file),
  archives: async ({ path }) => [{ path, startByte: 0 }],
}
