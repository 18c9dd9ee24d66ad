/** The options of places, above all on S3: their flags, their help, and the library's options that they stand for. */

import { UsageError } from '../../base/errors.js'
import type { S3Options } from '../../storage/s3/spec.js'
import type { TrialOptions } from '../../trial/open.js'
import { pathText, wholeNumberArgument } from './arguments.js'

/** An option of S3. */
export interface S3Option {
  readonly flags: string
  /** Its line in `trialscan help s3`. */
  readonly help: string
  /** Its name in `createTrial`. */
  readonly option: keyof S3Options
  readonly read?: (text: string) => unknown
}

/** The options of S3, by their names among the flags of a command. */
export const S3_OPTIONS = {
  s3Endpoint: {
    flags: '--s3-endpoint <URL>',
    help: 'the server (default: AWS_ENDPOINT_URL_S3, else that of AWS)',
    option: 'endpoint',
  },
  s3Region: {
    flags: '--s3-region <REGION>',
    help: 'where the bucket is (default: AWS_REGION, else what S3 says)',
    option: 'region',
  },
  s3ForcePathStyle: {
    flags: '--s3-force-path-style',
    help: 'the bucket in the path, not in the name of the host',
    option: 'forcePathStyle',
  },
  s3Anonymous: { flags: '--s3-anonymous', help: 'unsigned requests, for public buckets', option: 'anonymous' },
  s3Cache: {
    flags: '--s3-cache <DIR>',
    help: 'keep there what was read, for the next time',
    option: 'cacheDirectory',
    read: pathText,
  },
  s3MinRate: {
    flags: '--s3-min-rate <BYTES>',
    help: 'the least an answer has to bring in a second (default: 1000; 0: nothing)',
    option: 'minBytesPerSecond',
    read: wholeNumberArgument,
  },
  s3ListLimit: {
    flags: '--s3-list-limit <N>',
    help: 'objects of no trial, after which a listing ends (default: 100000; 0: nowhere)',
    option: 'listLimit',
    read: wholeNumberArgument,
  },
} as const satisfies Readonly<Record<string, S3Option>>

type FlagName = keyof typeof S3_OPTIONS

/** The values of the S3 options. */
export type S3Flags = { readonly [F in FlagName]?: NonNullable<S3Options[(typeof S3_OPTIONS)[F]['option']]> }

/** The values of the options about places and links. */
export interface TrialFlags extends S3Flags {
  readonly allowSymlinks?: boolean
  readonly abandonedSteps?: boolean
}

/** The library's options for one of several places, some of which may be on S3. */
export function placeOptions(
  place: string,
  flags: TrialFlags,
): { readonly allowSymlinks?: true; readonly s3?: S3Options } {
  if (isOnS3(place)) return s3OptionsOf(flags)
  return flags.allowSymlinks ? { allowSymlinks: true } : {}
}

/** `placeOptions` for a command with one place. @throws UsageError for S3 options if the place is not on S3 */
export function onlyPlaceOptions(place: string, flags: TrialFlags): ReturnType<typeof placeOptions> {
  expectS3(flags, [place])
  return placeOptions(place, flags)
}

/** The options of `createTrial` for one of several places. */
export function trialOptions(trial: string, flags: TrialFlags): TrialOptions {
  return { ...placeOptions(trial, flags), ...(flags.abandonedSteps && { abandonedSteps: true }) }
}

/** @throws UsageError for S3 options if none of the places is on S3 */
export function expectS3(flags: S3Flags, places: readonly string[]): void {
  if (places.some(isOnS3)) return
  const [idle] = givenNames(flags)
  if (idle === undefined) return
  const [flag] = S3_OPTIONS[idle].flags.split(' ')
  throw new UsageError(`expected ${flag} for a trial at s3://bucket/prefix only, got it for ${places.join(', ')}`)
}

export function isOnS3(place: string): boolean {
  return /^\s*s3:\/\//i.test(place)
}

/** The options as `createTrial` takes them; empty without flags. */
export function s3OptionsOf(flags: S3Flags): { readonly s3?: S3Options } {
  const names = givenNames(flags)
  return names.length > 0 ? { s3: Object.fromEntries(names.map(name => [S3_OPTIONS[name].option, flags[name]])) } : {}
}

/** The options for one of several places. */
export function s3For(place: string, flags: S3Flags): { readonly s3?: S3Options } {
  return isOnS3(place) ? s3OptionsOf(flags) : {}
}

function givenNames(flags: S3Flags): FlagName[] {
  return (Object.keys(S3_OPTIONS) as FlagName[]).filter(name => flags[name] !== undefined)
}
