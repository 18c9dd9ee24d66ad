/** A static server with Range requests, as any is, and faults on demand. */

import { createReadStream, existsSync, readdirSync, statSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import { text } from 'node:stream/consumers'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.wasm': 'application/wasm',
}

/** What is wrong with the answers to requests for some files. */
export interface Fault {
  readonly on: RegExp
  /** Requests that are answered as they should be, before. */
  readonly after?: number
  /** Ignores Range. */
  readonly whole?: boolean
  /** Instead of an answer. */
  readonly status?: number
  readonly etag?: string
  /** So many answers are faulty. Default: all. */
  readonly times?: number
  /** Ends the connection in the middle of the answer. */
  readonly breaksOff?: boolean
}

export class StaticServer {
  readonly #server = createServer((request, response) => this.#answer(request, response))
  readonly #roots = new Map<string, string>()
  fault: Fault | null = null
  /** True to hand out `/` in place of `/index.html`, to which it redirects, as some hosts do. */
  hasCleanUrls = false
  /** The Content-Security-Policy of the page. */
  policy: string | null = null
  #matched = 0
  /** A trial that `bucket` lists. */
  s3: { readonly directory: string; readonly pageLength: number } | null = null
  /** Requests since the server was started, and those under way. */
  requests = 0
  underWay = 0
  #hear: (report: string) => void = () => {}

  /** @param roots directories by the first part of the path */
  static async start(roots: Readonly<Record<string, string>>): Promise<StaticServer> {
    const server = new StaticServer()
    for (const [name, directory] of Object.entries(roots)) server.serve(name, directory)
    await new Promise<void>(resolve => server.#server.listen(0, '127.0.0.1', resolve))
    return server
  }

  /** `localhost` is a secure context, so that a page has storage of its own. */
  get url(): string {
    return `http://localhost:${(this.#server.address() as AddressInfo).port}/`
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise(resolve => this.#server.close(resolve))
  }

  /** @param name the first part of the path */
  serve(name: string, directory: string): void {
    this.#roots.set(name, directory)
  }

  /** What a page posts next. */
  report(): Promise<string> {
    return new Promise(resolve => {
      this.#hear = resolve
    })
  }

  /** From now on. */
  breakWith(fault: Fault | null): void {
    this.fault = fault
    this.#matched = 0
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    this.requests++
    this.underWay++
    response.on('close', () => {
      this.underWay--
    })
    const path = decodeURIComponent(new URL(request.url!, this.url).pathname)
    const [, root = '', inside = ''] = /^\/([^/]*)\/?(.*)$/s.exec(path)!
    const directory = this.#roots.get(root)
    if (path === '/') {
      response.setHeader('content-type', 'text/html')
      if (this.policy !== null) response.setHeader('content-security-policy', this.policy)
      response.end(
        '<!doctype html><input type="file" webkitdirectory><script type="module" src="page/page.js"></script>',
      )
      return
    }
    if (request.method === 'POST') {
      text(request).then(report => this.#hear(report))
      response.end()
      return
    }
    if (root === 'bucket') {
      this.#answerListing(new URL(request.url!, this.url).searchParams, response)
      return
    }
    if (directory === undefined || inside.split('/').includes('..')) return void response.writeHead(404).end()
    if (inside.endsWith('listing.txt') && this.fault?.on.test(path) !== true) {
      // As `find . -type f` writes it.
      const folder = join(directory, inside, '..')
      if (!existsSync(folder)) return void response.writeHead(404).end()
      response.end(
        `${filesIn(folder)
          .map(path => `./${path}\n`)
          .join('')}`,
      )
      return
    }
    if (this.hasCleanUrls && inside === 'index.html') return void response.writeHead(308, { location: './' }).end()
    const file = this.hasCleanUrls && inside === '' ? 'index.html' : inside
    this.#answerFile(join(directory, file), path, request, response)
  }

  /** As S3 answers ListObjectsV2. */
  #answerListing(query: URLSearchParams, response: ServerResponse): void {
    const { s3 } = this
    if (s3 === null) return void response.writeHead(404).end()
    const prefix = query.get('prefix') ?? ''
    const paths = filesIn(s3.directory).sort()
    const first = Number(query.get('continuation-token') ?? 0)
    const end = first + s3.pageLength
    const contents = paths
      .slice(first, end)
      .map(path => `<Contents><Key>${prefix}${path}</Key><Size>1</Size><ETag>"1"</ETag></Contents>`)
    const more = end < paths.length
    const token = more ? `<NextContinuationToken>${end}</NextContinuationToken>` : ''
    response.setHeader('content-type', 'application/xml')
    response.end(
      `<?xml version="1.0"?><ListBucketResult><Name>trials</Name><Prefix>${prefix}</Prefix>` +
        `<IsTruncated>${more}</IsTruncated>${token}${contents.join('')}</ListBucketResult>`,
    )
  }

  #faultOf(path: string): Fault | null {
    if (this.fault === null || !this.fault.on.test(path)) return null
    const { after = 0, times = Number.POSITIVE_INFINITY } = this.fault
    const number = this.#matched++
    return number >= after && number < after + times ? this.fault : null
  }

  #answerFile(file: string, path: string, request: IncomingMessage, response: ServerResponse): void {
    const fault = this.#faultOf(path)
    const stat = statSync(file, { throwIfNoEntry: false })
    if (fault?.status !== undefined) return void response.writeHead(fault.status).end()
    if (!stat?.isFile()) return void response.writeHead(404).end()
    response.setHeader('content-type', TYPES[extname(file)] ?? 'application/octet-stream')
    response.setHeader('etag', fault?.etag ?? `"${stat.size}-${stat.mtimeMs}"`)
    response.setHeader('accept-ranges', 'bytes')
    const range = fault?.whole ? null : /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '')
    const start = Number(range?.[1] ?? 0)
    const last = Math.min(range?.[2] ? Number(range[2]) : stat.size - 1, stat.size - 1)
    if (range && start >= stat.size) {
      return void response.writeHead(416, { 'content-range': `bytes */${stat.size}` }).end()
    }
    if (range) response.setHeader('content-range', `bytes ${start}-${last}/${stat.size}`)
    response.writeHead(range ? 206 : 200, { 'content-length': last + 1 - start })
    if (last < start) return void response.end()
    const stream = createReadStream(file, {
      start,
      end: fault?.breaksOff ? start + Math.floor((last - start) / 2) : last,
    })
    response.on('close', () => stream.destroy())
    if (fault?.breaksOff) stream.on('end', () => response.destroy())
    stream.pipe(response, { end: !fault?.breaksOff })
  }
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length).replace(/^\//, ''))
}
