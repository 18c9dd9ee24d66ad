/** The outputs beside a trial: metrics of a SageMaker job, and TensorBoard runs. */

import { UsageError } from '../base/errors.js'
import { checkOptions } from '../base/options.js'
import { partOf, TENSORBOARD_OUTPUT, type TensorBoardOutput, type WriterOptions } from './options.js'
import { SageMakerMetrics } from './sagemaker.js'
import type { Saved } from './save-config.js'
import type { StepOfTraining } from './step-files.js'
import { LiveRuns } from './tensorboard/live.js'
import type { TakenValue } from './values.js'

export class BesideTrial {
  readonly #metrics: SageMakerMetrics | null
  readonly #runs: LiveRuns | null

  private constructor(runs: LiveRuns | null, metrics = SageMakerMetrics.ofJob()) {
    this.#runs = runs
    this.#metrics = metrics
  }

  /** @throws UsageError for runs that already exist; StoreError */
  static async begin(options: WriterOptions): Promise<BesideTrial> {
    const { worker, numWorkers, isSaved } = partOf(options)
    if (options.savesNothing) return new BesideTrial(null, null)
    if (options.tensorboard === undefined) return new BesideTrial(null)
    const { directory, images = false, s3 = options.s3 } = tensorboardOf(options.tensorboard)
    if (directory.trim() === '') {
      throw new UsageError('createWriter: expected tensorboard to be a directory, got an empty text', {
        tensorboard: directory,
      })
    }
    if (!isSaved) return new BesideTrial(null)
    const ofWorker = { worker: numWorkers > 1 ? worker : null, images, s3 }
    return new BesideTrial(await LiveRuns.begin(directory, ofWorker))
  }

  /** Adds a saved tensor. */
  addTensor(name: string, taken: TakenValue, saved: readonly Saved[], at: StepOfTraining, wallTime: number): void {
    if (saved.some(({ isMetric }) => isMetric)) this.#metrics?.addMean(name, taken, at)
    if (this.#runs === null) return
    const place = { wallTime, step: at.step, tag: name }
    if (saved.some(({ isScalar }) => isScalar)) this.#runs.addElement(at.mode, place, taken)
    const ofHistogram = saved.find(({ saveHistogram }) => saveHistogram)
    if (ofHistogram) this.#runs.addHistogram(at.mode, { ...place, tag: `${ofHistogram.collection}/${name}` }, taken)
    const ofImage = saved.find(({ isScalar }) => !isScalar)
    if (ofImage) this.#runs.addImages(at.mode, { ...place, tag: `${ofImage.collection}/${name}` }, taken)
  }

  /** Adds a scalar. @param isMetric true for a metric of the job */
  addScalar(tag: string, value: number, wallTime: number, at: StepOfTraining, isMetric: boolean): void {
    if (isMetric) this.#metrics?.add(tag, value, wallTime, at)
    this.#runs?.addScalar(at.mode, { wallTime, step: at.step, tag }, value)
  }

  addHistogram(tag: string, taken: TakenValue, at: StepOfTraining): void {
    this.#runs?.addHistogram(at.mode, { wallTime: Date.now() / 1000, step: at.step, tag }, taken)
  }

  /** Writes what was added. @throws StoreError */
  async flush(): Promise<void> {
    await this.#metrics?.flush()
    await this.#runs?.flush()
  }
}

function tensorboardOf(given: string | TensorBoardOutput): TensorBoardOutput {
  if (typeof given === 'string') return { directory: given }
  return checkOptions('createWriter, tensorboard', TENSORBOARD_OUTPUT, given)
}
