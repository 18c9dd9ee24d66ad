/** Errors of S3 and of the connection to it: which of them another attempt may help, and advice for the others. */

import type { IncomingHttpHeaders } from 'node:http'
import { StoreError, type TrialscanError } from '../../base/errors.js'
import type { Failure } from '../attempts.js'
import { changedFile } from '../range.js'

const BACKOFF_MS = 50
/** The longest wait before the second attempt after S3 has asked for fewer requests, in milliseconds. */
export const THROTTLED_BACKOFF_MS = 200
/** The longest Retry-After that is obeyed. */
const MAX_RETRY_AFTER_MS = 60_000

/** The facts of a failure that may be unknown. */
type Fact = 'status' | 'region' | 'retryAfterMs' | 'date' | 'proxy'

/** A failed request, in the words of the side that failed. */
export class S3Failure extends Error implements Failure {
  /** The HTTP status; undefined if no answer came. */
  readonly status: number | undefined
  /** S3's code, Node.js's, or the SDK's name of the error. */
  readonly code: string
  /** The region of the bucket, as S3 names it. */
  readonly region: string | undefined
  readonly retryAfterMs: number | undefined
  /** The server's time. */
  readonly date: string | undefined
  /** The proxy on the way, without its password. */
  readonly proxy: string | undefined

  constructor(message: string, known: Pick<S3Failure, 'code'> & Partial<Pick<S3Failure, Fact>>, cause?: unknown) {
    super(message, { cause })
    this.status = known.status
    this.code = known.code
    this.region = known.region
    this.retryAfterMs = known.retryAfterMs
    this.date = known.date
    this.proxy = known.proxy
  }

  /** True if fewer concurrent requests would help: S3 asks for it, or descriptors have run out. */
  get isThrottling(): boolean {
    return this.status === 429 || this.status === 503 || THROTTLING.has(this.code)
  }

  get backoffMs(): number {
    return this.isThrottling ? THROTTLED_BACKOFF_MS : BACKOFF_MS
  }

  /** True if the same request may succeed later. */
  get retryable(): boolean {
    if (RETRYABLE.has(this.code) || this.isThrottling) return true
    return this.status !== undefined && (this.status >= 500 || this.status === 408)
  }
}

const THROTTLING: ReadonlySet<string> = new Set([
  'SlowDown',
  'RequestLimitExceeded',
  'KMS.ThrottlingException',
  'EMFILE',
  'ENFILE',
])

/**
 * The codes of failures that another attempt may help: a broken connection, a timeout inside S3, or a wrong clock,
 * which the SDK corrects.
 */
const RETRYABLE: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EAI_AGAIN',
  'ENETUNREACH',
  'EHOSTUNREACH',
  'TimeoutError',
  'ShortBody',
  'StalledBody',
  'SlowBody',
  'BadListing',
  'NoETag',
  'RequestTimeout',
  'RequestTimeTooSkewed',
  'InternalError',
  'ConditionalRequestConflict',
  'ServiceUnavailable',
  'ProxyUnavailable',
])

/** The failure for a page that can't be part of the listing. Another attempt may succeed. */
export function badListing(expected: string, got: string): S3Failure {
  return new S3Failure(`expected ${expected}, got ${got}`, { code: 'BadListing' })
}

/** The failure behind an error of the SDK, by status and code. The SDK's names are not always those of S3. */
export function failureOf(error: unknown): S3Failure {
  if (error instanceof S3Failure) return error
  const known = error as {
    readonly name?: string
    readonly code?: string
    readonly message?: string
    readonly $metadata?: { readonly httpStatusCode?: number }
    readonly $response?: { readonly statusCode?: number; readonly headers?: IncomingHttpHeaders }
  }
  const { 'x-amz-bucket-region': region, date, 'retry-after': retryAfter } = known.$response?.headers ?? {}
  return new S3Failure(
    (known.message ?? String(error)).split('\n')[0]!,
    {
      status: known.$metadata?.httpStatusCode ?? known.$response?.statusCode,
      code: known.code ?? known.name ?? 'Unknown',
      region: typeof region === 'string' ? region : undefined,
      date,
      retryAfterMs: Number(retryAfter) > 0 ? Math.min(Number(retryAfter) * 1000, MAX_RETRY_AFTER_MS) : undefined,
    },
    error,
  )
}

/** The request that failed, and the number of attempts. */
export interface S3Request {
  readonly url: string
  readonly bucket: string
  /** The value of the Range header. */
  readonly range?: string | undefined
  readonly attempts: number
}

/** The error for a final failure. */
export function s3Error(failure: S3Failure, { url, bucket, range, attempts }: S3Request): TrialscanError {
  const { status, code, proxy } = failure
  const fields = { url, attempts, ...(range !== undefined && { range }), ...(status !== undefined && { status }) }
  const where = `${url}${range === undefined ? '' : `, ${range}`}`
  const tries = attempts > 1 ? ` (${attempts} attempts)` : ''
  if (status === 412) return changedFile(url, where, fields, failure)
  const error = (kind: 'NotFound' | 'Denied' | 'Unavailable', detail: string): StoreError =>
    new StoreError(kind, `${where}: ${detail}${tries}`, { ...fields, retryable: failure.retryable, s3: code }, failure)
  if (code === 'BadListing' || code === 'EndlessListing') {
    return error('Unavailable', `the listing of bucket ${bucket} is incomplete: ${failure.message}`)
  }
  if (code === 'LongListing') {
    return error('Unavailable', `the listing of bucket ${bucket} is too long: ${failure.message}`)
  }
  if (code === 'NoSuchBucket') return error('NotFound', `no such bucket: ${bucket}`)
  if (code === 'NoSuchKey') return error('NotFound', 'no such object')
  if (status === 404 && !failure.retryable) {
    const hint = 'is the endpoint right, or does a proxy or a portal answer in its place?'
    return error('NotFound', `expected S3's NoSuchKey, got a status 404 that is not S3's: ${hint}`)
  }
  if (proxy !== undefined) {
    const wayOut = 'or name the host in NO_PROXY'
    if (code === 'ProxyUnauthorized') {
      return error(
        'Denied',
        `the proxy ${proxy} refuses: ${failure.message}: write http://name:password@host:port, ${wayOut}`,
      )
    }
    const detail = `the proxy ${proxy} makes no connection to S3: ${failure.message}: allow it there, ${wayOut}`
    if (code.startsWith('Proxy')) return error(code === 'ProxyRefused' ? 'Denied' : 'Unavailable', detail)
    return error('Unavailable', `expected an answer of S3 through the proxy ${proxy}, got ${code}: ${failure.message}`)
  }
  const denial = denialOf(failure)
  if (denial !== undefined) return error('Denied', denial)
  if (code === 'InvalidObjectState') return error('Unavailable', ARCHIVED)
  if (code === 'EMFILE' || code === 'ENFILE') return error('Unavailable', `${code}: ${NO_DESCRIPTORS}`)
  if (failure.region !== undefined && (status === 301 || status === 307 || status === 400)) {
    return error(
      'Unavailable',
      `the bucket is in region ${failure.region}: say so (s3.region, --s3-region, AWS_REGION)`,
    )
  }
  if (status === 301) return error('Unavailable', 'the bucket is elsewhere: is the region right, or the endpoint?')
  if (status === 403 || status === 401) {
    const hint = 'is the region right, and are s3:ListBucket and s3:GetObject allowed?'
    return error('Denied', `S3 refuses (${code}): ${hint}`)
  }
  const said = status === undefined ? code : `${status} ${code}`
  return error('Unavailable', `expected an answer of S3, got ${said}: ${failure.message}`)
}

const EXPIRED =
  'the credentials have expired: get new ones (aws sso login, or from where AWS_SESSION_TOKEN came), and run this again'
const ARCHIVED =
  'the object is archived (Glacier, Deep Archive or an archive tier): restore it first (aws s3api restore-object), which takes minutes to days'
const NO_DESCRIPTORS =
  'no file descriptor is left for a connection: raise the limit (ulimit -n), or make fewer at once (s3.maxSockets)'

/** The reason why S3 or the provider of credentials refuses, with advice; undefined if unknown. */
function denialOf({ code, message, status, date }: S3Failure): string | undefined {
  if (code === 'RequestTimeTooSkewed' || code === 'RequestExpired') {
    const times = date === undefined ? '' : `: it says ${new Date().toUTCString()}, S3 says ${date}`
    return `the clock of this machine is wrong${times}: set it`
  }
  // What gives credentials, such as a session of SSO, says it in words of its own.
  if (code.startsWith('Credentials') || code.startsWith('Token')) {
    if (/expired|invalid_grant|refresh/i.test(message)) return DENIALS.ExpiredToken
  }
  const isRefused = status === 400 || status === 403
  if (isRefused && (code.startsWith('KMS.') || /\bkms:|customer master key|KMS key/i.test(message))) {
    const what = /disabled/i.test(code + message)
      ? 'is disabled'
      : /NotFound|not exist/i.test(code)
        ? 'is not there'
        : ''
    const why = what || 'refuses'
    return `the object is encrypted, and its KMS key ${why} (${code}): kms:Decrypt is needed, for a key that is enabled, in its policy too`
  }
  if (isRefused && /server side encryption|SSE-C|customer.provided/i.test(message)) {
    return `the object is encrypted with a key that only who wrote it has (SSE-C): copy it to one without`
  }
  return DENIALS[code]
}

const DENIALS: Readonly<Record<string, string>> = {
  CredentialsProviderError:
    'no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile; for a public bucket ask anonymously (s3.anonymous, --s3-anonymous)',
  ExpiredToken: EXPIRED,
  ExpiredTokenException: EXPIRED,
  TokenRefreshRequired: EXPIRED,
  InvalidToken: 'the session token is not valid: get new credentials',
  InvalidAccessKeyId:
    'S3 does not know the access key: is AWS_ACCESS_KEY_ID (or the profile) right, and of this account? Temporary keys need AWS_SESSION_TOKEN',
  SignatureDoesNotMatch: 'the signature is wrong: is the secret access key right, and the endpoint?',
}
