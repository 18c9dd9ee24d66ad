/** The formats of checkpoints, in the order in which they are tried. CONTRIBUTING.md says what a new one takes. */

import { DISTRIBUTED } from './dcp/format.js'
import { MSPROBE } from './dump/msprobe.js'
import { NVDLFW } from './dump/nvdlfw.js'
import { NPY, NPZ } from './npy.js'
import { SAFETENSORS } from './safetensors/safetensors.js'
import { isShardIndex } from './safetensors/shards.js'
import type { TensorFormat } from './stored-tensor.js'
import { TORCH } from './torch/format.js'

export const FORMATS: readonly TensorFormat[] = [MSPROBE, NVDLFW, SAFETENSORS, NPZ, NPY, DISTRIBUTED, TORCH]

/** The names of checkpoints' files, for messages. */
export const CHECKPOINT_FILES =
  '.safetensors, .npz, .npy, .pt, .pth, .bin, .ckpt, .metadata, dump.json of msprobe, logs of nvdlfw-inspect'

/** True if a path may be a file of a checkpoint: tensors, or an index of shards. */
export function isCheckpointFile(path: string): boolean {
  if (isShardIndex(path)) return true
  const answers = FORMATS.map(format => format.byName(path))
  return !answers.includes('part') && answers.some(answer => answer === 'yes' || answer === 'perhaps')
}

/** The files of a place that make up checkpoints. Parts are among them if the file that indexes them is missing. */
export function checkpointFilesAmong(paths: readonly string[]): string[] {
  const existing = new Set(paths)
  return paths.filter(path => {
    const index = indexOfPart(path)
    return index === null ? isCheckpointFile(path) : !existing.has(index)
  })
}

/** The path of the file that says what a part of a checkpoint holds, such as a `.distcp`; null if the path is no part. */
export function indexOfPart(path: string): string | null {
  return FORMATS.find(format => format.byName(path) === 'part')?.indexOf?.(path) ?? null
}

/** The format of a file by its name, and by its first bytes where that does not tell; null: none. */
export function formatOf(path: string, head: Uint8Array): TensorFormat | null {
  const named = FORMATS.find(format => format.byName(path) === 'yes')
  if (named) return named
  return FORMATS.find(format => format.byName(path) === 'perhaps' && format.matches(head)) ?? null
}
