/** Names of files for any text. */

import { createHash } from 'node:crypto'

/** Bytes of a file's name, with room for what is put before and behind it. */
const MAX_NAME_BYTES = 240

/** Percent-encoded (half of a surrogate pair as U+FFFD), as Hive names partitions; of a long text the beginning, and a digest of all of it. */
export function fileName(text: string): string {
  const encoded = encodeURIComponent(Buffer.from(text).toString())
    .replaceAll('*', '%2A')
    .replace(/^\.+$/, dots => dots.replaceAll('.', '%2E'))
  if (encoded.length <= MAX_NAME_BYTES) return encoded
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16)
  return `${encoded.slice(0, MAX_NAME_BYTES - digest.length - 1)}-${digest}`
}
