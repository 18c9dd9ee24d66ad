/** `trialscan serve`: trainings over HTTP. */

import { readdir } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { StoreError, TrialscanError } from '../../base/errors.js'
import { findTrials } from '../../trial/find.js'
import { serveTrials, type TrialServer } from '../../view/serve/serve.js'
import { EXIT } from '../exit.js'
import { counted } from '../format/number.js'
import { defined, readingOptions } from '../options/given.js'
import { expectS3, placeOptions, s3OptionsOf, type TrialFlags } from '../options/s3.js'
import { localTrial } from '../real-path.js'
import { note } from '../terminal.js'
import { VERSION } from '../version.js'

export interface ServeFlags extends TrialFlags {
  readonly port?: number
  readonly host?: string
  readonly token?: string
  readonly cors?: readonly string[]
  readonly rules: boolean
  readonly maxWork?: number
  readonly threads?: number
  readonly memory?: number
}

/** The time between two looks for new trials, in milliseconds. */
const LOOK_MS = { local: 3000, remote: 30_000 }

/** Serves until it is interrupted. @returns the exit code */
export async function serve(places: readonly string[], flags: ServeFlags, signal: AbortSignal): Promise<number> {
  const { port, host, token, cors, rules, maxWork } = flags
  expectS3(flags, places)
  const paths = await trialsThere(places, flags, place => note(`${place}: no trial there yet; waiting for one`))
  const server = await serveTrials(paths, {
    ...defined({ port, host, token, cors, maxWork }),
    ...readingOptions(flags),
    ...s3OptionsOf(flags),
    ...defined({ allowSymlinks: flags.allowSymlinks, abandonedSteps: flags.abandonedSteps }),
    rules,
    app: places.length === 0,
    version: VERSION,
  })
  if (places.length === 0) {
    note(`serving the app at ${server.url}/app/, which opens trials in the browser; Ctrl-C ends it`)
    await sleep(2 ** 31 - 1, undefined, { signal }).catch(() => {})
    await server.close()
    return EXIT.ok
  }
  note(`serving ${counted(paths.length, 'trial')} at ${server.url}/; new ones appear by themselves; Ctrl-C ends it`)
  await serveNew(server, places, flags, signal)
  await server.close()
  return EXIT.ok
}

/** Serves trials that appear at the places, until the signal. */
async function serveNew(server: TrialServer, places: readonly string[], flags: TrialFlags, signal: AbortSignal) {
  const lookMs = LOOK_MS[places.some(place => localTrial(place) === null) ? 'remote' : 'local']
  while (!signal.aborted) {
    await sleep(lookMs, undefined, { signal }).catch(() => {})
    if (signal.aborted) return
    try {
      server.serve(await trialsThere(places, flags, () => {}))
    } catch (error) {
      // A place that can't be listed now may be listed the next time.
      if (!(error instanceof TrialscanError)) throw error
    }
  }
}

/**
 * The trials at the places. A directory with other files counts as a trial, so that its page says why it is none.
 * @param onNone called for a pattern without a match, and for a directory that is empty or does not exist
 */
async function trialsThere(
  places: readonly string[],
  flags: TrialFlags,
  onNone: (place: string) => void,
): Promise<readonly string[]> {
  const trials = new Set<string>()
  for (const place of places) {
    if (await isEmpty(place)) {
      onNone(place)
      continue
    }
    try {
      for (const trial of await findTrials(place, placeOptions(place, flags))) trials.add(trial)
    } catch (error) {
      if (!(error instanceof StoreError && error.code === 'NotFound')) throw error
      onNone(place)
    }
  }
  return [...trials]
}

/** True for a local path without a wildcard at which there is nothing, or an empty directory. */
async function isEmpty(place: string): Promise<boolean> {
  const directory = localTrial(place)
  if (directory === null || /[*?]/.test(place)) return false
  try {
    return (await readdir(directory)).length === 0
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
}
