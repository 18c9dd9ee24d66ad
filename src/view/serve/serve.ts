/** Trials over HTTP: pages that follow a training as it runs, and an API for other programs. */

import { shown } from '../../base/arguments.js'
import { quote, StoreError, UsageError } from '../../base/errors.js'
import { checkOptions, kinds, optionsOf } from '../../base/options.js'
import { WORK_OPTIONS, type WorkOptions } from '../../scan/runner/access.js'
import { S3_OPTIONS } from '../../storage/s3/options.js'
import type { S3Options } from '../../storage/s3/spec.js'
import { createTrial } from '../../trial/open.js'
import { expectSafe } from './access.js'
import { ServedTrial } from './served-trial.js'
import { Turns } from './turns.js'

export interface ServeOptions extends WorkOptions {
  /** The port. Default: 7070. 0: any free port. */
  readonly port?: number
  /** The host. Default: 127.0.0.1, which only this machine reaches. */
  readonly host?: string
  /** The token that clients must show. Required for a host that other machines reach. */
  readonly token?: string
  /** Origins whose pages may read the answers: `https://example.org`. Default: none but the server's own. */
  readonly cors?: readonly string[]
  /** The largest number of concurrent scans and reads; others wait. Default: 4. */
  readonly maxWork?: number
  /** True to let rules judge the trials that are looked at. Default: true. */
  readonly rules?: boolean
  /** Milliseconds between two looks at a running trial, where the platform does not report changes. Default: 500; on S3, 5,000. */
  readonly pollMs?: number
  readonly s3?: S3Options | undefined
  /** True to follow symbolic links out of trials on disk. Default: false. */
  readonly allowSymlinks?: boolean
  /** True to keep the steps that a restart of a training has left behind, as `createTrial` does. Default: false. */
  readonly abandonedSteps?: boolean
  /** True to show the app at `/` while there is no trial: a page that opens trials in the browser. Default: false. */
  readonly app?: boolean
  /** The version of trialscan for the pages. Default: none. */
  readonly version?: string
}

const SERVE_OPTIONS = optionsOf<ServeOptions>({
  ...WORK_OPTIONS,
  port: kinds.wholeNumber(0, 65_535),
  host: kinds.text,
  token: kinds.text,
  cors: kinds.listOf('origins', kinds.text),
  maxWork: kinds.wholeNumber(1, 1024),
  rules: kinds.flag,
  pollMs: kinds.milliseconds,
  s3: S3_OPTIONS,
  allowSymlinks: kinds.flag,
  abandonedSteps: kinds.flag,
  app: kinds.flag,
  version: kinds.text,
})

export interface TrialServer {
  /** The server's address, without a slash at the end. */
  readonly url: string
  readonly port: number
  /** Replaces the served trials. Trials that have been opened stay. */
  serve(paths: readonly string[]): void
  /** Ends all answers and closes the trials. */
  close(): Promise<void>
}

const DEFAULT_PORT = 7070
const DEFAULT_WORK = 4
const POLL_MS = { local: 500, remote: 5000 }

/**
 * Serves trials: pages at `/`, an API at `/api` (`/api/openapi.json` describes it). Each trial is opened when it is first looked at.
 * @param paths of trials, on disk or on S3. Nothing else is served; the server's `serve` can add more
 * @throws UsageError; StoreError if the port is not available
 */
export async function serveTrials(paths: string | readonly string[], options?: ServeOptions): Promise<TrialServer> {
  const settings = checkOptions('serveTrials', SERVE_OPTIONS, options)
  const all = typeof paths === 'string' ? [paths] : paths
  expectPaths('serveTrials', all)
  const { host = '127.0.0.1', port = DEFAULT_PORT, token, cors = [], maxWork = DEFAULT_WORK } = settings
  const { app: showsApp = false, version = '' } = settings
  const { threads, memory, s3, rules: judges = true, allowSymlinks, abandonedSteps } = settings
  expectSafe(host, token)
  for (const origin of cors) {
    if (!isOrigin(origin))
      throw new UsageError(`expected an origin such as https://example.org, got ${quote(origin)}`, { option: 'cors' })
  }
  const trials = new Map<string, ServedTrial>()
  const listeners = new Set<(added: ServedTrial) => void>()
  const add = (path: string) => {
    const isRemote = /^\s*s3:/i.test(path)
    const id = idFor(path, trials)
    const served = new ServedTrial(id, path, {
      open: () =>
        createTrial(path, {
          requireCollections: false,
          refresh: 'manual',
          ...(isRemote && s3 && { s3 }),
          ...(!isRemote && allowSymlinks && { allowSymlinks }),
          ...(abandonedSteps && { abandonedSteps }),
        }),
      pollMs: settings.pollMs ?? POLL_MS[isRemote ? 'remote' : 'local'],
      judges,
      threads,
      memory,
    })
    trials.set(id, served)
    for (const listener of listeners) listener(served)
  }
  for (const path of all) add(path)
  const closing = new AbortController()
  const [{ listen }, { routes }] = await Promise.all([import('./http.js'), import('./routes.js')])
  const turns = new Turns(maxWork)
  const onAdded = (listener: (added: ServedTrial) => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
  const app = routes({
    trials,
    onAdded,
    token,
    cors,
    version,
    app: showsApp,
    turns,
    threads,
    memory,
    signal: closing.signal,
  })
  const { server, port: got } = await listen(app, host, port).catch(error => {
    throw new StoreError(
      'Unavailable',
      `can't listen at ${host}, port ${port}: ${(error as Error).message}`,
      { url: `http://${host}:${port}` },
      error,
    )
  })
  const name = host.includes(':') ? `[${host}]` : host
  return {
    url: `http://${name}:${got}`,
    port: got,
    serve(paths) {
      expectPaths('server.serve', paths)
      const served = new Set([...trials.values()].map(({ path }) => path))
      for (const [id, servedTrial] of trials) {
        if (servedTrial.opened !== undefined || paths.includes(servedTrial.path)) continue
        trials.delete(id)
        void servedTrial.close()
      }
      for (const path of paths) if (!served.has(path)) add(path)
    },
    async close() {
      closing.abort()
      server.closeAllConnections()
      await new Promise<void>(resolve => server.close(() => resolve()))
      await Promise.all([...trials.values()].map(served => served.close()))
    },
  }
}

function expectPaths(call: string, paths: unknown): void {
  if (Array.isArray(paths) && paths.every(path => typeof path === 'string')) return
  throw new UsageError(`${call}: expected paths of trials, got ${paths === undefined ? 'none' : shown(paths)}`)
}

/** The last part of a trial's path, with a number if several have the same. */
function idFor(path: string, taken: ReadonlyMap<string, unknown>): string {
  const name =
    path
      .trim()
      .replace(/[\\/]+$/, '')
      .split(/[\\/]/)
      .at(-1) || 'trial'
  for (let i = 1; ; i++) {
    const id = i === 1 ? name : `${name}~${i}`
    if (!taken.has(id)) return id
  }
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text
}
