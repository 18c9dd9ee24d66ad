/** The options of a trial on S3 as plain data: where it lies, and how it is read. */

import { UsageError } from '../../base/errors.js'

/** The keys of an account. Default: the SDK's usual chain of AWS_* variables, profiles and roles of the machine. */
export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
  /** The expiry that the SDK's credentials (AwsCredentialIdentity) carry, so that they can be passed unchanged. */
  readonly expiration?: Date
  readonly accountId?: string
  readonly credentialScope?: string
  /** A field that the SDK adds to credentials. */
  readonly $source?: object
}

export interface S3Options {
  /** URL of the server. Default: AWS_ENDPOINT_URL_S3, a profile's, or that of AWS. */
  readonly endpoint?: string
  /** Default: AWS_REGION or a profile's, else us-east-1; if the bucket is elsewhere, where S3 says that it is. */
  readonly region?: string
  /** Buckets as the first part of the path, not of the host name: what most servers other than AWS want. */
  readonly forcePathStyle?: boolean
  readonly credentials?: S3Credentials
  /** Unsigned requests, for public buckets. */
  readonly anonymous?: boolean
  /** The number of attempts for a request. Default 8. */
  readonly maxAttempts?: number
  /** Milliseconds until an answer must begin. Default 10,000. */
  readonly requestTimeoutMs?: number
  /** Milliseconds within an answer without a byte. Default 10,000. */
  readonly idleTimeoutMs?: number
  /** The least rate of an answer in bytes a second; a slower one is requested again from where it stopped. Default 1,000; 0: any rate. */
  readonly minBytesPerSecond?: number
  /** Milliseconds over which that is measured. Default 60,000. */
  readonly rateTimeoutMs?: number
  /** The number of concurrent requests, and of connections kept open. Default 32. */
  readonly maxSockets?: number
  /** The largest gap in bytes between two records that is read rather than skipped. Default 512 KiB. */
  readonly gapByteLength?: number
  /** The bytes of one request; longer ranges are cut into several, which run in parallel. At least 64 KiB. Default 2 MiB. */
  readonly partByteLength?: number
  /**
   * Objects of no trial, after which the listing of a place that seems to be none ends with an error. Default 100,000, or 10,000
   * where trials lie below; 0: nowhere. Any listing ends with an error after 10,000,000 keys, or one for each KiB of the
   * JavaScript heap where these are fewer, unless this limit is higher, or 0.
   */
  readonly listLimit?: number
  /** A directory that keeps what was read, for later processes. Default: none. */
  readonly cacheDirectory?: string
  /** The most bytes that it keeps. Default 10 GiB. */
  readonly cacheByteLength?: number
}

export interface S3StoreSpec {
  readonly kind: 's3'
  readonly bucket: string
  /** Begins every key of the trial: empty, or with a slash at its end. */
  readonly prefix: string
  /** The only object below the prefix that counts: an event file of TensorBoard's that was named itself. */
  readonly only?: string
  readonly options: S3Options
}

/** The defaults, from measurements. */
export const S3_DEFAULTS = {
  maxAttempts: 8,
  requestTimeoutMs: 10_000,
  idleTimeoutMs: 10_000,
  minBytesPerSecond: 1000,
  rateTimeoutMs: 60_000,
  maxSockets: 32,
  gapByteLength: 512 << 10,
  partByteLength: 2 << 20,
  cacheByteLength: 10 * 2 ** 30,
} as const

/** The spec of `s3://bucket/prefix`. @throws UsageError */
export function s3Spec(url: string, options: S3Options): S3StoreSpec {
  // Keys in such URLs are literal: nothing is decoded.
  const [, bucket, rest] = /^s3:\/\/([^/]+)(?:\/(.*))?$/is.exec(url) ?? []
  if (bucket === undefined || !/^[A-Za-z0-9][A-Za-z0-9._:-]{1,254}$/.test(bucket)) {
    throw new UsageError(`expected s3://bucket/prefix, got ${JSON.stringify(url)}`, { pathOrUrl: url })
  }
  checkTogether(options)
  const prefix = (rest ?? '').replace(/^\/+|\/+$/g, '')
  return { kind: 's3', bucket, prefix: prefix === '' ? '' : `${prefix}/`, options: { ...options } }
}

/** Checks options against each other. */
function checkTogether({ credentials, anonymous, cacheDirectory, cacheByteLength }: S3Options): void {
  if (cacheByteLength !== undefined && cacheDirectory === undefined) {
    throw new UsageError('expected s3.cacheDirectory beside s3.cacheByteLength, which is of that cache, got none')
  }
  if (credentials && anonymous) throw new UsageError('expected s3.credentials or s3.anonymous, got both')
  if (credentials && !(credentials.accessKeyId && credentials.secretAccessKey)) {
    throw new UsageError('expected s3.credentials to be { accessKeyId, secretAccessKey, sessionToken? }')
  }
}
