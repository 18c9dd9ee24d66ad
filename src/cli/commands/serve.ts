/** `trialscan serve`: trainings over HTTP. */

import { existsSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { StoreError } from '../../base/errors.js'
import { serveTrials } from '../../view/serve/serve.js'
import { EXIT } from '../exit.js'
import { counted } from '../format/number.js'
import { expectS3, s3OptionsOf, type TrialFlags } from '../options/s3.js'
import { localTrial } from '../real-path.js'
import { trialsAt } from '../scan/trials.js'
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

/** Serves until it is interrupted. @returns the exit code */
export async function serve(places: readonly string[], flags: ServeFlags, signal: AbortSignal): Promise<number> {
  const { port, host, token, cors, rules, maxWork, threads, memory } = flags
  expectS3(flags, places)
  const paths = await trialsAt(places, flags)
  for (const path of paths) {
    // A training that is about to begin has its directory at least; what isn't there was mistyped.
    const directory = localTrial(path)
    if (directory === null || existsSync(directory)) continue
    throw new StoreError('NotFound', `${path}: no such file or directory`, { url: pathToFileURL(directory).href })
  }
  const server = await serveTrials(paths, {
    ...(port !== undefined && { port }),
    ...(host !== undefined && { host }),
    ...(token !== undefined && { token }),
    ...(cors && { cors }),
    ...(maxWork !== undefined && { maxWork }),
    ...(threads !== undefined && { threads }),
    ...(memory !== undefined && { memory: memory * 2 ** 20 }),
    ...s3OptionsOf(flags),
    ...(flags.allowSymlinks && { allowSymlinks: true }),
    ...(flags.abandonedSteps && { abandonedSteps: true }),
    rules,
    version: VERSION,
  })
  note(`serving ${counted(paths.length, 'trial')} at ${server.url}/; Ctrl-C ends it`)
  await new Promise<void>(resolve => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
  await server.close()
  return EXIT.ok
}
