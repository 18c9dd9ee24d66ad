/** The reader: a worker that opens a trial and answers what the page asks about it, with the code of `trialscan serve`. */

import { type Change, ServedTrial } from '../../view/serve/served-trial.js'
import { createTrial, type TrialPlace } from '../open.js'
import { pathsOf, trialsAmong } from './found.js'
import type { Calls, FromReader, Picked, Refusal, ToReader } from './messages.js'

/** A worker's global scope, of which the DOM library knows nothing. */
declare const self: {
  onmessage: ((event: MessageEvent<ToReader>) => void) | null
  postMessage(message: FromReader): void
}

/** The time between two looks for new steps, in milliseconds. */
const POLL_MS = { here: 2000, behindUrl: 5000 }
/** Directories that are named where a place is no trial. */
const MAX_TRIALS = 20

let trial: ServedTrial

const calls: Calls = {
  async open(picked) {
    const place = placeOf(picked)
    const name = picked.kind === 'url' ? picked.url : 'picked'
    trial = new ServedTrial(name, name, {
      open: () => createTrial(place, { requireCollections: false, refresh: 'manual' }),
      pollMs: picked.kind === 'url' ? POLL_MS.behindUrl : POLL_MS.here,
      judges: true,
    })
    try {
      await trial.open()
    } catch (error) {
      return refusal(picked, error)
    }
    const tell = (change: Change) => self.postMessage({ change })
    trial.listen(tell)
    tell(trial.change)
    return null
  },
  view: () => trial.view(),
  column: (name, scope) => trial.column(name, scope),
  ridges: tensor => trial.ridges(tensor),
  part: name => trial.part(name, new AbortController().signal),
  embedding: tensor => trial.embedding({ embed: tensor }, new AbortController().signal),
  async elements(tensor, step, worker) {
    const value = await (await trial.open()).tensor(tensor).value(step, { worker })
    const { shape } = value
    const nested = value.toNested()
    return {
      shape,
      numbers: Float64Array.from(shape.length === 0 ? [nested] : (nested as []).flat(shape.length), Number),
    }
  },
}

self.onmessage = async ({ data: { id, name, args } }) => {
  try {
    const call = calls[name] as (...args: readonly unknown[]) => Promise<unknown>
    self.postMessage({ id, value: await call(...args) })
  } catch (error) {
    self.postMessage({ id, error: messageOf(error) })
  }
}

function placeOf(picked: Picked): TrialPlace {
  if (picked.kind === 'url') return picked.url
  if (picked.kind === 'folder') return picked.folder
  const files = [...picked.files].map(([path, file]) =>
    path.includes('/') ? Object.defineProperty(file, 'webkitRelativePath', { value: path }) : file,
  )
  return files.length === 1 ? files[0]! : files
}

/** A place that can't even be listed says so in the error. */
async function refusal(picked: Picked, error: unknown): Promise<Refusal> {
  const trials = trialsAmong(await pathsOf(picked).catch(() => []))
  return { message: messageOf(error), trials: trials.slice(0, MAX_TRIALS) }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
