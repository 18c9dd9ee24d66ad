/** The roles of a checkpoint's files by their names: the model, a copy of it, states of the training, files of ranks. */

import { isShardIndex, stemOf } from './safetensors/shards.js'

/** Files that hold what else a training needs to go on. */
const STATE = /^(?:optimizer|optim|scheduler|scaler|rng_state|random_states|training_args|extra_state)/i
const MODEL = /model|weights|adapter|consolidated|pytorch|lora|actor/i
/** A layer of DeepSpeed's pipeline, with or without a rank of the model: the tensors of all layers have the same names. */
const LAYER = /^(layer_\d+)(?:-model_\d+)?-model_states$/

/** A rank of Meta's Llama: `consolidated.01.pth`. */
const META = /^(consolidated)\.\d\d$/

export function isStateFile(path: string): boolean {
  return STATE.test(nameOf(path))
}

/** The name of a file without its extension, the number of its shard and its rank. */
export function commonStem(path: string): string {
  return stemOf(nameOf(path))
    .replace(LAYER, '$1')
    .replace(META, '$1')
    .replace(/^(?:(?:bf16_|fp16_)?zero_pp_rank_\d+_)?mp_rank_\d+(?:_\d+)*(?:_|$)/, '')
    .replace(/(?:[-_.]world_size[-_=]?\d+)?(?:^|[-_.])rank[-_=]?\d+(?=$|[-_.])/i, '')
}

/** True if a file's name is that of a model, so that its tensors need no prefix. */
export function isModelStem(stem: string): boolean {
  return !STATE.test(stem) && MODEL.test(stem)
}

/** `model.fp16-00001-of-00002.safetensors`: the stem, the precision, the shard, the format, and whether it is an index. */
const WEIGHTS = /^(.*?)(\.(?:fp16|bf16|fp32))?(?:-\d+-of-\d+)?\.(safetensors|bin)(\.index\.json)?$/
/** Stems of .bin files, and those of the safetensors files that repeat them. */
const STEMS = new Map([
  ['pytorch_model', 'model'],
  ['adapter_model', 'adapter_model'],
  ['diffusion_pytorch_model', 'diffusion_pytorch_model'],
])

/**
 * Files that repeat others in another format or precision: `pytorch_model*.bin` and its index beside `model*.safetensors`,
 * `model.fp16.safetensors` beside `model.safetensors`.
 */
export function copiesAmong(paths: readonly string[]): ReadonlySet<string> {
  const originals = new Set<string>()
  for (const path of paths) {
    const [, stem, precision, format, index] = WEIGHTS.exec(nameOf(path)) ?? []
    if (stem !== undefined && !precision && !index) originals.add(`${directoryOf(path)}${stem}.${format}`)
  }
  const isCopy = (path: string): boolean => {
    const [, stem, precision, format] = WEIGHTS.exec(nameOf(path)) ?? []
    if (stem === undefined) return false
    const inSafetensors = format === 'bin' && STEMS.get(stem)
    if (inSafetensors && originals.has(`${directoryOf(path)}${inSafetensors}.safetensors`)) return true
    return precision !== undefined && originals.has(`${directoryOf(path)}${stem}.${format}`)
  }
  return new Set(paths.filter(isCopy))
}

/**
 * True for a file that repeats the shards in the index: `model.safetensors` beside its shards, and `consolidated.safetensors`, which has
 * the same weights under other names.
 */
export function isOtherThanIndexed(path: string, indexPath: string, indexed: readonly string[]): boolean {
  const name = nameOf(path)
  if (isOfIndex(name, indexed)) return false
  const shards = nameOf(indexPath).replace(/\.index\.json$/, '')
  if (extensionOf(name) !== extensionOf(shards) || isShardIndex(name) || isStateFile(name)) return false
  return stemOf(name) === stemOf(shards) || name.startsWith('consolidated')
}

/** True for a file that an index names, and for one of the same series, as `…-00002-of-00003` beside `…-00001-of-00003`. */
export function isOfIndex(name: string, indexed: readonly string[]): boolean {
  if (indexed.includes(name)) return true
  const series = seriesOf(name)
  return series !== null && indexed.some(shard => seriesOf(shard) === series)
}

/** The part that the names of all shards of a series share: the stem, the number of all, and the extension. */
function seriesOf(name: string): string | null {
  const ending = /-of-\d+\..*$/.exec(name)?.[0]
  return ending === undefined ? null : stemOf(name) + ending
}

export function directoryOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/') + 1)
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

function extensionOf(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1)
}
