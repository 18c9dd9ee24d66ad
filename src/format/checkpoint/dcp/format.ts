/** Checkpoints of torch.distributed.checkpoint as a format. What reads them is loaded when there is one. */

import type { TensorFormat } from '../stored-tensor.js'

export const DISTRIBUTED: TensorFormat = {
  kind: 'dcp',

  byName(path) {
    if (/(?:^|\/)\.metadata$/.test(path)) return 'yes'
    return path.endsWith('.distcp') ? 'part' : 'no'
  },

  // Only the name tells: `.metadata` begins like every pickle.
  matches: () => false,

  read: async (file, around) => (await import('./dcp.js')).readDistributed(file, around),
}
