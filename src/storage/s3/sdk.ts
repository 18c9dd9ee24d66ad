/**
 * S3 as the SDK speaks it, one call a request: the only importer of the SDK, loaded when the first request is made.
 * Attempts are counted and repeated elsewhere (s3-requests.ts), where it is known what has come already.
 */

import type { Readable } from 'node:stream'
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  type GetObjectCommandOutput,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { UsageError } from '../../base/errors.js'
import type { RangeAnswer } from '../range.js'
import { type Pace, paceOf, readBody, readStart } from './body.js'
import { type ConnectionOptions, clientOf, withRegion } from './client.js'
import { failureOf, S3Failure } from './errors.js'
import { badListing, type ListPage, type ListQuery, parseListing } from './listing.js'
import { proxySettings } from './proxy.js'
import { S3_DEFAULTS, type S3Options } from './spec.js'

/** A page holds a thousand keys of at most 1 KiB, each of its bytes spelled with three. */
const MAX_PAGE_BYTES = 16 << 20
const MAX_ERROR_BYTES = 1 << 20
/** The slowest rate of an upload that is waited for: 1 MB/s. */
const SLOWEST_BYTES_PER_MS = 1000
const EMPTY_PAGE = Buffer.from('<ListBucketResult/>')

/** An answer before the SDK has looked at it. */
interface RawResponse {
  readonly statusCode: number
  body: unknown
}

/** The innermost place of the SDK's middleware. */
const AT_THE_WIRE = { step: 'deserialize', priority: 'low', name: 'trialscanBody' } as const

/** Middleware that sees answers as they came. */
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
  #client: Promise<S3Client>

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.#pace = paceOf(options)
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
    await this.#send(client => client.send(command, signal && { abortSignal: signal }))
    return page!
  }

  /** A range of an object, or all of it; null: it ends before. The body is to be read or given up. */
  async get(
    bucket: string,
    key: string,
    { range, ifMatch }: { readonly range: string | undefined; readonly ifMatch: string | null },
    signal: AbortSignal | undefined,
  ): Promise<RangeAnswer | null> {
    const command = new GetObjectCommand({
      Bucket: bucket,
      Key: key,
      ...(range !== undefined && { Range: range }),
      ...(ifMatch !== null && { IfMatch: ifMatch }),
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
    // Until somebody listens, a broken connection must not end the process.
    body.on('error', () => {})
    const status = $metadata.httpStatusCode ?? 200
    // Every object has one. What comes without is a page of whoever stands between, be it with status 200.
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

  /** Writes an object, all at once. @param isNew one that is there stays as it is @returns whether it was written */
  async put(
    bucket: string,
    key: string,
    bytes: Uint8Array,
    isNew: boolean,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    const command = new PutObjectCommand({ Bucket: bucket, Key: key, Body: bytes, ...(isNew && { IfNoneMatch: '*' }) })
    const requestTimeout = this.#timeoutFor(bytes)
    const options = { requestTimeout, ...(signal && { abortSignal: signal }) }
    return (await this.#unless(isNew ? 412 : null, client => client.send(command, options))) !== null
  }

  /** Begins an object that comes in parts. @returns what the upload is called */
  async beginUpload(bucket: string, key: string): Promise<string> {
    const command = new CreateMultipartUploadCommand({ Bucket: bucket, Key: key })
    const { UploadId } = await this.#send(client => client.send(command))
    if (!UploadId) throw new S3Failure('expected an upload with its id, got none', { code: 'NoUploadId' })
    return UploadId
  }

  /** @param number from 1 on @returns its ETag */
  async putPart(bucket: string, key: string, upload: string, number: number, bytes: Uint8Array): Promise<string> {
    const part = { Bucket: bucket, Key: key, UploadId: upload, PartNumber: number, Body: bytes }
    const requestTimeout = this.#timeoutFor(bytes)
    const { ETag } = await this.#send(client => client.send(new UploadPartCommand(part), { requestTimeout }))
    if (!ETag) throw new S3Failure('expected a part with its ETag, got none', { code: 'NoETag' })
    return ETag
  }

  /** Makes an object of parts. @param isNew one that is there stays as it is @returns whether it was made */
  async completeUpload(
    bucket: string,
    key: string,
    upload: string,
    etags: readonly string[],
    isNew: boolean,
  ): Promise<boolean> {
    const Parts = etags.map((ETag, i) => ({ ETag, PartNumber: i + 1 }))
    const object = { Bucket: bucket, Key: key, UploadId: upload, MultipartUpload: { Parts } }
    const command = new CompleteMultipartUploadCommand({ ...object, ...(isNew && { IfNoneMatch: '*' }) })
    return (await this.#unless(isNew ? 412 : null, client => client.send(command))) !== null
  }

  async abortUpload(bucket: string, key: string, upload: string): Promise<void> {
    const command = new AbortMultipartUploadCommand({ Bucket: bucket, Key: key, UploadId: upload })
    await this.#send(client => client.send(command))
  }

  /** The time of a request is until its answer, and so with all that is sent. */
  #timeoutFor(bytes: Uint8Array): number {
    const { requestTimeoutMs = S3_DEFAULTS.requestTimeoutMs } = this.#options
    return requestTimeoutMs + bytes.length / SLOWEST_BYTES_PER_MS
  }

  /** Reads the body of an error. The SDK would wait for its end without limit. */
  async #readError(response: RawResponse, signal: AbortSignal | undefined): Promise<void> {
    response.body = await readStart(response.body as Readable, MAX_ERROR_BYTES, this.#pace, signal)
  }

  /** @returns null if S3 answers with a status that is expected */
  async #unless<T>(status: number | null, request: (client: S3Client) => Promise<T>): Promise<T | null> {
    try {
      return await this.#send(request)
    } catch (error) {
      if (error instanceof S3Failure && error.status === status) return null
      throw error
    }
  }

  /** A bucket that is elsewhere tells where: asked again there, once and for all. */
  async #send<T>(request: (client: S3Client) => Promise<T>): Promise<T> {
    const asked = this.#client
    try {
      return await request(await asked)
    } catch (error) {
      if (error instanceof UsageError) throw error
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

/** The options that need a connection of their own. */
const CONNECTION_OPTIONS = [
  'endpoint',
  'region',
  'forcePathStyle',
  'credentials',
  'anonymous',
  'maxSockets',
  'requestTimeoutMs',
  'idleTimeoutMs',
  'minBytesPerSecond',
  'rateTimeoutMs',
] as const

/** The connection with these options: trials that share them share its sockets. */
export function connect(options: S3Options): S3Connection {
  const known = Object.fromEntries(CONNECTION_OPTIONS.map(name => [name, options[name]]))
  const key = JSON.stringify({ ...known, proxies: proxySettings() })
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
