/** Where paths really lead to, so that nothing is written where a trial wants it to be. */

import { realpath } from 'node:fs/promises'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { StoreError, UsageError } from '../index.js'

/** The real path of something that is perhaps not there yet. */
export async function realPath(path: string): Promise<string> {
  const absolute = resolve(path)
  const parent = dirname(absolute)
  return realpath(absolute).catch(async () =>
    parent === absolute ? absolute : join(await realPath(parent), basename(absolute)),
  )
}

export function isInside(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory.endsWith(sep) ? directory : directory + sep)
}

/** The directory of a trial; null for one that is not on this disk. */
export function localTrial(trial: string): string | null {
  if (/^s3:/i.test(trial)) return null
  return resolve(trial.startsWith('file:') ? fileURLToPath(trial) : trial)
}

/** Whether a path lies in a trial by its name or in truth, and where it leads; null for a trial that is not on this disk. */
async function placeIn(trial: string, path: string) {
  const directory = localTrial(trial)
  if (directory === null) return null
  const [realTrial, real] = (await Promise.all([directory, path].map(realPath))) as [string, string]
  // A directory on the way that lies in the trial can be a link that leads out of it.
  let isNamedThere = false
  for (let at = dirname(resolve(path)); !isNamedThere && at !== dirname(at); at = dirname(at)) {
    isNamedThere = isInside(await realPath(at), realTrial)
  }
  return { real, isNamedThere, leadsThere: isInside(real, realTrial) }
}

/**
 * A trial that is verified or indexed anew is not added to: what is in it may be all that is left of a job.
 * @param kind of the output: `a file`, `a directory`
 * @throws UsageError
 */
export async function expectOutside(trial: string, path: string, kind: string): Promise<void> {
  const place = await placeIn(trial, path)
  if (place === null || !(place.isNamedThere || place.leadsThere)) return
  throw new UsageError(`expected --out to be ${kind} outside of the trial, got ${path}`)
}

/**
 * A file may be written into a trial if somebody wants that, but not through a symbolic link that lies there: the trial
 * would say what is overwritten.
 * @throws StoreError
 */
export async function expectNoLinkOf(trial: string, path: string): Promise<void> {
  const place = await placeIn(trial, path)
  if (place === null || !place.isNamedThere || place.leadsThere) return
  const message = `cannot write ${path}: a symbolic link in the trial leads out of it, to ${place.real}`
  throw new StoreError('Denied', message, { url: pathToFileURL(path).href })
}
