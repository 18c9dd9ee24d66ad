/** Real paths, so that links in a trial can't choose what is overwritten. */

import { readdir, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { StoreError, UsageError } from '../base/errors.js'
import { writeError } from '../storage/local/output.js'
import { isInside, passesThrough, realPath } from '../storage/local/real-path.js'

/** The directory of a trial; null for one that is not local. */
export function localTrial(trial: string): string | null {
  const place = trial.trim()
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(place)) return resolve(place)
  try {
    return fileURLToPath(place)
  } catch {
    return null
  }
}

type Place = NonNullable<Awaited<ReturnType<typeof placeIn>>>

/** The real path, and whether it lies in a trial by name or by real path. Null for a trial that is not local. */
async function placeIn(trial: string, path: string) {
  const directory = localTrial(trial)
  if (directory === null) return null
  const [realTrial, real] = (await Promise.all([directory, path].map(realPath))) as [string, string]
  // A parent directory within the trial can be a link that leads out of it.
  const isNamedThere = await passesThrough(dirname(resolve(path)), realTrial)
  return { realTrial, real, isNamedThere, leadsThere: isInside(real, realTrial) }
}

/**
 * Refuses to write into a trial, which may be all that is left of a job.
 * @param kind of the output: `a file` or `a directory`
 * @param flag that names the path
 * @throws UsageError
 */
export async function expectOutside(trial: string, path: string, kind: string, flag = '--out'): Promise<void> {
  const place = await placeIn(trial, path)
  if (place === null) return
  if (kind === 'a file') await expectNoFileOf(place, path, flag)
  const index = join(place.real, 'index')
  const isLinked = kind === 'a directory' && (await isLinkOf(place.realTrial, target => isInside(target, index)))
  if (!place.isNamedThere && !place.leadsThere && !isLinked) return
  throw new UsageError(`expected ${flag} to be ${kind} outside of the trial, got ${path}`)
}

/**
 * Refuses a directory that holds files, among which many new ones would be lost, or that may not be listed.
 * @throws UsageError, StoreError
 */
export async function expectEmpty(out: string): Promise<void> {
  const entries = await readdir(out).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw writeError(out, error, 'list')
  })
  if (entries.length === 0) return
  throw new UsageError(`${out}: expected a new or an empty directory, got one that has ${entries[0]} in it`, { out })
}

/** The directories of a trial. */
const PARTS = ['index', 'events', 'collections']
const PART_OF_TRIAL =
  /^(?:(?:index|events|collections)(?:$|\/)|(?:training_job_end|END_OF_JOB|collections)\.ts$)|tfevents[^/]*$/

/**
 * Refuses to replace one of a trial's own files, under any name and through any link.
 * @param flag that names the path
 * @throws UsageError
 */
async function expectNoFileOf({ realTrial, real }: Place, path: string, flag: string): Promise<void> {
  const places = [real, join(await realPath(dirname(resolve(path))), basename(resolve(path)))]
  const isOwn = places.some(place => isInside(place, realTrial) && PART_OF_TRIAL.test(relative(realTrial, place)))
  const isFile = (await stat(real).catch(() => null))?.isFile() === true
  // A link to a directory leads to everything in it.
  if (isOwn || (isFile && (await isLinkOf(realTrial, target => isInside(real, target))))) {
    throw new UsageError(`expected ${flag} to be none of the trial's own files, got ${path}: name another file`)
  }
}

/** True if `isMeant` accepts the target of any symbolic link in a trial: its files can lie in git-annex, for example. */
async function isLinkOf(realTrial: string, isMeant: (target: string) => boolean): Promise<boolean> {
  for (const part of ['', ...PARTS]) {
    const entries = await readdir(join(realTrial, part), { recursive: part !== '', withFileTypes: true }).catch(
      () => [],
    )
    const isPart = part === '' ? (name: string) => PART_OF_TRIAL.test(name) : () => true
    for (const entry of entries) {
      if (!entry.isSymbolicLink() || !isPart(entry.name)) continue
      const target = await realpath(join(entry.parentPath ?? entry.path, entry.name)).catch(() => null)
      if (target !== null && isMeant(target)) return true
    }
  }
  return false
}

/**
 * Allows a file in a trial, but not through a symbolic link there: the trial would choose what is overwritten. Nor may it
 * replace one of the trial's own files. Called before anything of the trial is read.
 * @throws UsageError, StoreError
 */
export async function expectReplaceable(trial: string, path: string, flag = '--out'): Promise<void> {
  const place = await placeIn(trial, path)
  if (place === null) return
  await expectNoFileOf(place, path, flag)
  if (!place.isNamedThere || place.leadsThere) return
  const message = `cannot write ${path}: a symbolic link in the trial leads out of it, to ${place.real}`
  throw new StoreError('Denied', message, { url: pathToFileURL(path).href })
}

/** Trials that are looked at together: for small ones it is nothing but waiting, but each takes memory meanwhile. */
const TOGETHER = 16

/** Checks `expectReplaceable` for several trials. */
export async function expectReplaceableIn(trials: readonly string[], path: string): Promise<void> {
  for (let at = 0; at < trials.length; at += TOGETHER) {
    await Promise.all(trials.slice(at, at + TOGETHER).map(trial => expectReplaceable(trial, path)))
  }
}
