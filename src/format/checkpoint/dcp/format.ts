/** Checkpoints of torch.distributed.checkpoint as a format. Their reader is loaded on demand. */

import { lazily } from '../../../base/lazily.js'
import type { TensorFormat } from '../stored-tensor.js'

const reader = lazily(() => import('./dcp.js'))

export const DISTRIBUTED: TensorFormat = {
  kind: 'dcp',
  header: 'pickle',

  byName(path) {
    if (/(?:^|\/)\.metadata$/.test(path)) return 'yes'
    return path.endsWith('.distcp') ? 'part' : 'no'
  },

  indexOf: part => `${part.slice(0, part.lastIndexOf('/') + 1)}.metadata`,

  // Only the name shows it: `.metadata` begins like every pickle.
  matches: () => false,

  read: async (file, around) => (await reader()).readDistributed(file, around),
  archives: async file => (await reader()).chunksOf(file),
}
