/**
 * S3 as the SDK speaks it, one call a request: the only importer of the SDK, loaded when the first request is made.
 * Attempts are counted and repeated elsewhere (s3-requests.ts), where it is known what has come already.
 */

import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { GetObjectCommand, ListObjectsV2Command, S3Client, type S3ClientConfig } from '@aws-sdk/client-s3'
import { S3Failure } from './s3-errors.js'
import { S3_DEFAULTS, type S3Options } from './s3-spec.js'

export interface ListQuery {
  readonly prefix: string
  /** Whether keys with a further slash are left out. */
  readonly isFlat: boolean
  readonly startAfter?: string | undefined
  readonly token?: string | undefined
  readonly maxKeys?: number | undefined
}

export interface ListedObject {
  readonly key: string
  readonly byteLength: number
  readonly modifiedMs: number
  readonly etag: string
}

export interface ListPage {
  readonly objects: readonly ListedObject[]
  /** Of what is one level deeper, where the query is flat. */
  readonly prefixes: readonly string[]
  /** Null for the last page. */
  readonly token: string | null
}

export interface ObjectAnswer {
  readonly status: number
  readonly etag: string
  /** What comes, as the answer says. */
  readonly startByte: number
  readonly endByte: number
  /** Of the whole object. */
  readonly byteLength: number
  readonly body: Readable
}

/** A connection to S3: credentials, sockets. */
export class S3Connection {
  readonly #options: S3Options
  #client: Promise<S3Client>

  constructor(options: S3Options) {
    this.#options = options
    this.#client = withRegion(options)
    this.#client.catch(() => {})
  }

  async list(bucket: string, query: ListQuery, signal: AbortSignal | undefined): Promise<ListPage> {
    const command = new ListObjectsV2Command({
      Bucket: bucket,
      Prefix: query.prefix,
      // Keys may hold what XML can't.
      EncodingType: 'url',
      ...(query.isFlat && { Delimiter: '/' }),
      ...(query.token === undefined
        ? query.startAfter !== undefined && { StartAfter: query.startAfter }
        : { ContinuationToken: query.token }),
      ...(query.maxKeys !== undefined && { MaxKeys: query.maxKeys }),
    })
    const page = await this.#send(client => client.send(command, signal && { abortSignal: signal }))
    return {
      objects: (page.Contents ?? []).map(({ Key, Size, LastModified, ETag }) => ({
        key: decoded(Key ?? ''),
        byteLength: Size ?? 0,
        modifiedMs: LastModified?.getTime() ?? 0,
        etag: ETag ?? '',
      })),
      prefixes: (page.CommonPrefixes ?? []).map(({ Prefix }) => decoded(Prefix ?? '')),
      token: page.IsTruncated && page.NextContinuationToken ? page.NextContinuationToken : null,
    }
  }

  /** A range of an object, or all of it. The body is to be read or destroyed. */
  async get(
    bucket: string,
    key: string,
    { range, ifMatch }: { readonly range?: string | undefined; readonly ifMatch?: string | undefined },
    signal: AbortSignal | undefined,
  ): Promise<ObjectAnswer> {
    const command = new GetObjectCommand({
      Bucket: bucket,
      Key: key,
      ...(range !== undefined && { Range: range }),
      ...(ifMatch !== undefined && { IfMatch: ifMatch }),
    })
    const { ETag, ContentRange, ContentLength, Body, $metadata } = await this.#send(client =>
      client.send(command, signal && { abortSignal: signal }),
    )
    const body = Body as Readable
    // Until somebody listens, a broken connection must not end the process.
    body.on('error', () => {})
    const [, start, last, total] = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(ContentRange ?? '') ?? []
    const isRange = $metadata.httpStatusCode === 206 && start !== undefined
    const length = ContentLength ?? Number.POSITIVE_INFINITY
    return {
      status: $metadata.httpStatusCode ?? 200,
      etag: ETag ?? '',
      startByte: isRange ? Number(start) : 0,
      endByte: isRange ? Number(last) + 1 : length,
      byteLength: isRange ? (total === '*' ? Number(last) + 1 : Number(total)) : length,
      body,
    }
  }

  /** A bucket that is elsewhere tells where: asked again there, once and for all. */
  async #send<T>(request: (client: S3Client) => Promise<T>): Promise<T> {
    const asked = this.#client
    try {
      return await request(await asked)
    } catch (error) {
      const failure = failureOf(error)
      const { region, status } = failure
      const isElsewhere = region !== undefined && (status === 301 || status === 307 || status === 400 || status === 403)
      if (!isElsewhere || region === (await (await asked).config.region())) throw failure
      if (this.#client === asked) this.#client = Promise.resolve(clientOf({ ...this.#options, region }))
      try {
        return await request(await this.#client)
      } catch (again) {
        throw failureOf(again)
      }
    }
  }
}

const connections = new Map<string, S3Connection>()

/** The connection with these options: trials that share them share its sockets. */
export function connect({
  endpoint,
  region,
  forcePathStyle,
  credentials,
  anonymous,
  ...rest
}: S3Options): S3Connection {
  const { maxSockets, requestTimeoutMs, idleTimeoutMs } = rest
  const known = {
    endpoint,
    region,
    forcePathStyle,
    credentials,
    anonymous,
    maxSockets,
    requestTimeoutMs,
    idleTimeoutMs,
  }
  const key = JSON.stringify(known)
  let connection = connections.get(key)
  if (connection === undefined) {
    connection = new S3Connection(JSON.parse(key) as S3Options)
    connections.set(key, connection)
  }
  return connection
}

/** Where no region is to be found, S3's own default; a bucket that is elsewhere tells. */
async function withRegion(options: S3Options): Promise<S3Client> {
  const client = clientOf(options)
  try {
    await client.config.region()
    return client
  } catch {
    return clientOf({ ...options, region: 'us-east-1' })
  }
}

function clientOf(options: S3Options): S3Client {
  const { endpoint, region, forcePathStyle, credentials, anonymous } = options
  const maxSockets = options.maxSockets ?? S3_DEFAULTS.maxSockets
  const requestTimeout = options.requestTimeoutMs ?? S3_DEFAULTS.requestTimeoutMs
  const agent = { keepAlive: true, maxSockets }
  const config: S3ClientConfig = {
    ...(endpoint !== undefined && { endpoint }),
    ...(region !== undefined && { region }),
    ...(forcePathStyle !== undefined && { forcePathStyle }),
    // The SDK writes into what it is given.
    ...(credentials && { credentials: { ...credentials } }),
    ...(anonymous && { signer: { sign: async request => request }, credentials: NOBODY }),
    maxAttempts: 1,
    // Ranges have no checksums, and what is read is checked by its own.
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestChecksumCalculation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: requestTimeout,
      requestTimeout,
      // Without it the handler only warns, and waits for ever.
      throwOnRequestTimeout: true,
      // For bodies that the SDK reads itself, those of errors.
      socketTimeout: Math.max(requestTimeout, options.idleTimeoutMs ?? S3_DEFAULTS.idleTimeoutMs) + 1000,
      httpAgent: agent,
      httpsAgent: agent,
    },
  }
  return new S3Client(config)
}

const NOBODY = { accessKeyId: '', secretAccessKey: '' }

/** What the SDK tells of an error, by status and code: its names are not always S3's. */
function failureOf(error: unknown): S3Failure {
  if (error instanceof S3Failure) return error
  const known = error as {
    readonly name?: string
    readonly code?: string
    readonly message?: string
    readonly $metadata?: { readonly httpStatusCode?: number }
    readonly $response?: { readonly statusCode?: number; readonly headers?: IncomingHttpHeaders }
  }
  const status = known.$metadata?.httpStatusCode ?? known.$response?.statusCode
  const region = known.$response?.headers?.['x-amz-bucket-region']
  const retryAfter = Number(known.$response?.headers?.['retry-after'])
  return new S3Failure(
    (known.message ?? String(error)).split('\n')[0]!,
    {
      ...(status !== undefined && { status }),
      code: known.code ?? known.name ?? 'Unknown',
      ...(typeof region === 'string' && { region }),
      ...(retryAfter > 0 && { retryAfterMs: retryAfter * 1000 }),
    },
    error,
  )
}

/** `EncodingType: url` writes a space as a plus, as forms do. */
function decoded(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '))
}
