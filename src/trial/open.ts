/** Opening trials, and choosing whether they look for new steps. */

import { resolve } from 'node:path'
import { expectWork } from '../base/arguments.js'
import { quote, UsageError } from '../base/errors.js'
import { checkOptions, type Kinds, kinds, optionsOf } from '../base/options.js'
import { isPartOfTrial, isTensorBoardFile } from '../format/paths.js'
import { withHold } from '../scan/catalog/hold.js'
import { TrialLoader } from '../scan/catalog/load/load.js'
import { placeOf } from '../scan/catalog/load/place.js'
import { TrialState } from '../scan/catalog/state.js'
import type { StepRange } from '../scan/catalog/step-selection.js'
import { Access, WORK_OPTIONS, type WorkOptions } from '../scan/runner/access.js'
import { placeInDirectory } from '../storage/local/output-directory.js'
import { openStore } from '../storage/open.js'
import { S3_OPTIONS } from '../storage/s3/options.js'
import type { S3Options } from '../storage/s3/spec.js'
import { storeName } from '../storage/store.js'
import { stateOf, Trial } from './trial.js'

export interface TrialOptions extends Pick<WorkOptions, 'threads'> {
  /** Default: the last part of the path. */
  readonly name?: string
  /** Global steps `[begin, end)` to load; null means no limit. Index files of other steps are not read. Default: all. */
  readonly rangeSteps?: StepRange | null
  /**
   * A step that some workers have not written counts as complete once this many steps have come after it, none of which
   * is complete either. Default: 1,000, as in smdebug.
   */
  readonly incompleteStepWindow?: number
  /**
   * True to refuse a trial whose job has ended without the collections files of all its workers. Default: true. With
   * false, the trial opens with what there is. A running job without any collections files is then taken to have the
   * workers that have written something by the time there is a second step.
   */
  readonly requireCollections?: boolean
  /**
   * True if steps of TensorBoard's event files count that a restart of the training has left behind (those before a
   * SessionLog START, as of SummaryWriter's `purge_step`, from its step on). Default: false, as TensorBoard shows them.
   */
  readonly abandonedSteps?: boolean
  /**
   * A file to keep what the index files say, for the next time the same trial is opened. An entry is used only if the
   * length and the times of change of its index file are still the same. This pays from some ten thousand index files
   * on.
   */
  readonly indexCache?: string
  /** True to follow symbolic links out of the trial's directory. Default: false; they are refused. */
  readonly allowSymlinks?: boolean
  /**
   * `auto`, the default: while the job runs, the trial is looked at again in the background, at file events and every
   * two seconds (every five on S3), until the job has ended or the trial is closed; getters then know new steps by
   * themselves. This does not keep the process alive. `manual`: only `refresh`, and queries for steps that are not
   * known yet, look for new steps.
   */
  readonly refresh?: RefreshMode
  /** Region, endpoint, credentials and limits for trials on S3. See docs/s3.md. */
  readonly s3?: S3Options | undefined
}

const REFRESH_MODES = ['auto', 'manual'] as const
/** The ways in which a trial finds new steps: by itself or when asked. */
export type RefreshMode = (typeof REFRESH_MODES)[number]

const stepRange = kinds.that<StepRange>('[begin, end] with 0 ≤ begin < end, each a whole number or null', isStepRange)

/** The options that a trial takes wherever it lies. */
export type AnyTrialOptions = Omit<TrialOptions, 'indexCache' | 'allowSymlinks' | 's3'>

export const ANY_TRIAL_KINDS: Kinds<AnyTrialOptions> = {
  threads: WORK_OPTIONS.threads,
  name: kinds.text,
  rangeSteps: kinds.orNull(stepRange),
  incompleteStepWindow: kinds.wholeNumber(0),
  requireCollections: kinds.flag,
  abandonedSteps: kinds.flag,
  refresh: kinds.oneOf<RefreshMode>(REFRESH_MODES),
}

const TRIAL_OPTIONS = optionsOf<TrialOptions>({
  ...ANY_TRIAL_KINDS,
  indexCache: kinds.text,
  allowSymlinks: kinds.flag,
  s3: S3_OPTIONS,
})

/**
 * Opens a trial of smdebug or Tornasole, or a directory of TensorBoard event files (each tag is a tensor, each
 * directory a worker, `.` for the root, and the step is the Event's). If there are no index files, the event files are
 * scanned.
 * @param place a local directory or file, its `file://` URL, or `s3://bucket/prefix`
 * @throws StoreError if it can't be reached, MissingCollectionFiles if it is not a trial, UsageError for bad options
 *   and for options that have no effect on this trial
 */
export async function createTrial(place: string | URL, options?: TrialOptions): Promise<Trial> {
  const path = place instanceof URL ? place.href : place
  const settings = checkOptions('createTrial', TRIAL_OPTIONS, options)
  const { allowSymlinks = false, indexCache, s3 } = settings
  const { spec, file } = placeOf(path, { allowSymlinks, s3 })
  const replaced =
    indexCache !== undefined && spec.kind === 'local' ? await placeInDirectory(spec.root, indexCache) : null
  if (replaced !== null && (isPartOfTrial(replaced) || isTensorBoardFile(replaced))) {
    const message = `expected indexCache to be none of the trial's own files, got ${indexCache}: name another file`
    throw new UsageError(message, { pathOrUrl: path, option: 'indexCache' })
  }
  const access = new Access(openStore(spec), spec)
  return openTrialAt(access, path.trim(), {
    ...settings,
    ...(indexCache !== undefined && { indexCache: resolve(indexCache) }),
    file,
  })
}

/**
 * Opens the trial of a store.
 * @param path as people know it
 * @param options with `indexCache` an absolute path
 */
export async function openTrialAt(
  access: Access,
  path: string,
  options: AnyTrialOptions & Pick<TrialOptions, 'indexCache'> & { readonly file?: string | undefined },
): Promise<Trial> {
  const {
    name,
    rangeSteps = null,
    incompleteStepWindow = 1000,
    requireCollections = true,
    abandonedSteps = false,
    indexCache,
    refresh = 'auto',
    threads,
    file,
  } = options
  const loader = new TrialLoader(access, {
    rangeSteps,
    threads,
    incompleteStepWindow,
    requireCollections,
    abandonedSteps,
    indexCache: indexCache ?? null,
    file,
  })
  const contents = await loader.load()
  if (contents.isTensorBoard && indexCache !== undefined) {
    await access.close()
    const message = `expected indexCache for a trial with index files only, got it for TensorBoard's files at ${path}`
    throw new UsageError(message, { pathOrUrl: path, option: 'indexCache' })
  }
  const state = new TrialState(access, rangeSteps, loader, contents)
  if (refresh === 'auto') state.refreshInBackground()
  return new Trial(path, name ?? file ?? storeName(access.spec), state)
}

/**
 * Runs `work`, for which these trials stay as they are now: its queries don't look for new steps, and don't see any
 * that others find meanwhile. Others are not affected.
 * @returns what `work` returns
 */
export async function noRefresh<T>(trials: Trial | readonly Trial[], work: () => Promise<T> | T): Promise<T> {
  expectWork('noRefresh', work)
  return withHold(statesOf(trials), {}, work)
}

/**
 * Looks for anything written to these trials since the last look.
 * @returns whether there was anything
 */
export async function refresh(trials: Trial | readonly Trial[]): Promise<boolean>
/**
 * Looks for anything written to these trials since the last look, and runs `work`, whose queries look for new steps
 * even within a `noRefresh`.
 * @returns what `work` returns
 */
export async function refresh<T>(trials: Trial | readonly Trial[], work: () => Promise<T> | T): Promise<T>
export async function refresh<T>(trials: Trial | readonly Trial[], work?: () => Promise<T> | T): Promise<T | boolean> {
  const states = statesOf(trials)
  const look = async (): Promise<boolean> => {
    const refreshed = await Promise.all(states.map(state => state.refresh()))
    return refreshed.includes(true)
  }
  if (work === undefined) return look()
  expectWork('refresh', work)
  return withHold([], { released: states }, async () => {
    await look()
    return work()
  })
}

function statesOf(trials: Trial | readonly Trial[]): TrialState[] {
  const all: readonly unknown[] = Array.isArray(trials) ? trials : [trials]
  return all.map(trial => {
    if (trial instanceof Trial) return stateOf(trial)
    throw new UsageError(`expected a trial, or several in an array, got ${quote(String(trial))}`)
  })
}

/** An alias of `createTrial`. */
export const openTrial = createTrial

function isStepRange(range: unknown): boolean {
  const isBound = (bound: unknown): boolean => bound === null || (Number.isSafeInteger(bound) && (bound as number) >= 0)
  if (!Array.isArray(range) || range.length !== 2 || !range.every(isBound)) return false
  const [begin, end] = range as unknown as StepRange
  return begin === null || end === null || begin < end
}
