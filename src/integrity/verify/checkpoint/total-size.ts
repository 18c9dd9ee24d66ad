/** Compares the size that a shard index states with that of the tensors. It is often wrong, and nothing depends on it. */

import { FormatError, StoreError } from '../../../base/errors.js'
import { readSafetensors } from '../../../format/checkpoint/safetensors/read-safetensors.js'
import { isShardIndex, MAX_INDEX_BYTES, parseShardIndex } from '../../../format/checkpoint/safetensors/shards.js'
import { rangedFile } from '../../../scan/catalog/checkpoint/ranged-file.js'
import type { Store } from '../../../storage/store.js'
import type { Findings } from '../findings.js'

/** Checks nothing if a shard is missing or damaged, or the index is not one of safetensors. */
export async function checkTotalSize(store: Store, path: string, findings: Findings): Promise<void> {
  if (!isShardIndex(path) || !path.includes('.safetensors.')) return
  try {
    const bytes = await store.read(path, { maxByteLength: MAX_INDEX_BYTES, isText: true })
    const { shards, totalSize } = parseShardIndex(new TextDecoder().decode(bytes), store.url(path))
    if (totalSize === null) return
    let size = 0
    for (const shard of shards) {
      const file = await rangedFile(store, path.slice(0, path.lastIndexOf('/') + 1) + shard)
      const { byteLength, unread, problems } = await readSafetensors(file)
      if (unread.length > 0 || problems.length > 0) return
      size += byteLength
    }
    if (size === totalSize) return
    const [expected, found] = [`metadata.total_size ${size}, the bytes of its tensors`, `${totalSize}`]
    findings.note({ code: 'WrongTotalSize', file: path, expected, found })
  } catch (error) {
    // Reported when the file was opened.
    if (!(error instanceof StoreError) && !(error instanceof FormatError)) throw error
  } finally {
    store.release?.()
  }
}
