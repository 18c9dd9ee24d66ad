/** The options of places, above all on S3: their flags, their help, and the library's options that they stand for. */

import { UsageError } from '../../base/errors.js'
import type { S3Options } from '../../storage/s3/spec.js'
import type { TrialOptions } from '../../trial/open.js'

/** The options of S3, by their names among the flags of a command: flags, help, and their names in `createTrial`. */
export const S3_OPTIONS = {
  s3Endpoint: ['--s3-endpoint <URL>', 'the server (default: AWS_ENDPOINT_URL_S3, else that of AWS)', 'endpoint'],
  s3Region: ['--s3-region <REGION>', 'where the bucket is (default: AWS_REGION, else what S3 says)', 'region'],
  s3ForcePathStyle: ['--s3-force-path-style', 'the bucket in the path, not in the name of the host', 'forcePathStyle'],
  s3Anonymous: ['--s3-anonymous', 'unsigned requests, for public buckets', 'anonymous'],
  s3Cache: ['--s3-cache <DIR>', 'keep there what was read, for the next time', 'cacheDirectory'],
  s3MinRate: [
    '--s3-min-rate <BYTES>',
    'the least an answer has to bring in a second (default: 1000; 0: nothing)',
    'minBytesPerSecond',
  ],
  s3ListLimit: [
    '--s3-list-limit <N>',
    'objects of no trial, after which a listing ends (default: 100000; 0: nowhere)',
    'listLimit',
  ],
} as const satisfies Readonly<Record<string, readonly [flags: string, help: string, option: keyof S3Options]>>

type FlagName = keyof typeof S3_OPTIONS

/** The values of the S3 options. */
export type S3Flags = { readonly [F in FlagName]?: NonNullable<S3Options[(typeof S3_OPTIONS)[F][2]]> }

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
  const [flag] = S3_OPTIONS[idle][0].split(' ')
  throw new UsageError(`expected ${flag} for a trial at s3://bucket/prefix only, got it for ${places.join(', ')}`)
}

export function isOnS3(place: string): boolean {
  return /^\s*s3:\/\//i.test(place)
}

/** The options as `createTrial` takes them; empty without flags. */
export function s3OptionsOf(flags: S3Flags): { readonly s3?: S3Options } {
  const names = givenNames(flags)
  return names.length > 0 ? { s3: Object.fromEntries(names.map(name => [S3_OPTIONS[name][2], flags[name]])) } : {}
}

/** The options for one of several places. */
export function s3For(place: string, flags: S3Flags): { readonly s3?: S3Options } {
  return isOnS3(place) ? s3OptionsOf(flags) : {}
}

function givenNames(flags: S3Flags): FlagName[] {
  return (Object.keys(S3_OPTIONS) as FlagName[]).filter(name => flags[name] !== undefined)
}
