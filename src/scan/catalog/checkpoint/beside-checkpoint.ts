/** Files beside a checkpoint that say something about it: the Trainer's log, and the model's configuration. */

import { TrialscanError } from '../../../base/errors.js'
import {
  CONFIG,
  type Logged,
  MAX_BESIDE_BYTES,
  type ModelFacts,
  parseConfig,
  parseTrainerState,
  TRAINER_STATE,
} from '../../../format/checkpoint/beside.js'
import type { CheckpointPlace } from '../../../format/checkpoint/layout.js'
import type { Store } from '../../../storage/store.js'

export interface Beside {
  /** Numbers by step. */
  readonly logged: ReadonlyMap<number, Logged>
  readonly model: ModelFacts
}

/** The files that say something about a checkpoint. */
export function besideFiles({ place, files }: CheckpointPlace, paths: readonly string[]): string[] {
  const existing = new Set(paths)
  const isFile = files.some(({ path }) => path === place)
  const directories = new Set([`${place}/`, ...files.map(({ path }) => path.slice(0, path.lastIndexOf('/') + 1))])
  const wanted = [...directories].flatMap(directory => {
    const prefix = directory === '/' ? '' : directory
    // A file that was named stands for its tensors alone.
    return isFile ? [`${prefix}${CONFIG}`] : [`${prefix}${TRAINER_STATE}`, `${prefix}${CONFIG}`]
  })
  return [...new Set(wanted)].filter(path => existing.has(path))
}

/** Reads them. */
export async function besideOf(store: Store, place: CheckpointPlace, paths: readonly string[]): Promise<Beside> {
  let logged: ReadonlyMap<number, Logged> = new Map()
  let model: ModelFacts = { architecture: null, dtype: null }
  for (const path of besideFiles(place, paths)) {
    try {
      const bytes = await store.read(path, { maxByteLength: MAX_BESIDE_BYTES, isText: true })
      const text = new TextDecoder().decode(bytes)
      if (path.endsWith(CONFIG)) model = parseConfig(text)
      else logged = parseTrainerState(text, store.url(path))
    } catch (error) {
      // A checkpoint can be read without the files beside it.
      if (!(error instanceof TrialscanError)) throw error
    }
  }
  return { logged, model }
}
