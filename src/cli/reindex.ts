/** `trialscan reindex`: index files for a trial that has lost them, or never had any. */

import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { reindexTrial, StoreError } from '../index.js'
import { EXIT } from './exit.js'
import { counted } from './format/number.js'
import { Output, writeError } from './output.js'
import { expectOutside, realPath } from './real-path.js'
import { type S3Flags, s3OptionsOf } from './s3.js'
import { note } from './terminal.js'

export interface ReindexFlags extends S3Flags {
  readonly out: string
  readonly threads?: number
}

/** @returns the exit code */
export async function reindex(path: string, flags: ReindexFlags, signal: AbortSignal): Promise<number> {
  const { out, threads } = flags
  await expectOutside(path, out, 'a directory')
  const files = await reindexTrial(path, { ...s3OptionsOf(flags), ...(threads !== undefined && { threads }) })
  for (const { path, text } of files) {
    signal.throwIfAborted()
    const target = join(out, path)
    await expectNoLink(out, path)
    await mkdir(dirname(target), { recursive: true }).catch(error => Promise.reject(writeError(target, error)))
    const output = await Output.open(target)
    try {
      await output.write(text)
      await output.end()
    } catch (error) {
      await output.discard()
      throw error
    }
  }
  note(`wrote ${counted(files.length, 'index file')} to ${join(out, 'index')}`)
  return EXIT.ok
}

/** Nothing is written through links that lie where the index files come to lie. */
async function expectNoLink(out: string, path: string): Promise<void> {
  const [wanted, real] = [join(await realPath(out), path), await realPath(join(out, path))]
  if (real === wanted) return
  const target = join(out, path)
  throw new StoreError('Denied', `cannot write ${target}: a symbolic link leads to ${real}`, {
    url: pathToFileURL(target).href,
  })
}
