/**
 * The environment of a SageMaker job, and its metrics: SageMaker reads them from files in a given directory, as lines of JSON in the form
 * that `smexperiments`, and so smdebug, writes.
 */

import { join } from 'node:path'
import { env, pid } from 'node:process'
import { UsageError } from '../base/errors.js'
import { appendToFile } from '../storage/local/output.js'
import type { Moment } from './collections.js'
import { reductionsOf } from './step-files.js'
import type { TakenValue } from './values.js'

/** The range of times that SageMaker accepts: two weeks back, two hours ahead. */
const [OLDEST_SECONDS, NEWEST_SECONDS] = [14 * 24 * 3600, 2 * 3600]

/** The default path of the hook's configuration in a SageMaker job. */
export const HOOK_CONFIG_PATH = '/opt/ml/input/config/debughookconfig.json'

/** The path of the hook's configuration: the job's, or SageMaker's default. */
export function hookConfigPath(): string {
  return env.SMDEBUG_CONFIG_FILE_PATH || HOOK_CONFIG_PATH
}

/** The path of the configuration of TensorBoard files in a job. */
export function tensorBoardConfigPath(): string {
  return env.TENSORBOARD_CONFIG_FILE_PATH || '/opt/ml/input/config/tensorboardoutputconfig.json'
}

/** True in a SageMaker job, which always has this variable. */
export function isSageMakerJob(): boolean {
  return env.TRAINING_JOB_NAME !== undefined
}

export class SageMakerMetrics {
  readonly #path: string
  #lines: string[] = []

  private constructor(path: string) {
    this.#path = path
  }

  /** Null outside of a job. */
  static ofJob(): SageMakerMetrics | null {
    const directory = env.SAGEMAKER_METRICS_DIRECTORY
    return directory ? new SageMakerMetrics(join(directory, `${pid}.json`)) : null
  }

  /** Adds a metric. One that is not finite is left out: neither JSON nor SageMaker has such numbers. */
  add(name: string, value: number, timestamp: number, { mode, modeStep }: Moment): void {
    if (!Number.isFinite(value)) return
    const metric = { MetricName: `${name}_${mode}`, Value: value, Timestamp: timestamp, IterationNumber: modeStep }
    this.#lines.push(`${JSON.stringify(metric)}\n`)
  }

  /** Adds the mean of a tensor, if it has one. */
  addMean(name: string, taken: TakenValue, at: Moment): void {
    if (!('bytes' in taken) || taken.count === 0) return
    for (const [, mean] of reductionsOf(taken, ['mean'])) this.add(name, mean, Date.now() / 1000, at)
  }

  /** Writes what was added. @throws StoreError */
  async flush(): Promise<void> {
    if (this.#lines.length === 0) return
    const text = this.#lines.join('')
    this.#lines = []
    await appendToFile(this.#path, text)
  }
}

/** @throws UsageError for a time that SageMaker does not accept */
export function checkMetricTime(timestamp: number): void {
  const now = Date.now() / 1000
  if (timestamp >= now - OLDEST_SECONDS && timestamp <= now + NEWEST_SECONDS) return
  const expected = 'a time between two weeks ago and in two hours, as SageMaker takes it'
  throw new UsageError(`writer.saveScalar, timestamp: expected ${expected}, got ${timestamp}`, { timestamp })
}
