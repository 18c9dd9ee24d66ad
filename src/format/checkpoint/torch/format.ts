/** Files of torch.save as a format of checkpoints. What reads them is loaded when there is one. */

import { isZip } from '../../array/zip-directory.js'
import type { TensorFormat } from '../stored-tensor.js'
import { isLegacyTorch } from './legacy.js'

export const TORCH: TensorFormat = {
  kind: 'torch',

  byName(path) {
    if (/\.(?:pt|pth)$|(?:^|\/)(?:pytorch_model|adapter_model)[^/]*\.bin$/.test(path)) return 'yes'
    return /\.(?:bin|ckpt)$/.test(path) ? 'perhaps' : 'no'
  },

  matches: head => isZip(head) || isLegacyTorch(head),

  read: async (file, around) => (await import('./torch.js')).readTorch(file, around),
}
