/** The options of a writer, and of each tensor. */

import { shown } from '../base/arguments.js'
import { type Kinds, kinds, optionsOf } from '../base/options.js'
import { FRAMEWORKS, type Mode, type Worker } from '../base/types.js'
import { fitsFileName, workerReadBack } from '../format/paths.js'
import { S3_OPTIONS } from '../storage/s3/options.js'
import type { S3Options } from '../storage/s3/spec.js'
import type { CollectionOptions, CollectionsOptions } from './collections.js'
import { REDUCTION_CONFIG, SAVE_CONFIG } from './save-config.js'
import type { ElementOptions } from './values.js'

/** TensorBoard runs that are written beside a trial. */
export interface TensorBoardOutput {
  /** The log directory, on disk or on S3 (`s3://bucket/logs`). It must not contain runs of this worker. */
  readonly directory: string
  /** True to write tensors with the shape of pictures as images, as `COLLECTION/NAME/image/0` and so on. Default: false. */
  readonly images?: boolean
  /** Region, endpoint and credentials of a log directory on S3. Default: those of the trial. */
  readonly s3?: S3Options | undefined
}

export interface WriterOptions extends CollectionsOptions {
  /** The worker: a name that can be part of a file name, or a device as TensorFlow names it (`/replica:0`). Default: `worker_0`. */
  readonly worker?: Worker
  /** The number of workers that write this trial. A step is complete when all have written it. Default: 1. */
  readonly numWorkers?: number
  /** True to save nothing, so that a program can call its writer unconditionally. Default: false. */
  readonly savesNothing?: boolean
  /** The workers that are saved: all (default), or only `worker_0`; writers of others then save nothing. */
  readonly includeWorkers?: 'one' | 'all'
  /** True for true checksums of records. Default: false, which writes smdebug's constant. smdebug's own reader refuses true ones. */
  readonly checksums?: boolean
  /** When files are flushed to the disk, to survive a power failure: after each step, at the end, or when the system does it (default). */
  readonly fsync?: 'step' | 'end' | false
  /** The behaviour of `step` while two steps are still being written: to wait (default), or to drop the new step. */
  readonly whenSlow?: 'wait' | 'drop'
  /** The behaviour when the store fails, such as for a full disk: the next call throws (default), or saving stops for good. */
  readonly whenFailing?: 'throw' | 'stop'
  /** The number of bytes of a step that may wait for the store before `save` waits. Default: 64 MiB. */
  readonly queueByteLength?: number
  /** The number of the first step. Default: 0. */
  readonly startStep?: number
  /**
   * A TensorBoard log directory that gets a run for each mode: scalars of `losses`, `metrics` and such collections, histograms of all
   * other saved tensors, and images if requested. Default: none.
   */
  readonly tensorboard?: string | TensorBoardOutput
  /** Region, endpoint and credentials for S3. */
  readonly s3?: S3Options | undefined
}

export interface SaveOptions extends ElementOptions {
  /** The collections of the tensor, besides those whose patterns match its name. A new one is made, and saved. */
  readonly collection?: string | readonly string[]
  /** The framework's name for the tensor, which is saved with the shape. */
  readonly originalName?: string
  /** The time in seconds since 1970. Default: now. */
  readonly timestamp?: number
}

export interface SaveReductionsOptions extends Pick<SaveOptions, 'collection' | 'timestamp'> {}

export interface ShouldSaveOptions extends Pick<SaveOptions, 'collection'>, RecordOptions {}

export interface ScalarOptions {
  /** The time of the measurement, in seconds since 1970. Default: now. */
  readonly timestamp?: number
  /**
   * True for a metric of the training job: a member of the collection `sm_metrics` and, in a SageMaker job, a metric named
   * `scalar/NAME_MODE`. Default: false.
   */
  readonly sagemakerMetric?: boolean
}

export interface RecordOptions {
  /** The mode. Default: GLOBAL. */
  readonly mode?: Mode
  /** The step's number within its mode. Default: the step. */
  readonly modeStep?: number
}

export interface StepOptions {
  /** The global step. Default: the next one. */
  readonly step?: number
  /** The step's number within its mode. Default: the given step, or else the next one of the mode. */
  readonly modeStep?: number
  /** True to save everything at this step, whatever the configuration says. Default: false. */
  readonly saveAll?: boolean
}

const NUMBER = kinds.that<number>('a number', given => typeof given === 'number' && Number.isFinite(given))
const COLLECTION_NAMES = kinds.oneOrMore('a name', 'names', kinds.that<string>('a name', isName))
const NAMES = kinds.listOf('names', kinds.text)

export const WRITER_KINDS: Kinds<WriterOptions> = {
  framework: kinds.oneOf(FRAMEWORKS),
  collections: kinds.that<Readonly<Record<string, CollectionOptions>>>('an object of collections', isPlain),
  includeCollections: NAMES,
  includeRegex: kinds.listOf('patterns', kinds.text),
  saveAll: kinds.flag,
  saveConfig: SAVE_CONFIG,
  reductionConfig: REDUCTION_CONFIG,
  worker: kinds.that<Worker>(
    given => {
      if (!isWorker(given)) return "a name that can be part of a file's"
      return `a name that is read back from those of files, where this one becomes ${shown(workerReadBack(given))}`
    },
    given => isWorker(given) && workerReadBack(given) === given,
  ),
  numWorkers: kinds.wholeNumber(1, undefined, 'a number of workers from 1 on'),
  savesNothing: kinds.flag,
  includeWorkers: kinds.oneOf(['one', 'all'] as const),
  checksums: kinds.flag,
  fsync: kinds.that<'step' | 'end' | false>('step, end or false', given =>
    ['step', 'end', false].includes(given as never),
  ),
  whenSlow: kinds.oneOf(['wait', 'drop'] as const),
  whenFailing: kinds.oneOf(['throw', 'stop'] as const),
  queueByteLength: kinds.wholeNumber(0, undefined, 'a number of bytes'),
  startStep: kinds.step,
  tensorboard: kinds.that<string | TensorBoardOutput>(
    'a directory, or an object with directory and images',
    given => typeof given === 'string' || isPlain(given),
  ),
  s3: S3_OPTIONS,
}
export const WRITER_OPTIONS = optionsOf<WriterOptions>(WRITER_KINDS)

export const TENSORBOARD_OUTPUT = optionsOf<TensorBoardOutput>(
  { directory: kinds.text, images: kinds.flag, s3: S3_OPTIONS },
  'directory',
)

const ELEMENT_KINDS: Kinds<ElementOptions> = {
  shape: kinds.listOf('sizes', kinds.wholeNumber(0)),
  dtype: kinds.text as never,
}

export const HISTOGRAM_OPTIONS = optionsOf<ElementOptions>(ELEMENT_KINDS)

export const SAVE_OPTIONS = optionsOf<SaveOptions>({
  ...ELEMENT_KINDS,
  collection: COLLECTION_NAMES,
  originalName: kinds.text,
  timestamp: NUMBER,
})

export const SAVE_REDUCTIONS_OPTIONS = optionsOf<SaveReductionsOptions>({
  collection: COLLECTION_NAMES,
  timestamp: NUMBER,
})

export const SHOULD_SAVE_OPTIONS = optionsOf<ShouldSaveOptions>({
  collection: COLLECTION_NAMES,
  mode: kinds.mode,
  modeStep: kinds.step,
})

export const SCALAR_OPTIONS = optionsOf<ScalarOptions>({ timestamp: NUMBER, sagemakerMetric: kinds.flag })
export const STEP_OPTIONS = optionsOf<StepOptions>({ step: kinds.step, modeStep: kinds.step, saveAll: kinds.flag })
export const SET_MODE = optionsOf<{ readonly mode: Mode }>({ mode: kinds.mode }, 'mode')
export const RECORD_STEP = optionsOf<{ readonly step: number }>({ step: kinds.step }, 'step')
export const RECORD_OPTIONS = optionsOf<RecordOptions>({ mode: kinds.mode, modeStep: kinds.step })

/** The worker's name, the number of workers, and whether this one is saved. */
export function partOf({ worker = 'worker_0', numWorkers = 1, includeWorkers = 'all', savesNothing }: WriterOptions) {
  if (includeWorkers === 'all') return { worker, numWorkers, isSaved: savesNothing !== true }
  return { worker, numWorkers: 1, isSaved: savesNothing !== true && worker === 'worker_0' }
}

/** True for a name that UTF-8 can encode: no half of a surrogate pair. */
export function isName(given: unknown): boolean {
  return typeof given === 'string' && given !== '' && !/\p{Surrogate}/u.test(given)
}

function isWorker(given: unknown): given is Worker {
  return isName(given) && fitsFileName(given as Worker)
}

function isPlain(given: unknown): boolean {
  return typeof given === 'object' && given !== null && Object.getPrototypeOf(given) === Object.prototype
}
