/** What the options of S3 come to for the trials of a command. */

import { type S3Options, UsageError } from '../index.js'
import type { S3Flags } from './s3.js'

const S3_FLAG_NAMES = [
  's3Endpoint',
  's3Region',
  's3ForcePathStyle',
  's3Anonymous',
  's3Cache',
  's3MinRate',
  's3ListLimit',
] as const

/**
 * As `s3OptionsOf`, for a command of one trial.
 * @throws UsageError for a trial that is not on S3
 */
export function s3OptionsFor(trial: string, flags: S3Flags): { readonly s3?: S3Options } {
  expectS3(flags, [trial])
  return s3OptionsOf(flags)
}

/** @throws UsageError for flags that have an effect on none of the trials */
export function expectS3(flags: S3Flags, trials: readonly string[]): void {
  if (trials.some(isOnS3)) return
  const idle = S3_FLAG_NAMES.find(name => flags[name] !== undefined)
  if (idle === undefined) return
  const flag = `--${idle.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}`
  throw new UsageError(`expected ${flag} for a trial at s3://bucket/prefix only, got it for ${trials.join(', ')}`)
}

export function isOnS3(trial: string): boolean {
  return /^\s*s3:\/\//i.test(trial)
}

/** As `createTrial` takes them; nothing where nothing was said. */
export function s3OptionsOf(flags: S3Flags): { readonly s3?: S3Options } {
  const { s3Endpoint, s3Region, s3ForcePathStyle, s3Anonymous, s3Cache, s3MinRate, s3ListLimit } = flags
  const s3: S3Options = {
    ...(s3Endpoint !== undefined && { endpoint: s3Endpoint }),
    ...(s3Region !== undefined && { region: s3Region }),
    ...(s3ForcePathStyle !== undefined && { forcePathStyle: s3ForcePathStyle }),
    ...(s3Anonymous !== undefined && { anonymous: s3Anonymous }),
    ...(s3Cache !== undefined && { cacheDirectory: s3Cache }),
    ...(s3MinRate !== undefined && { minBytesPerSecond: s3MinRate }),
    ...(s3ListLimit !== undefined && { listLimit: s3ListLimit }),
  }
  return Object.keys(s3).length > 0 ? { s3 } : {}
}
