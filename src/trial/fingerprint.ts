/** What shows whether a trial is still the one that was read before. */

import { createHash } from 'node:crypto'
import { INDEX_DIRECTORY } from '../format/paths.js'
import { stateOf, type Trial } from './trial.js'

/**
 * A text that changes with the trial: a digest of the names, lengths and times of change of its index files; of a trial without
 * an index, of all of its files. Nothing is read but listings.
 * @throws StoreError
 */
export async function trialFingerprint(trial: Trial): Promise<string> {
  const { store } = stateOf(trial).access
  const indexed = await store.list(INDEX_DIRECTORY, { recursive: true })
  const paths = indexed.length > 0 ? indexed : await store.list('', { recursive: true })
  const stamps = await store.stamps(paths)
  const hash = createHash('sha256').update(paths.join('\0'))
  return hash.update(new Uint8Array(stamps.buffer, stamps.byteOffset, stamps.byteLength)).digest('hex')
}
