/** Formats of tensors that are known and not read, so that they are told by name. */

import { entryOf } from '../../base/maps.js'

/** The formats by the ending of a file's name. */
const UNREAD: Readonly<Record<string, string>> = {
  gguf: 'GGUF',
  zarray: 'zarr, as Megatron wrote it before torch_dist',
  ocdbt: 'OCDBT, of Orbax',
  h5: 'HDF5, of Keras',
  hdf5: 'HDF5',
  keras: 'Keras',
  msgpack: 'msgpack, of Flax',
  wandb: 'Weights & Biases',
}
const TENSORFLOW = /^data-\d{5}-of-\d{5}$/

/** The format of a file that is known and not read; null: another. */
export function unreadFormatOf(path: string): string | null {
  const ending = path.slice(path.lastIndexOf('.') + 1).toLowerCase()
  if (Object.hasOwn(UNREAD, ending)) return UNREAD[ending]!
  return TENSORFLOW.test(ending) ? 'a checkpoint of TensorFlow' : null
}

/** A sentence for each format of such files. */
export function notesOnUnread(paths: readonly string[]): string[] {
  const found = new Map<string, string[]>()
  for (const path of paths) {
    const format = unreadFormatOf(path)
    if (format === null) continue
    entryOf(found, format, () => []).push(path)
  }
  return [...found].map(([format, [first, ...others]]) => {
    const more = others.length > 0 ? ` and ${others.length} more are` : ' is'
    return `${JSON.stringify(first)}${more} of a format that is not read: ${format}`
  })
}
