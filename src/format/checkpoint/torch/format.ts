/** Files of torch.save as a format of checkpoints. Their reader is loaded on demand. */

import { lazily } from '../../../base/lazily.js'
import type { TensorFormat } from '../stored-tensor.js'
import { isLegacyTorch } from './legacy-magic.js'

const reader = lazily(() => import('./torch.js'))

export const TORCH: TensorFormat = {
  kind: 'torch',
  header: 'pickle',

  byName(path) {
    if (/\.(?:pt|pth)$|(?:^|\/)(?:pytorch_model|adapter_model)[^/]*\.bin$/.test(path)) return 'yes'
    return /\.(?:bin|ckpt)$/.test(path) ? 'perhaps' : 'no'
  },

  // The magic of a ZIP archive, or of torch's own.
  matches: head => (head[0] === 0x50 && head[1] === 0x4b) || isLegacyTorch(head),

  read: async (file, around) => (await reader()).readTorch(file, around),
  archives: async ({ path }) => [{ path, startByte: 0 }],
}
