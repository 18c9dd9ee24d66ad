/** A proxy as companies have them: tunnels for `https://`, whole URLs for `http://`, and what goes wrong with either. */

import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import type { Duplex } from 'node:stream'

export class TestProxy {
  /** Hosts that tunnels were asked for to, and URLs that were asked for, in order. */
  readonly tunnels: string[] = []
  readonly urls: string[] = []
  /** Who may use it, as `name:password`; undefined: everybody. */
  user: string | undefined
  /** What all are answered instead; `hang`: nothing. */
  refusal: number | 'hang' | undefined
  /** Where tunnels lead, whatever was asked for: names need not be known. */
  leadsTo: number | undefined
  readonly #server: Server
  readonly #sockets = new Set<Duplex>()

  private constructor(server: Server) {
    this.#server = server
  }

  static async start(): Promise<TestProxy> {
    const server = createServer()
    const proxy = new TestProxy(server)
    server.on('connection', socket => proxy.#hold(socket))
    server.on('connect', (asked, socket) => proxy.#tunnel(asked, socket))
    server.on('request', (asked, answer) => proxy.#forward(asked, answer))
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
    return proxy
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  /** Connections that are open, on either side. */
  get connections(): number {
    return this.#sockets.size
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise(done => this.#server.close(done))
  }

  #hold(socket: Duplex): void {
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket))
    socket.on('error', () => {})
  }

  /** Null: it may go on. */
  #statusFor(asked: IncomingMessage): number | 'hang' | null {
    if (this.refusal !== undefined) return this.refusal
    if (this.user === undefined) return null
    const wanted = `Basic ${Buffer.from(this.user).toString('base64')}`
    return asked.headers['proxy-authorization'] === wanted ? null : 407
  }

  #tunnel(asked: IncomingMessage, socket: Duplex): void {
    this.tunnels.push(asked.url!)
    const status = this.#statusFor(asked)
    if (status === 'hang') {
      // It sees who leaves only while it reads.
      socket.on('end', () => socket.destroy()).resume()
      return
    }
    if (status !== null) {
      socket.end(`HTTP/1.1 ${status} No\r\ncontent-type: text/html\r\ncontent-length: 9\r\n\r\n<b>No</b>`)
      return
    }
    const { hostname, port } = new URL(`http://${asked.url}`)
    const there = connect(this.leadsTo ?? Number(port || 80), this.leadsTo ? '127.0.0.1' : hostname, () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      socket.pipe(there).pipe(socket)
    })
    this.#hold(there)
    there.on('close', () => socket.destroy())
    socket.on('close', () => there.destroy())
  }

  #forward(asked: IncomingMessage, answer: ServerResponse): void {
    this.urls.push(asked.url!)
    const status = this.#statusFor(asked)
    if (status === 'hang') return
    if (status !== null) {
      answer.writeHead(status, { 'content-type': 'text/html' }).end('<b>No</b>')
      return
    }
    const { 'proxy-authorization': _, ...headers } = asked.headers
    const onwards = request(asked.url!, { method: asked.method!, headers }, answered => {
      answer.writeHead(answered.statusCode!, answered.headers)
      answered.pipe(answer)
    })
    onwards.on('error', () => answer.destroy())
    asked.pipe(onwards)
  }
}
