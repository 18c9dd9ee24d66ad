/**
 * S3 through the SDK, one request a call: the only importer of the SDK, loaded with the first request. Repeated
 * attempts are those of storage/attempts.ts, which knows what has been received.
 */

import type { Readable } from 'node:stream'
import { GetObjectCommand, type GetObjectCommandOutput, ListObjectsV2Command, type S3 } from '@aws-sdk/client-s3'
import { UsageError } from '../../base/errors.js'
import type { RangeAnswer } from '../range.js'
import { type Pace, readBody, readStart } from './body.js'
import { type ConnectionOptions, clientOf, withRegion } from './client.js'
import { badListing, failureOf, S3Failure } from './errors.js'
import { type ListPage, type ListQuery, parseListing } from './listing.js'
import { proxySettings } from './proxy.js'
import { S3_DEFAULTS, type S3Options } from './spec.js'

/** The limit of a page: a thousand keys of at most 1 KiB, each byte spelled with three. */
const MAX_PAGE_BYTES = 16 << 20
const MAX_ERROR_BYTES = 1 << 20
/** The slowest accepted rate of an upload: 1 MB/s. */
const SLOWEST_BYTES_PER_MS = 1000
const EMPTY_PAGE = Buffer.from('<ListBucketResult/>')

/** An answer before the SDK parses it. */
interface RawResponse {
  readonly statusCode: number
  body: unknown
}

/** The innermost position of the SDK's middleware. */
const AT_THE_WIRE = { step: 'deserialize', priority: 'low', name: 'trialscanBody' } as const

/** Middleware that sees raw answers. */
function atTheWire(read: (response: RawResponse) => Promise<void>) {
  return <Args, Answer extends { readonly response: unknown }>(next: (args: Args) => Promise<Answer>) =>
    async (args: Args): Promise<Answer> => {
      const answer = await next(args)
      await read(answer.response as RawResponse)
      return answer
    }
}

/** A connection to S3: credentials, sockets. */
export class S3Connection {
  readonly #options: ConnectionOptions
  readonly #pace: Pace
  #client: Promise<S3>

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.#pace = { ...S3_DEFAULTS, ...options }
    this.#client = withRegion(options)
    this.#client.catch(() => {})
  }

  async list(bucket: string, query: ListQuery, signal: AbortSignal | undefined): Promise<ListPage> {
    const command = new ListObjectsV2Command({
      Bucket: bucket,
      Prefix: query.prefix,
      // Keys may hold what XML can't.
      EncodingType: 'url',
      Delimiter: query.isFlat ? '/' : undefined,
      StartAfter: query.token === undefined ? query.startAfter : undefined,
      ContinuationToken: query.token,
      MaxKeys: query.maxKeys,
    })
    let page: ListPage | undefined
    const readPage = async (response: RawResponse): Promise<void> => {
      if (response.statusCode >= 300) return this.#readError(response, signal)
      const { body, statusCode } = response
      const bytes = await readStart(body as Readable, MAX_PAGE_BYTES, this.#pace, signal)
      if (statusCode !== 200) throw badListing('status 200', `${statusCode}`)
      if (bytes.length === MAX_PAGE_BYTES) throw badListing(`a page of less than ${MAX_PAGE_BYTES} bytes`, 'more')
      page = parseListing(utf8(bytes), bucket, query)
      // The SDK's own parser makes something of anything, and takes a page of HTML for an empty one: it gets nothing to parse.
      response.body = EMPTY_PAGE
    }
    command.middlewareStack.add(atTheWire(readPage), AT_THE_WIRE)
    await this.send(client => client.send(command, signal && { abortSignal: signal }))
    return page!
  }

  /**
   * Requests a range of an object, or all of it; null if it ends before the range. The body must be read or given up.
   */
  async get(
    bucket: string,
    key: string,
    { range, ifMatch }: { readonly range: string | undefined; readonly ifMatch: string | null },
    signal: AbortSignal | undefined,
  ): Promise<RangeAnswer | null> {
    const command = new GetObjectCommand({
      Bucket: bucket,
      Key: key,
      Range: range,
      IfMatch: ifMatch ?? undefined,
    })
    const readError = async (response: RawResponse): Promise<void> => {
      if (response.statusCode >= 300) await this.#readError(response, signal)
    }
    command.middlewareStack.add(atTheWire(readError), AT_THE_WIRE)
    const got = await this.#unless(416, client => client.send(command, signal && { abortSignal: signal }))
    return got && this.#answerOf(got, signal)
  }

  #answerOf(
    { ETag, ContentRange, ContentLength, Body, $metadata }: GetObjectCommandOutput,
    signal: AbortSignal | undefined,
  ): RangeAnswer {
    const body = Body as Readable
    // Without a listener, a broken connection would end the process.
    body.on('error', () => {})
    const status = $metadata.httpStatusCode ?? 200
    // Every object has an ETag. An answer without one is a page of some server in between, even with status 200.
    if (!ETag) {
      body.destroy()
      throw new S3Failure(`expected an object with its ETag, got ${status} without`, { code: 'NoETag' })
    }
    const [, start, total] = (status === 206 && /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(ContentRange ?? '')) || []
    return {
      validator: ETag,
      byteLength: start === undefined ? (ContentLength ?? null) : total === '*' ? null : Number(total),
      startByte: Number(start ?? 0),
      read: take => readBody(body, this.#pace, signal, take),
      cancel: () => body.readableEnded || body.destroy(),
    }
  }

  /** The timeout of a request with a body: until its answer, and so including the upload. */
  timeoutFor(body: Uint8Array): { readonly requestTimeout: number } {
    const { requestTimeoutMs = S3_DEFAULTS.requestTimeoutMs } = this.#options
    return { requestTimeout: requestTimeoutMs + body.length / SLOWEST_BYTES_PER_MS }
  }

  /** Reads the body of an error, since the SDK would wait for its end without limit. */
  async #readError(response: RawResponse, signal: AbortSignal | undefined): Promise<void> {
    response.body = await readStart(response.body as Readable, MAX_ERROR_BYTES, this.#pace, signal)
  }

  /**
   * Sends a request that writes an object.
   * @param isNew true if it has the condition that there is none
   * @returns false if that is not met
   */
  async write(isNew: boolean, request: (client: S3) => Promise<unknown>): Promise<boolean> {
    return (await this.#unless(isNew ? 412 : null, request)) !== null
  }

  /** Sends a request. @returns null if S3 answers with the expected status */
  async #unless<T>(status: number | null, request: (client: S3) => Promise<T>): Promise<T | null> {
    try {
      return await this.send(request)
    } catch (error) {
      if (error instanceof S3Failure && error.status === status) return null
      throw error
    }
  }

  /** Sends a request. If S3 names another region for the bucket, it is sent there, and so are all later ones. */
  async send<T>(request: (client: S3) => Promise<T>): Promise<T> {
    const client = this.#client
    try {
      return await request(await client)
    } catch (error) {
      if (error instanceof UsageError) throw error
      const failure = failureOf(error)
      const { region, status } = failure
      const isElsewhere = region !== undefined && (status === 301 || status === 307 || status === 400 || status === 403)
      if (!isElsewhere || region === (await (await client).config.region())) throw failure
      if (this.#client === client) this.#client = Promise.resolve(clientOf({ ...this.#options, region }))
      try {
        return await request(await this.#client)
      } catch (again) {
        throw failureOf(again)
      }
    }
  }
}

const connections = new Map<string, S3Connection>()

/** The connection with these options. Trials with the same options share its sockets. */
export function connect(options: S3Options): S3Connection {
  const key = JSON.stringify({ ...options, proxies: proxySettings() })
  let connection = connections.get(key)
  if (connection === undefined) {
    connection = new S3Connection(JSON.parse(key) as ConnectionOptions)
    connections.set(key, connection)
  }
  return connection
}

function utf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw badListing('UTF-8', 'other bytes')
  }
}
