/** A small S3 server that does what a real one can't be asked for: breaks off, stalls, lies, and delays. */

import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { S3Options } from '#dist/index.js'

/** What happens to a request; `serve` answers it as S3 would. */
export type Fault = (answer: ServerResponse, serve: () => void, request: IncomingMessage) => void

export interface SeenRequest {
  /** `list`, or the key. */
  readonly what: string
  readonly range: string | undefined
  readonly ifMatch: string | undefined
  readonly authorization: string | undefined
}

export class FaultyS3 {
  readonly objects = new Map<string, Buffer>()
  readonly seen: SeenRequest[] = []
  /** What `writeFaultOf` was asked for. */
  readonly written: string[] = []
  /** One for each GET of an object to come, in order; then all is well. */
  readonly faults: Fault[] = []
  readonly listFaults: Fault[] = []
  /** Keys of a page. */
  pageKeys = 1000
  /** Whether keys are spelled as `encoding-type` asks for it; there are servers that know nothing of it. */
  encodes = true
  /** Uploads in parts that are under way, by their ids: parts by their numbers. */
  readonly uploads = new Map<string, Map<number, Buffer>>()
  /** Whether it knows If-None-Match where an upload is completed; there are servers that don't. */
  completesIfNew = true
  /** Asked for requests that write: `PUT`, `POST uploads` (begins), `PUT part 1`, `POST upload` (completes), `DELETE upload`. */
  writeFaultOf: ((what: string) => Fault | undefined) | undefined
  /** Asked before these, for every request of either kind, with its number from 1 on. */
  faultOf: ((number: number) => Fault | undefined) | undefined
  /** Before every answer. */
  latencyMs = 0
  /** Of each connection. */
  bytesPerSecond = Number.POSITIVE_INFINITY
  /** Requests under way, and the most there were. */
  inFlight = 0
  mostInFlight = 0
  readonly #server: Server
  #sorted: string[] = []

  private constructor(server: Server) {
    this.#server = server
  }

  static async start(): Promise<FaultyS3> {
    const server = createServer({ keepAlive: true, noDelay: true })
    const faulty = new FaultyS3(server)
    server.on('request', (request, answer) => void faulty.#answer(request, answer))
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
    return faulty
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get options(): S3Options {
    return {
      endpoint: this.endpoint,
      region: 'us-east-1',
      forcePathStyle: true,
      credentials: { accessKeyId: 'key', secretAccessKey: 'secret' },
    }
  }

  /** Connections that are open. */
  connections(): Promise<number> {
    return new Promise(done => this.#server.getConnections((_, count) => done(count)))
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise(done => this.#server.close(done))
  }

  async #answer(request: IncomingMessage, answer: ServerResponse): Promise<void> {
    const url = new URL(request.url!, 'http://host')
    const [, bucket = '', ...rest] = url.pathname.split('/')
    const key = decodeURIComponent(rest.join('/'))
    const isList = url.searchParams.has('list-type')
    const { range, 'if-match': ifMatch, authorization } = request.headers
    this.seen.push({ what: isList ? 'list' : key, range, ifMatch, authorization })
    this.inFlight++
    this.mostInFlight = Math.max(this.mostInFlight, this.inFlight)
    answer.on('close', () => this.inFlight--)
    if (this.latencyMs > 0) await sleep(this.latencyMs)
    if (request.method !== 'GET') {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const part = url.searchParams.get('partNumber')
      const upload = url.searchParams.has('uploads') ? ' uploads' : url.searchParams.has('uploadId') ? ' upload' : ''
      const what = `${request.method}${part === null ? upload : ` part ${part}`}`
      this.written.push(what)
      const write = (): void => void this.#write(key, url.searchParams, request, Buffer.concat(chunks), answer)
      const fault = this.writeFaultOf?.(what)
      if (fault) fault(answer, write, request)
      else write()
      return
    }
    const fault = this.faultOf?.(this.seen.length) ?? (isList ? this.listFaults : this.faults).shift()
    const serve = (): void => {
      if (isList) this.#list(bucket, url.searchParams, answer)
      else this.#get(key, range, ifMatch, answer)
    }
    if (fault) fault(answer, serve, request)
    else serve()
  }

  #list(bucket: string, query: URLSearchParams, answer: ServerResponse): void {
    const prefix = query.get('prefix') ?? ''
    const token = query.get('continuation-token')
    const after = token ?? query.get('start-after') ?? ''
    const most = Math.min(this.pageKeys, Number(query.get('max-keys') ?? 1000))
    const isFlat = query.get('delimiter') === '/'
    // What was put since is sorted anew.
    if (this.#sorted.length !== this.objects.size) this.#sorted = [...this.objects.keys()].sort(byBytes)
    const keys: string[] = []
    const folders = new Set<string>()
    let isCut = false
    for (const key of this.#sorted) {
      if (!key.startsWith(prefix) || (after !== '' && byBytes(key, after) <= 0)) continue
      const folder = isFlat ? /^[^/]*\//.exec(key.slice(prefix.length))?.[0] : undefined
      if (folder !== undefined && `${prefix}${folder}` <= after) continue
      isCut = keys.length + folders.size >= most && !(folder !== undefined && folders.has(folder))
      if (isCut) break
      if (folder === undefined) keys.push(key)
      else folders.add(folder)
    }
    const isEncoded = this.encodes && query.get('encoding-type') === 'url'
    const spelled = (key: string): string => (isEncoded ? urlSpelled(key) : xmlSpelled(key))
    const next = [keys.at(-1) ?? '', `${prefix}${[...folders].at(-1) ?? ''}`].sort().at(-1)!
    const element = (name: string, value: string | number | boolean): string => `<${name}>${value}</${name}>`
    answer.setHeader('content-type', 'application/xml')
    answer.end(
      `<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${[
        element('Name', bucket),
        element('Prefix', spelled(prefix)),
        ...(token === null ? [] : [element('ContinuationToken', xmlSpelled(token))]),
        element('KeyCount', keys.length + folders.size),
        element('MaxKeys', most),
        ...(isFlat ? [element('Delimiter', '/')] : []),
        ...(isEncoded ? [element('EncodingType', 'url')] : []),
        element('IsTruncated', isCut),
        ...(isCut ? [element('NextContinuationToken', xmlSpelled(next))] : []),
        ...keys.map(key => {
          const body = this.objects.get(key)!
          const when = '2026-01-01T00:00:00.000Z'
          return `<Contents><Key>${spelled(key)}</Key><LastModified>${when}</LastModified><ETag>&quot;${etagOf(body)}&quot;</ETag><Size>${body.length}</Size></Contents>`
        }),
        ...[...folders].map(name => element('CommonPrefixes', element('Prefix', spelled(`${prefix}${name}`)))),
      ].join('')}</ListBucketResult>`,
    )
  }

  #write(key: string, query: URLSearchParams, request: IncomingMessage, body: Buffer, answer: ServerResponse): unknown {
    const [id, number] = [query.get('uploadId'), query.get('partNumber')]
    const isConditional = request.headers['if-none-match'] === '*' && (id === null || this.completesIfNew)
    const xml = (name: string, content: string): unknown => {
      answer.setHeader('content-type', 'application/xml')
      return answer.end(`<${name}>${content}</${name}>`)
    }
    const parts = this.uploads.get(id ?? '')
    if (query.has('uploads')) {
      const fresh = `upload-${this.written.length}`
      this.uploads.set(fresh, new Map())
      return xml('InitiateMultipartUploadResult', `<Key>${xmlSpelled(key)}</Key><UploadId>${fresh}</UploadId>`)
    }
    if (id !== null && parts === undefined) return failWith(404, 'NoSuchUpload')(answer)
    if (request.method === 'DELETE') {
      this.uploads.delete(id!)
      answer.statusCode = 204
      return answer.end()
    }
    if (parts !== undefined && number !== null) {
      parts.set(Number(number), body)
      answer.setHeader('etag', `"${etagOf(body)}"`)
      return answer.end()
    }
    if (isConditional && this.objects.has(key)) return failWith(412, 'PreconditionFailed')(answer)
    if (parts === undefined) {
      this.objects.set(key, body)
      answer.setHeader('etag', `"${etagOf(body)}"`)
      return answer.end()
    }
    const named = [...body.toString().matchAll(/<PartNumber>(\d+)<\/PartNumber>/g)].map(([, part]) => Number(part))
    this.objects.set(key, Buffer.concat(named.map(part => parts.get(part)!)))
    this.uploads.delete(id!)
    return xml('CompleteMultipartUploadResult', `<Key>${xmlSpelled(key)}</Key>`)
  }

  #get(key: string, range: string | undefined, ifMatch: string | undefined, answer: ServerResponse): void {
    const body = this.objects.get(key)
    const etag = body && `"${etagOf(body)}"`
    const [, from = '0', last = ''] = /^bytes=(\d+)-(\d*)$/.exec(range ?? '') ?? []
    const start = Number(from)
    if (body === undefined || etag === undefined) {
      failWith(404, 'NoSuchKey')(answer)
      return
    }
    if (ifMatch !== undefined && ifMatch !== etag) {
      failWith(412, 'PreconditionFailed')(answer)
      return
    }
    if (range !== undefined && start >= body.length) {
      failWith(416, 'InvalidRange')(answer)
      return
    }
    const end = last === '' ? body.length : Math.min(body.length, Number(last) + 1)
    const wanted = body.subarray(start, end)
    answer.statusCode = range === undefined ? 200 : 206
    answer.setHeader('etag', etag)
    if (range !== undefined) answer.setHeader('content-range', `bytes ${start}-${end - 1}/${body.length}`)
    if (!answer.hasHeader('content-length')) answer.setHeader('content-length', wanted.length)
    void this.#send(wanted, answer)
  }

  async #send(bytes: Buffer, answer: ServerResponse): Promise<void> {
    if (this.bytesPerSecond === Number.POSITIVE_INFINITY) {
      answer.end(bytes)
      return
    }
    const step = Math.ceil(this.bytesPerSecond / 100)
    for (let at = 0; at < bytes.length && !answer.destroyed; at += step) {
      answer.write(bytes.subarray(at, at + step))
      await sleep(10)
    }
    answer.end()
  }
}

const etags = new WeakMap<Buffer, string>()

export function etagOf(body: Buffer): string {
  const known = etags.get(body) ?? createHash('md5').update(body).digest('hex')
  etags.set(body, known)
  return known
}

function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

/** As AWS does with `encoding-type=url`. */
function urlSpelled(key: string): string {
  return encodeURIComponent(key).replaceAll('%20', '+').replaceAll('%2F', '/')
}

function xmlSpelled(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}

/** A listing's page as S3 would give it, written over. */
export function rewritten(change: (xml: string) => string): Fault {
  return (answer, serve) => {
    const { end } = answer
    answer.end = ((xml: string) => end.call(answer, change(xml), 'utf8')) as typeof answer.end
    serve()
  }
}

/** The answer as S3 would give it, but for some bytes of its body: then `then` happens to the connection. */
function cut(byteLength: number, then: (answer: ServerResponse) => void): Fault {
  return (answer, serve) => {
    answer.end = ((body: Buffer | string) => {
      answer.write(Buffer.from(body as string).subarray(0, byteLength), () => then(answer))
      return answer
    }) as typeof answer.end
    serve()
  }
}

export const resetAfter = (byteLength: number): Fault => cut(byteLength, answer => answer.socket?.resetAndDestroy())
export const stallAfter = (byteLength: number): Fault => cut(byteLength, () => {})
/** A byte every so often. */
export const trickle = (everyMs: number): Fault => {
  return (answer, serve) => {
    const { end } = answer
    answer.end = ((body: string | Buffer) => {
      const bytes = Buffer.from(body)
      let at = 0
      const drip = setInterval(() => {
        if (answer.destroyed) clearInterval(drip)
        else if (at < bytes.length) answer.write(bytes.subarray(at, ++at))
        else end.call(answer, '', 'utf8')
      }, everyMs)
      return answer
    }) as typeof answer.end
    serve()
  }
}
/** Never a word. */
export const hang: Fault = () => {}
/** Says that the body is longer than it is. */
export const longLength: Fault = (answer, serve) => {
  answer.setHeader('content-length', 1 << 20)
  answer.strictContentLength = false
  cut(1 << 30, answer => answer.socket?.end())(answer, serve, undefined as never)
}
/** Says that the body is shorter, and sends no more than that. */
export const shortLength = (byteLength: number): Fault => {
  return (answer, serve) => {
    answer.setHeader('content-length', byteLength)
    const { end } = answer
    answer.end = ((bytes: Buffer) => end.call(answer, bytes.subarray(0, byteLength), 'utf8')) as typeof answer.end
    serve()
  }
}
export const html = (status: number): Fault => {
  return answer => {
    answer.writeHead(status, { 'content-type': 'text/html' })
    answer.end('<html><body><h1>Bad Gateway</h1></body></html>')
  }
}
/** Done, and then no answer. */
export const answerLost: Fault = (answer, serve) => {
  answer.end = (() => answer.socket?.resetAndDestroy()) as never
  serve()
}

export function failWith(
  status: number,
  code: string,
  headers: Readonly<Record<string, string>> = {},
  message = `it was ${code}`,
): (answer: ServerResponse) => void {
  return answer => {
    answer.writeHead(status, { 'content-type': 'application/xml', ...headers })
    answer.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`)
  }
}
