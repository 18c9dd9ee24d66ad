/** Reads and parses index files. */

import { type ErrorData, TrialscanError } from '../errors.js'
import { type IndexFile, IndexFileReader } from '../format/index-file.js'
import { parseIndexFileName } from '../format/paths.js'
import { parseTornasoleIndex, tornasoleText } from '../format/tornasole.js'
import { type IndexJob, type IndexReply, MAX_INDEX_BYTES } from '../job/index-files.js'
import { eachFile, type Store } from '../store/store.js'
import { withModeOfEvents } from './survey.js'

/** The error of a whole file, which is reported once. */
function errorOf(error: unknown): ErrorData {
  if (error instanceof TrialscanError) return error.toJSON()
  throw error
}

export async function readIndexFiles({ paths, readsModes = true }: IndexJob, store: Store): Promise<IndexReply> {
  const reader = new IndexFileReader()
  const files = await eachFile(store, paths, async (path): Promise<IndexFile | ErrorData> => {
    try {
      const url = store.url(path)
      const name = parseIndexFileName(path)
      const bytes = await store.read(path, { maxByteLength: MAX_INDEX_BYTES, isText: name?.kind !== 'csv' })
      if (name?.kind !== 'csv') return reader.read(bytes, url)
      const index = parseTornasoleIndex(tornasoleText(bytes, url), url)
      if (readsModes) return await withModeOfEvents(index, name.step, store)
      return { ...index, mode: 'GLOBAL', modeStep: name.step, shapes: [] }
    } catch (error) {
      return errorOf(error)
    }
  })
  return { kind: 'index', files }
}
