/** The facts about a checkpoint beside its tensors. */

import { inTurns } from '../../../base/turns.js'
import type { DType } from '../../../base/types.js'
import { elementByteLength } from '../../../core/dtype.js'
import { type CheckpointPlace, isDump, type Layout } from '../../../format/checkpoint/layout.js'
import { collectionsOf, isParameter } from '../../../format/checkpoint/names.js'
import type { UnreadTensor } from '../../../format/checkpoint/stored-tensor.js'
import { parseReductionName } from '../../../format/reduction-name.js'
import type { Beside } from './beside-checkpoint.js'
import type { Checkpoint } from './read-checkpoint.js'

/** The facts, apart from its tensors, about the last checkpoint that has any. */
export interface CheckpointFacts {
  /** `safetensors`, `npz`, …: what was read. */
  readonly formats: readonly string[]
  /** The pattern of the steps' names: `checkpoint-<n>/`; null if there is one checkpoint. */
  readonly family: string | null
  /** The architecture in config.json; without one, the name of the file or directory of the checkpoint, or of the trial. */
  readonly model: string
  readonly architecture: string | null
  /** Elements of the tensors that are a model's: no optimizer states, no scales. 0 in a dump, or an .npz most of whose names are not a model's. */
  readonly parameters: number
  /** The same number as `parameters`; without any, the elements of all tensors. */
  readonly elements: number
  /** The number of tensors that have these elements. */
  readonly tensors: number
  /** The dtypes of these elements, the most frequent first. */
  readonly dtypes: readonly string[]
  readonly files: number
  readonly byteLength: number
  /** Metadata in the files: text, never trusted. */
  readonly metadata: ReadonlyMap<string, string>
  /** Tensors that share all elements with another, as tied weights do: their names, and that of the other. */
  readonly aliases: ReadonlyMap<string, string>
  /** Tensors that are there and can't be read. */
  readonly unread: readonly UnreadTensor[]
}

/** @param trialName the name of the model, where nothing has another */
export async function factsOf(
  {
    read,
    model,
    place,
  }: { readonly read: Checkpoint; readonly model: Beside['model']; readonly place: CheckpointPlace },
  { family }: Layout,
  trialName: string,
): Promise<CheckpointFacts> {
  const aliases = new Map<string, string>()
  let byteLength = 0
  const [ofModel, ofAll] = [new Elements(), new Elements()]
  const stored = read.groups.flatMap(({ tensors }) => tensors)
  const { formats, metadata, unread, fileCount: files } = read
  let [weights, named] = [0, 0]
  const isOfNumpy = formats.every(kind => kind === 'npz' || kind === 'npy')
  const isDumped = isDump(formats, family) || stored.some(({ order }) => order !== undefined)
  await inTurns(stored, ({ name, dtype, shape, aliasOf, collections = isDumped ? collectionsOf(name) : undefined }) => {
    const count = shape.reduce((product, size) => product * size, 1)
    if (aliasOf !== undefined) {
      aliases.set(name, aliasOf)
      return
    }
    byteLength += count * elementByteLength(dtype)
    if (parseReductionName(name) !== null) return
    ofAll.add(dtype, count)
    if (!isParameter(name)) return
    if (collections && !collections.some(collection => collection === 'weights' || collection === 'biases')) return
    ofModel.add(dtype, count)
    if (!isOfNumpy) return
    const ofName = collectionsOf(name)
    if (ofName.includes('weights')) weights++
    if (ofName.length > 0) named++
  })
  // Of arrays in files of numpy only names tell that they are a model's.
  const isModel = !isOfNumpy || (weights > 0 && named > ofModel.tensors / 2)
  for (const { byteLength: unreadLength = 0 } of unread) byteLength += unreadLength
  const { architecture } = model
  const placeName = place.place.slice(place.place.lastIndexOf('/') + 1)
  const name = placeName === '' || family !== null ? trialName : placeName
  const { count: elements, tensors, dtypes } = isModel && ofModel.tensors > 0 ? ofModel : ofAll
  const counts = { parameters: isModel ? ofModel.count : 0, elements, tensors, dtypes }
  const facts = { formats, metadata, aliases, unread, files, byteLength, architecture, ...counts }
  return { ...facts, family, model: architecture ?? name }
}

/** Elements, counted by dtype. */
class Elements {
  tensors = 0
  readonly #counts = new Map<DType, number>()

  add(dtype: DType, count: number): void {
    this.tensors++
    this.#counts.set(dtype, count + (this.#counts.get(dtype) ?? 0))
  }

  get count(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0)
  }

  /** The most frequent first. */
  get dtypes(): DType[] {
    const counts = [...this.#counts].filter(([, count]) => count > 0)
    return counts.sort((a, b) => b[1] - a[1]).map(([dtype]) => dtype)
  }
}
