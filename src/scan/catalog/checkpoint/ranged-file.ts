/** Files of a store as those that formats of checkpoints read by range. */

import type { RangedFile } from '../../../format/checkpoint/stored-tensor.js'
import type { Store } from '../../../storage/store.js'

/** The limit of a file that is read at once, whatever of it is asked for: a second read would cost more than its bytes. */
const SMALL_BYTES = 64 << 10

interface VersionedFile extends RangedFile {
  /** See `Store.versionOf`. */
  readonly version: string | undefined
}

/** A file as something whose ranges can be read: a small one in one read. @throws StoreError */
export async function rangedFile(store: Store, path: string): Promise<VersionedFile> {
  // The version before its header is read.
  const { byteLength, version } = store.hold?.(path) ?? {
    byteLength: await store.byteLength(path),
    version: store.versionOf?.(path),
  }
  // A small file as a whole; of others the first bytes, which tell the format and where the header begins.
  let beginning: Uint8Array | undefined
  const read = async (startByte: number, length: number): Promise<Uint8Array> => {
    const bytes = new Uint8Array(length)
    const got = length === 0 ? 0 : await store.readInto(path, startByte, bytes)
    return got === length ? bytes : bytes.subarray(0, got)
  }
  return {
    path,
    url: store.url(path),
    byteLength,
    version,
    async read(startByte, length) {
      if (byteLength <= SMALL_BYTES) beginning ??= await read(0, byteLength)
      else if (beginning === undefined || startByte + length > beginning.length) {
        const bytes = await read(startByte, length)
        if (startByte === 0) beginning ??= bytes
        return bytes
      }
      return beginning.subarray(startByte, startByte + length)
    },
  }
}
