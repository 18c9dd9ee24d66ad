/** The checked options of S3. They are separate from the spec, since threads don't need them. */

import { kinds, optionsOf } from '../../base/options.js'
import type { S3Credentials, S3Options } from './spec.js'

export const S3_OPTIONS = optionsOf<S3Options>({
  endpoint: kinds.that('an http:// or https:// URL', url => typeof url === 'string' && /^https?:\/\/[^/]/.test(url)),
  region: kinds.text,
  forcePathStyle: kinds.flag,
  credentials: optionsOf<S3Credentials>(
    {
      accessKeyId: kinds.text,
      secretAccessKey: kinds.text,
      sessionToken: kinds.text,
      expiration: kinds.that('a Date', date => date instanceof Date),
      accountId: kinds.text,
      credentialScope: kinds.text,
      $source: kinds.that('an object', source => typeof source === 'object' && source !== null),
    },
    'accessKeyId',
    'secretAccessKey',
  ),
  anonymous: kinds.flag,
  maxAttempts: kinds.wholeNumber(1),
  requestTimeoutMs: kinds.wholeNumber(1),
  idleTimeoutMs: kinds.wholeNumber(1),
  minBytesPerSecond: kinds.wholeNumber(0),
  rateTimeoutMs: kinds.wholeNumber(1),
  maxSockets: kinds.wholeNumber(1),
  gapByteLength: kinds.wholeNumber(0),
  partByteLength: kinds.wholeNumber(64 << 10),
  listLimit: kinds.wholeNumber(0),
  cacheDirectory: kinds.text,
  cacheByteLength: kinds.wholeNumber(0),
})
