/**
 * The formats of checkpoints, in the order in which they are tried. Adding one is its file, its tests, a line in FORMATS and its names in
 * CHECKPOINT_FILES.
 */

import { DISTRIBUTED } from './dcp/format.js'
import { MSPROBE } from './dump/msprobe.js'
import { NVDLFW } from './dump/nvdlfw.js'
import { NPY, NPZ } from './npy.js'
import { SAFETENSORS } from './safetensors/safetensors.js'
import { isShardIndex } from './safetensors/shards.js'
import type { TensorFormat } from './stored-tensor.js'
import { TORCH } from './torch/format.js'

export const FORMATS: readonly TensorFormat[] = [MSPROBE, NVDLFW, SAFETENSORS, NPZ, NPY, DISTRIBUTED, TORCH]

/** Names of the files that are read, as people are told. */
export const CHECKPOINT_FILES =
  '.safetensors, .npz, .npy, .pt, .pth, .bin, .ckpt, .metadata, dump.json of msprobe, logs of nvdlfw-inspect'

/** True if a path may be a file of a checkpoint: tensors, or an index of shards. */
export function isCheckpointFile(path: string): boolean {
  if (isShardIndex(path)) return true
  const said = FORMATS.map(format => format.byName(path))
  return !said.includes('part') && said.some(word => word === 'yes' || word === 'perhaps')
}

/**
 * The files of a place that checkpoints are made of. Those of a distributed checkpoint are among them where the `.metadata` is not there that
 * says what they hold.
 */
export function checkpointFilesAmong(paths: readonly string[]): string[] {
  const directoryOf = (path: string): string => path.slice(0, path.lastIndexOf('/') + 1)
  const saved = new Set(paths.filter(path => DISTRIBUTED.byName(path) === 'yes').map(directoryOf))
  return paths.filter(path => isCheckpointFile(path) || (isChunkFile(path) && !saved.has(directoryOf(path))))
}

/** True for a file of a rank of a distributed checkpoint. */
export function isChunkFile(path: string): boolean {
  return DISTRIBUTED.byName(path) === 'part'
}

/** The format of a file by its name, and by its first bytes where that does not tell; null: none. */
export function formatOf(path: string, head: Uint8Array): TensorFormat | null {
  const named = FORMATS.find(format => format.byName(path) === 'yes')
  if (named) return named
  return FORMATS.find(format => format.byName(path) === 'perhaps' && format.matches(head)) ?? null
}
