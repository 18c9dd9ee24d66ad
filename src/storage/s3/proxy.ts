/**
 * The proxies that the environment names, and requests through them. Requests for `http://` are handed to the proxy;
 * those for `https://` go through a tunnel (CONNECT), so that the proxy sees only a host and a port.
 */

import { type ClientRequestArgs, request as httpRequest } from 'node:http'
import { Agent, type AgentOptions, request as httpsRequest, type RequestOptions } from 'node:https'
import { BlockList, isIP } from 'node:net'
import { env } from 'node:process'
import { Duplex } from 'node:stream'
import { UsageError } from '../../base/errors.js'
import { S3Failure } from './errors.js'

/** The proxy variables of the environment. */
export interface ProxySettings {
  readonly http?: string | undefined
  readonly https?: string | undefined
  readonly all?: string | undefined
  readonly none?: string | undefined
}

/** The destination of a request. */
interface Destination {
  readonly protocol: string
  readonly hostname: string
  readonly port?: number | undefined
}

/** The used part of the SDK's request. */
interface Sendable extends Destination {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

interface Proxy {
  readonly url: URL
  /** The URL without name and password, for messages. */
  readonly name: string
  /** The environment variable that names the proxy. */
  readonly variable: string
  readonly headers: Readonly<Record<string, string>>
}

/**
 * Reads the variables as curl does, lower case first. HTTP_PROXY counts as well, as in Go, except in a CGI program,
 * where it is a header of the client.
 */
export function proxySettings(variables: Readonly<Record<string, string | undefined>> = env): ProxySettings {
  const isCgi = variables.REQUEST_METHOD !== undefined
  return {
    http: variables.http_proxy || (isCgi ? undefined : variables.HTTP_PROXY) || undefined,
    https: variables.https_proxy || variables.HTTPS_PROXY || undefined,
    all: variables.all_proxy || variables.ALL_PROXY || undefined,
    none: variables.no_proxy || variables.NO_PROXY || undefined,
  }
}

/**
 * The proxy to a destination; null if there is none.
 * @throws UsageError if the variable names no HTTP proxy
 */
export function proxyTo({ protocol, hostname, port }: Destination, settings: ProxySettings): Proxy | null {
  const isSecure = protocol === 'https:'
  const schemeProxy = isSecure ? settings.https : settings.http
  const text = schemeProxy ?? settings.all
  if (text === undefined) return null
  const host = bareHost(hostname)
  const number = port ?? defaultPort(protocol)
  if (isExempt(host, number, settings.none ?? '')) return null
  const proxy = parseProxy(text, schemeProxy === undefined ? 'ALL_PROXY' : isSecure ? 'HTTPS_PROXY' : 'HTTP_PROXY')
  const isItself = bareHost(proxy.url.hostname) === host && portOf(proxy.url) === number
  return isItself ? null : proxy
}

function parseProxy(text: string, variable: string): Proxy {
  let url: URL | null
  try {
    url = new URL(text.includes('://') ? text : `http://${text}`)
  } catch {
    url = null
  }
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    // Of what can't be taken apart, it isn't known which part is the password.
    const got = url === null ? 'something else' : `${url.protocol}//${url.host}`
    throw new UsageError(`expected ${variable} to be the URL of an HTTP proxy (http://host:port), got ${got}`)
  }
  const { username, password, protocol, host } = url
  const isSigned = username !== '' || password !== ''
  const user = `${decoded(username)}:${decoded(password)}`
  return {
    url,
    name: `${protocol}//${host}`,
    variable,
    headers: isSigned ? { 'proxy-authorization': `Basic ${Buffer.from(user).toString('base64')}` } : {},
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** True if NO_PROXY lists a host: names with their subdomains, addresses and networks, each with or without a port. */
function isExempt(host: string, port: number, list: string): boolean {
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .some(entry => entry === '*' || (entry !== '' && matchesEntry(entry, host, port)))
}

function matchesEntry(entry: string, host: string, port: number): boolean {
  const [, network, bits] = /^\[?([^\]/]+)\]?\/(\d+)$/.exec(entry) ?? []
  if (network !== undefined) return isInNetwork(network, Number(bits), host)
  const [, ipv6, ipv6Port] = /^\[(.+)\](?::(\d+))?$/.exec(entry) ?? []
  const [, name, namePort] = isIP(entry) ? ['', entry] : (/^(.+?)(?::(\d+))?$/.exec(entry) ?? [])
  const wantedPort = ipv6 === undefined ? namePort : ipv6Port
  if (wantedPort !== undefined && Number(wantedPort) !== port) return false
  const wanted = ipv6 ?? name ?? ''
  if (isIP(wanted)) return isInNetwork(wanted, isIP(wanted) === 4 ? 32 : 128, host)
  const domain = bareHost(wanted.replace(/^\*?\./, ''))
  return host === domain || (isIP(host) === 0 && host.endsWith(`.${domain}`))
}

/** True if an address lies in a network. Names are not resolved, so a name lies in none. */
function isInNetwork(network: string, bits: number, host: string): boolean {
  const kind = isIP(network)
  if (kind === 0 || isIP(host) === 0 || bits > (kind === 4 ? 32 : 128)) return false
  const networks = new BlockList()
  networks.addSubnet(network, bits, kind === 4 ? 'ipv4' : 'ipv6')
  return networks.check(host, isIP(host) === 4 ? 'ipv4' : 'ipv6')
}

/** The host without the brackets of IPv6 and without the dot at the end of a full name. */
function bareHost(host: string): string {
  return host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
}

function defaultPort(protocol: string): number {
  return protocol === 'https:' ? 443 : 80
}

function portOf({ protocol, port }: URL): number {
  return port === '' ? defaultPort(protocol) : Number(port)
}

// ------------------------------------------------------------------------------------------------------------------ https

/**
 * An agent for `https://` whose connections go through tunnels where there is a proxy. They are kept and reused like
 * any others.
 */
export class TunnelAgent extends Agent {
  readonly #settings: ProxySettings
  readonly #timeoutMs: number

  /** Opens tunnels through proxies. @param timeoutMs the time for a tunnel to open */
  constructor(settings: ProxySettings, timeoutMs: number, options: AgentOptions) {
    super(options)
    this.#settings = settings
    this.#timeoutMs = timeoutMs
  }

  override createConnection(
    options: RequestOptions,
    callback: (error: Error | null, stream: Duplex) => void = () => {},
  ): Duplex | null | undefined {
    const hostname = options.host ?? 'localhost'
    const port = Number(options.port ?? 443)
    const proxy = proxyTo({ protocol: 'https:', hostname, port }, this.#settings)
    if (proxy === null) return super.createConnection(options, callback)
    tunnel(proxy, hostname, port, this.#timeoutMs)
      .then(socket => {
        const inside = { ...options, socket }
        const stream = super.createConnection(inside, callback)
        if (stream) callback(null, stream)
      })
      // The stream is not used if there is an error.
      .catch(error => callback(error, new Duplex()))
    return undefined
  }
}

/** Opens a connection to a host through the proxy. */
function tunnel(proxy: Proxy, hostname: string, port: number, timeoutMs: number): Promise<Duplex> {
  const { url, headers } = proxy
  const host = `${isIP(hostname) === 6 ? `[${hostname}]` : hostname}:${port}`
  const options: ClientRequestArgs & RequestOptions = {
    method: 'CONNECT',
    host: bareHost(url.hostname),
    port: portOf(url),
    path: host,
    headers: { host, ...headers },
    agent: false,
  }
  return new Promise((resolve, reject) => {
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(options)
    const timer = setTimeout(() => {
      const message = `no tunnel to ${host} after ${timeoutMs} ms`
      request.destroy(new S3Failure(message, { code: 'TimeoutError', proxy: proxy.name }))
    }, timeoutMs)
    request.once('close', () => clearTimeout(timer))
    request.once('error', reject)
    request.once('response', answer => {
      answer.destroy()
      reject(refusalOf(proxy, answer.statusCode ?? 0))
    })
    request.once('connect', (answer, socket) => {
      clearTimeout(timer)
      const status = answer.statusCode ?? 0
      if (status >= 200 && status < 300) {
        resolve(socket)
        return
      }
      socket.destroy()
      reject(refusalOf(proxy, status))
    })
    request.end()
  })
}

function refusalOf({ name, variable, headers }: Proxy, status: number): S3Failure {
  const isLater = status >= 500 || status === 408 || status === 429
  const code = isLater ? 'ProxyUnavailable' : status === 407 ? 'ProxyUnauthorized' : 'ProxyRefused'
  const has = 'proxy-authorization' in headers ? `the name and the password in ${variable}` : 'none'
  // A status of the proxy must not be taken for S3's answer about the object.
  const message = status === 407 ? `expected a name and a password that the proxy knows, got ${has}` : `got ${status}`
  return new S3Failure(message, { code, proxy: name })
}

// ------------------------------------------------------------------------------------------------------------------- http

/** Sends requests through the proxies that the environment names. Errors name the proxy. */
export function throughProxies<Request extends Sendable, Options, Answer extends { response: { statusCode: number } }>(
  send: (request: Request, options: Options) => Promise<Answer>,
  settings: ProxySettings,
): (request: Request, options: Options) => Promise<Answer> {
  return async (request, options) => {
    const proxy = proxyTo(request, settings)
    if (proxy === null) return send(request, options)
    const isTunnel = request.protocol === 'https:'
    let answer: Answer
    try {
      answer = await send(isTunnel ? request : forwarded(request, proxy), options)
    } catch (error) {
      const { name, code, message } = error as NodeJS.ErrnoException
      if (name === 'AbortError' || error instanceof S3Failure) throw error
      throw new S3Failure(message.split('\n')[0]!, { code: code ?? name, proxy: proxy.name }, error)
    }
    if (!isTunnel && answer.response.statusCode === 407) throw refusalOf(proxy, 407)
    return answer
  }
}

/** The request to the proxy, with the whole URL. */
function forwarded<Request extends Sendable>(request: Request, { url, headers }: Proxy): Request {
  const { hostname, port, path } = request
  return Object.assign(Object.create(Object.getPrototypeOf(request)), request, {
    protocol: url.protocol,
    hostname: url.hostname,
    port: portOf(url),
    path: `http://${hostname}${port === undefined ? '' : `:${port}`}${path}`,
    headers: { ...request.headers, ...headers },
  })
}
