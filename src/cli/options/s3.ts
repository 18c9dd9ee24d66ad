/** The options of where trials lie, on S3 above all. */

import { UsageError } from '../../base/errors.js'
import type { S3Options } from '../../storage/s3/spec.js'
import type { TrialOptions } from '../../trial/open.js'

export interface S3Flags {
  readonly s3Endpoint?: string
  readonly s3Region?: string
  readonly s3ForcePathStyle?: boolean
  readonly s3Anonymous?: boolean
  readonly s3Cache?: string
  readonly s3MinRate?: number
  readonly s3ListLimit?: number
}

/** The options of where trials lie, and what of them counts. */
export interface TrialFlags extends S3Flags {
  readonly allowSymlinks?: boolean
  readonly abandonedSteps?: boolean
}

/** The options of a place among which some may be on S3, for `createTrial` and others. */
export function placeOptions(
  trial: string,
  flags: TrialFlags,
): { readonly allowSymlinks?: true; readonly s3?: S3Options } {
  if (isOnS3(trial)) return s3OptionsOf(flags)
  return flags.allowSymlinks ? { allowSymlinks: true } : {}
}

/** The options of `createTrial`. */
export function trialOptions(trial: string, flags: TrialFlags): TrialOptions {
  return { ...placeOptions(trial, flags), ...(flags.abandonedSteps && { abandonedSteps: true }) }
}

/** Their names in `createTrial`. */
const OPTION_NAMES = {
  s3Endpoint: 'endpoint',
  s3Region: 'region',
  s3ForcePathStyle: 'forcePathStyle',
  s3Anonymous: 'anonymous',
  s3Cache: 'cacheDirectory',
  s3MinRate: 'minBytesPerSecond',
  s3ListLimit: 'listLimit',
} as const satisfies Record<keyof S3Flags, keyof S3Options>

type FlagName = keyof typeof OPTION_NAMES
const FLAG_NAMES = Object.keys(OPTION_NAMES) as FlagName[]

/**
 * The options of `s3OptionsOf` for a command with one trial.
 * @throws UsageError for flags if the trial is not on S3
 */
export function s3OptionsFor(trial: string, flags: S3Flags): { readonly s3?: S3Options } {
  expectS3(flags, [trial])
  return s3OptionsOf(flags)
}

/** @throws UsageError for flags if none of the trials is on S3 */
export function expectS3(flags: S3Flags, trials: readonly string[]): void {
  if (trials.some(isOnS3)) return
  const [idle] = givenNames(flags)
  if (idle === undefined) return
  const flag = `--${idle.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}`
  throw new UsageError(`expected ${flag} for a trial at s3://bucket/prefix only, got it for ${trials.join(', ')}`)
}

export function isOnS3(trial: string): boolean {
  return /^\s*s3:\/\//i.test(trial)
}

/** The options as `createTrial` takes them; empty without flags. */
export function s3OptionsOf(flags: S3Flags): { readonly s3?: S3Options } {
  const given = givenNames(flags)
  return given.length > 0 ? { s3: Object.fromEntries(given.map(name => [OPTION_NAMES[name], flags[name]])) } : {}
}

/** The options for one of several places. */
export function s3For(place: string, flags: S3Flags): { readonly s3?: S3Options } {
  return isOnS3(place) ? s3OptionsOf(flags) : {}
}

function givenNames(flags: S3Flags): FlagName[] {
  return FLAG_NAMES.filter(name => flags[name] !== undefined)
}
