/** The values of records: of many that are asked for at once, and of those that are asked for one by one, in one turn of the event loop. */

import type { TrialState } from '../catalog/state.js'
import { UNFOLD_LIMIT } from '../engine/values.js'
import { errorFromData, TrialscanError } from '../errors.js'
import { checkLevelNumber, type RecordPlace } from '../job/plan/coalesce.js'
import { DEFAULT_MEMORY } from '../job/plan/memory.js'
import { type TensorValue, tensorValue } from '../job/tensor-value.js'
import { planValues, type ValueJob } from '../job/value.js'
import type { ReadOptions } from '../runner/access.js'
import { runWhole } from '../runner/failed-job.js'
import { pump } from '../runner/pump.js'
import { Gathered } from './gathered.js'

export interface ReadValueOptions extends ReadOptions {
  /** The most bytes that the values of a job may unfold to. Default: 256 MiB. */
  readonly unfoldLimit?: number
}

/**
 * The value of each record, or why it can't be had, in order: those of a job at a time.
 * @throws what is wrong with a job as a whole
 */
export async function* readRecordValues(
  { access }: TrialState,
  places: readonly RecordPlace[],
  { checkLevel = 'minimal', threads, memory = DEFAULT_MEMORY, unfoldLimit = UNFOLD_LIMIT }: ReadValueOptions,
): AsyncGenerator<readonly (TensorValue | TrialscanError)[]> {
  const total = places.reduce((sum, { byteLength }) => sum + byteLength, 0)
  const runner = await access.runner(threads, total, memory)
  const context = { store: access.spec, checkLevel: checkLevelNumber(checkLevel), memory, unfoldLimit }
  const work = (job: ValueJob) => runWhole(runner, job, path => access.store.url(path))
  for await (const { plan, reply, error } of pump(planValues(places, context), work, runner)) {
    if (reply === null) throw error
    const failures = new Map(reply.failures.map(({ record, error }) => [record, error]))
    const values = reply.values[Symbol.iterator]()
    yield Array.from(plan.order, (_, record) => {
      const failure = failures.get(record)
      return failure ? errorFromData(failure) : tensorValue(values.next().value!)
    })
  }
}

interface ValueRequest {
  readonly place: RecordPlace
  readonly resolve: (value: TensorValue) => void
  readonly reject: (error: unknown) => void
}

const gathered = new Gathered<ValueRequest>()

/** The value of one record, read together with all others that are asked for in the same turn of the event loop. */
export function readOneValue(state: TrialState, place: RecordPlace, options: ReadValueOptions): Promise<TensorValue> {
  const { checkLevel, threads, memory, unfoldLimit } = options
  return new Promise((resolve, reject) => {
    const key = `${checkLevel} ${threads} ${memory} ${unfoldLimit}`
    gathered.add(state, key, { place, resolve, reject }, batch => readBatch(state, batch, options))
  })
}

async function readBatch(state: TrialState, batch: readonly ValueRequest[], options: ReadValueOptions): Promise<void> {
  const isAlone = batch.length === 1
  const alone: ValueRequest[] = []
  let answered = 0
  try {
    const places = batch.map(({ place }) => place)
    for await (const values of readRecordValues(state, places, options)) {
      for (const value of values) {
        const request = batch[answered++]!
        if (!(value instanceof TrialscanError)) request.resolve(value)
        // Together they unfold to more than one value may; each alone need not.
        else if (value.code === 'ValueTooLarge' && !isAlone) alone.push(request)
        else request.reject(value)
      }
    }
  } catch (error) {
    if (isAlone) throw error
    // What failed a job says nothing of the other values.
    alone.push(...batch.slice(answered))
  }
  for (const request of alone) await readBatch(state, [request], options).catch(request.reject)
}
