/** Reads the values of records, or their heads: of many that are requested together, and of those requested one by one within a turn of the event loop. */

import { errorFromData, TrialscanError } from '../../base/errors.js'
import { NO_OPTIONS } from '../../base/options.js'
import { UNFOLD_LIMIT } from '../../core/values.js'
import type { TrialState } from '../catalog/state.js'
import { checkLevelNumber, columnsOf, type RecordPlace } from '../job/plan/coalesce.js'
import { DEFAULT_MEMORY, windowByteLength } from '../job/plan/memory.js'
import { type TensorValue, tensorValue } from '../job/tensor-value.js'
import { type DescribeReply, planValues, type ValueJob } from '../job/value-job.js'
import type { ReadOptions } from '../runner/access.js'
import { runWhole } from '../runner/failed-job.js'
import { pumpAll } from '../runner/pump.js'
import { Gathered } from './gathered.js'

export interface ReadValueOptions extends ReadOptions {
  /** The limit of bytes for a job's values whose records store them in short form. Default: 256 MiB. */
  readonly unfoldLimit?: number
}

type ReadValue = TensorValue | TrialscanError

/** The jobs that read the values of records, and a function that runs one and returns the value of each of its records, or the error. */
async function planReading(
  { access }: TrialState,
  places: readonly RecordPlace[],
  { checkLevel = 'minimal', threads, memory = DEFAULT_MEMORY, unfoldLimit = UNFOLD_LIMIT }: ReadValueOptions,
) {
  const total = places.reduce((sum, { byteLength }) => sum + byteLength, 0)
  const runner = await access.runner(threads, total, memory)
  const context = { store: access.spec, checkLevel: checkLevelNumber(checkLevel), memory, unfoldLimit }
  const read = async (job: ValueJob): Promise<readonly ReadValue[]> => {
    const reply = await runWhole(runner, job, path => access.store.url(path))
    if (reply.failures.length === 0) return reply.values.map(tensorValue)
    const failures = new Map(reply.failures.map(({ record, error }) => [record, error]))
    const values = reply.values[Symbol.iterator]()
    return Array.from(job.order, (_, record) => {
      const failure = failures.get(record)
      return failure ? errorFromData(failure) : tensorValue(values.next().value!)
    })
  }
  return { jobs: planValues(places, context), read, runner }
}

/** Yields the value of each record, or its error, in order, a job at a time. @throws the error of a job as a whole */
export async function* readRecordValues(
  state: TrialState,
  places: readonly RecordPlace[],
  options: ReadValueOptions,
): AsyncGenerator<readonly ReadValue[]> {
  const { jobs, read, runner } = await planReading(state, places, options)
  yield* pumpAll(jobs, read, runner)
}

/** The dtypes and shapes of records, from their heads. @throws the error of the job as a whole */
export async function describeRecords(
  { access }: TrialState,
  places: readonly RecordPlace[],
  { checkLevel = 'minimal', threads = 0, memory = DEFAULT_MEMORY }: ReadOptions,
): Promise<DescribeReply> {
  const job = {
    kind: 'describe',
    store: access.spec,
    checkLevel: checkLevelNumber(checkLevel),
    windowByteLength: windowByteLength(memory),
    ...columnsOf(places),
  } as const
  return runWhole(await access.runner(threads, 0), job, path => access.store.url(path))
}

interface ValueRequest {
  readonly place: RecordPlace
  readonly resolve: (value: TensorValue) => void
  readonly reject: (error: unknown) => void
}

const gathered = new Gathered<ValueRequest>()

/** The value of one record, read together with all others of the same turn of the event loop. */
export function readOneValue(state: TrialState, place: RecordPlace, options: ReadValueOptions): Promise<TensorValue> {
  const { checkLevel, threads, memory, unfoldLimit } = options
  return new Promise((resolve, reject) => {
    const key = options === NO_OPTIONS ? '' : `${checkLevel} ${threads} ${memory} ${unfoldLimit}`
    gathered.add(state, key, { place, resolve, reject }, batch => readBatch(state, batch, options))
  })
}

async function readBatch(state: TrialState, batch: readonly ValueRequest[], options: ReadValueOptions): Promise<void> {
  const [first] = batch
  if (batch.length === 1) return readAlone(state, first!, options)
  const alone: ValueRequest[] = []
  let answered = 0
  try {
    const places = batch.map(({ place }) => place)
    for await (const values of readRecordValues(state, places, options)) {
      for (const value of values) {
        const request = batch[answered++]!
        // Together they exceed the limit; each alone may not.
        if (value instanceof TrialscanError && value.code === 'ValueTooLarge') alone.push(request)
        else answer(request, value)
      }
    }
  } catch {
    // The failure of a job doesn't concern the other values.
    alone.push(...batch.slice(answered))
  }
  for (const request of alone) await readAlone(state, request, options).catch(request.reject)
}

async function readAlone(state: TrialState, request: ValueRequest, options: ReadValueOptions): Promise<void> {
  const { jobs, read } = await planReading(state, [request.place], options)
  for (const job of jobs) for (const value of await read(job)) answer(request, value)
}

function answer({ resolve, reject }: ValueRequest, value: ReadValue): void {
  if (value instanceof TrialscanError) reject(value)
  else resolve(value)
}
