/**
 * The proxies that the environment names, and requests through them. Requests for `http://` are handed to the proxy;
 * those for `https://` go through a tunnel (CONNECT), so that the proxy sees only a host and a port.
 */

import { Agent, type AgentOptions, type RequestOptions } from 'node:https'
import { BlockList, isIP } from 'node:net'
import { env } from 'node:process'
import type { Duplex } from 'node:stream'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import { HttpsProxyAgent } from 'hpagent'
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

/** The SDK's sender of requests. */
type Send = (request: Sendable, options?: object) => Promise<{ readonly response: { readonly statusCode: number } }>

interface Proxy {
  readonly url: URL
  /** The URL without name and password, for messages. */
  readonly name: string
  /** The environment variable that names the proxy. */
  readonly variable: string
  /** The value of the header for the proxy; null if it wants no name and password. */
  readonly authorization: string | null
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
export function proxyTo(destination: Destination, settings: ProxySettings): Proxy | null {
  const isSecure = destination.protocol === 'https:'
  const schemeProxy = isSecure ? settings.https : settings.http
  const text = schemeProxy ?? settings.all
  if (text === undefined) return null
  const [host, port] = [bareHost(destination.hostname), portOf(destination)]
  if (isExempt(host, port, settings.none ?? '')) return null
  const proxy = parseProxy(text, schemeProxy === undefined ? 'ALL_PROXY' : isSecure ? 'HTTPS_PROXY' : 'HTTP_PROXY')
  const isItself = bareHost(proxy.url.hostname) === host && portOf(proxy.url) === port
  return isItself ? null : proxy
}

function parseProxy(text: string, variable: string): Proxy {
  // Of what can't be taken apart, it isn't known which part is the password.
  let got = 'something else'
  try {
    const url = new URL(text.includes('://') ? text : `http://${text}`)
    const { username, password, protocol, host } = url
    const user = [username, password].map(decoded).join(':')
    const authorization = user === ':' ? null : `Basic ${Buffer.from(user).toString('base64')}`
    got = `${protocol}//${host}`
    if (protocol === 'http:' || protocol === 'https:') return { url, name: got, variable, authorization }
  } catch {
    // Told below.
  }
  throw new UsageError(`expected ${variable} to be the URL of an HTTP proxy (http://host:port), got ${got}`)
}

/** A part of a URL; as it is written, if it has a `%` that begins no byte, as a password can. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** An entry of NO_PROXY: a name or an address, and the bits of a network or a port. */
const ENTRY = /^\[?([^/\]]+?)\]?(?:\/(\d+))?(?::(\d+))?$/

/** True if NO_PROXY lists a host: names with their subdomains, addresses and networks, each with or without a port. */
function isExempt(host: string, port: number, list: string): boolean {
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .some(entry => {
      const [, text = '', bits, only] = isIP(entry) ? ['', entry] : (ENTRY.exec(entry) ?? [])
      if (only !== undefined && Number(only) !== port) return false
      const name = bareHost(text.replace(/^\*?\./, ''))
      if (isIP(name)) return isInNetwork(name, bits, host)
      return entry === '*' || host === name || (isIP(host) === 0 && host.endsWith(`.${name}`))
    })
}

/** True if an address lies in a network. Names are not resolved, so a name lies in none. */
function isInNetwork(network: string, bits: string | undefined, host: string): boolean {
  const most = isIP(network) === 4 ? 32 : 128
  const length = Number(bits ?? most)
  if (isIP(host) === 0 || length > most) return false
  const networks = new BlockList()
  networks.addSubnet(network, length, isIP(network) === 4 ? 'ipv4' : 'ipv6')
  return networks.check(host, isIP(host) === 4 ? 'ipv4' : 'ipv6')
}

/** The host without the brackets of IPv6 and without the dot at the end of a full name. */
function bareHost(host: string): string {
  return host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
}

function portOf({
  protocol,
  port,
}: {
  readonly protocol: string
  readonly port?: string | number | undefined
}): number {
  return Number(port) || (protocol === 'https:' ? 443 : 80)
}

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
    callback?: (error: Error | null, stream: Duplex) => void,
  ): Duplex | null | undefined {
    const hostname = bareHost(options.host ?? 'localhost')
    const proxy = proxyTo({ protocol: 'https:', hostname, port: Number(options.port) }, this.#settings)
    if (proxy === null) return super.createConnection(options, callback)
    const { url, authorization } = proxy
    const tunnels = new HttpsProxyAgent({
      // The brackets of IPv6 would be taken for a part of the name.
      proxy: { protocol: url.protocol, hostname: bareHost(url.hostname), port: url.port } as URL,
      proxyRequestOptions: { headers: authorization === null ? {} : { 'proxy-authorization': authorization } },
      keepAlive: true,
    })
    const inside = {
      ...options,
      // The request for a tunnel needs them, but a certificate has none.
      host: isIP(hostname) === 6 ? `[${hostname}]` : hostname,
      checkServerIdentity: (name: string, certificate: PeerCertificate) =>
        checkServerIdentity(bareHost(name), certificate),
      timeout: this.#timeoutMs,
    }
    return tunnels.createConnection(inside, callback)
  }
}

/** A status of the proxy, which must not be taken for S3's answer about the object. */
function refusalOf({ name, variable, authorization }: Proxy, status: number): S3Failure {
  const isLater = status >= 500 || status === 408 || status === 429
  const code = isLater ? 'ProxyUnavailable' : status === 407 ? 'ProxyUnauthorized' : 'ProxyRefused'
  const has = authorization === null ? 'none' : `the name and the password in ${variable}`
  const message = status === 407 ? `expected a name and a password that the proxy knows, got ${has}` : `got ${status}`
  return new S3Failure(message, { code, proxy: name })
}

/** The message of a tunnel agent for an answer of the proxy. */
const REFUSAL = /^Bad response: (\d+)$/

/** Sends requests through the proxies that the environment names. Errors name the proxy. */
export function throughProxies(send: Send, settings: ProxySettings): Send {
  return async (request, options) => {
    const proxy = proxyTo(request, settings)
    if (proxy === null) return send(request, options)
    const isTunnel = request.protocol === 'https:'
    let answer: Awaited<ReturnType<Send>>
    try {
      answer = await send(isTunnel ? request : forwarded(request, proxy), options)
    } catch (error) {
      const {
        name,
        message,
        code = message === 'Proxy timeout' ? 'TimeoutError' : name,
      } = error as NodeJS.ErrnoException
      if (name === 'AbortError') throw error
      const status = REFUSAL.exec(message)?.[1]
      if (status !== undefined) throw refusalOf(proxy, Number(status))
      throw new S3Failure(message.split('\n')[0]!, { code, proxy: proxy.name }, error)
    }
    if (!isTunnel && answer.response.statusCode === 407) throw refusalOf(proxy, 407)
    return answer
  }
}

/** The request to the proxy, with the whole URL. */
function forwarded(request: Sendable, { url, authorization }: Proxy): Sendable {
  const { hostname, port, path } = request
  return Object.assign(Object.create(Object.getPrototypeOf(request)), request, {
    protocol: url.protocol,
    hostname: url.hostname,
    port: portOf(url),
    path: `http://${hostname}${port === undefined ? '' : `:${port}`}${path}`,
    headers: { ...request.headers, ...(authorization && { 'proxy-authorization': authorization }) },
  })
}
