/** `trialscan reindex`: index files for a trial that has lost them, or never had any. */

import { mkdir, realpath } from 'node:fs/promises'
import { dirname, join, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { reindexTrial, UsageError } from '../index.js'
import { EXIT } from './exit.js'
import { counted } from './format/number.js'
import { Output, writeError } from './output.js'
import { type S3Flags, s3OptionsOf } from './s3.js'
import { note } from './terminal.js'

export interface ReindexFlags extends S3Flags {
  readonly out: string
  readonly threads?: number
}

/** @returns the exit code */
export async function reindex(path: string, flags: ReindexFlags, signal: AbortSignal): Promise<number> {
  const { out, threads } = flags
  await expectOutside(path, out)
  const files = await reindexTrial(path, { ...s3OptionsOf(flags), ...(threads !== undefined && { threads }) })
  for (const { path, text } of files) {
    signal.throwIfAborted()
    const target = join(out, path)
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

/** A trial is never written to: what is in it may be all that is left of a job. */
async function expectOutside(path: string, out: string): Promise<void> {
  if (/^s3:/i.test(path)) return
  const trial = await realParent(path.startsWith('file:') ? fileURLToPath(path) : path)
  const real = await realParent(out)
  if (real !== trial && !real.startsWith(trial + sep)) return
  throw new UsageError(`expected --out to be a directory outside of the trial, got ${out}`)
}

/** The real path of something that is perhaps not there yet. */
async function realParent(path: string): Promise<string> {
  const absolute = resolve(path)
  const parent = dirname(absolute)
  return realpath(absolute).catch(async () =>
    parent === absolute ? absolute : join(await realParent(parent), absolute.slice(parent.length)),
  )
}
