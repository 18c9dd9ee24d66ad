/** Proxies: which requests go through which, and what is said where one of them is in the way. */

import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createServer, type TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTrial, type S3Options, type TrialscanError } from '#dist/index.js'
import { type ProxySettings, proxySettings, proxyTo } from '#dist/storage/s3/proxy.js'
import { CLI } from '../cli/run.js'
import { FaultyS3 } from '../support/faulty-s3.js'
import { fixtureTrial } from '../support/golden.js'
import { whenLong } from '../support/part.js'
import { TestProxy } from '../support/proxy.js'

const CERTIFICATE = join(import.meta.dirname, '../support/localhost.pem')
const VARIABLES = ['http_proxy', 'https_proxy', 'all_proxy', 'no_proxy']

describe('which proxy', () => {
  function nameOf(url: string, settings: ProxySettings): string | null {
    const { protocol, hostname, port } = new URL(url)
    return proxyTo({ protocol, hostname, ...(port !== '' && { port: Number(port) }) }, settings)?.name ?? null
  }

  it.each<[string, string, ProxySettings, string | null]>([
    ['none', 'https://s3.test', {}, null],
    ['its own', 'https://s3.test', { https: 'http://a:1', http: 'http://b:1', all: 'http://c:1' }, 'http://a:1'],
    ['its own', 'http://s3.test', { https: 'http://a:1', http: 'http://b:1', all: 'http://c:1' }, 'http://b:1'],
    ['that of all', 'https://s3.test', { http: 'http://b:1', all: 'http://c:1' }, 'http://c:1'],
    ['not that of the others', 'https://s3.test', { http: 'http://b:1' }, null],
    ['one without a scheme', 'https://s3.test', { https: 'proxy.test:3128' }, 'http://proxy.test:3128'],
    ['one with a name and a password', 'https://s3.test', { https: 'http://me:s%40cret@a:1' }, 'http://a:1'],
    ['one that wants TLS', 'https://s3.test', { https: 'https://a' }, 'https://a'],
    ['none to itself', 'https://a', { https: 'https://a' }, null],
  ])('%s: %s', (_, url, settings, name) => {
    expect(nameOf(url, settings)).toBe(name)
  })

  it.each<[string, string, boolean]>([
    ['*', 'https://s3.test', true],
    ['', 'https://s3.test', false],
    [' , ', 'https://s3.test', false],
    ['s3.test', 'https://s3.test', true],
    ['S3.Test', 'https://s3.test', true],
    ['s3.test.', 'https://s3.test', true],
    ['s3.test', 'https://s3.test.', true],
    ['other.test,s3.test', 'https://s3.test', true],
    ['other.test s3.test', 'https://s3.test', true],
    ['test', 'https://bucket.s3.test', true],
    ['.test', 'https://bucket.s3.test', true],
    ['.s3.test', 'https://s3.test', true],
    ['*.s3.test', 'https://bucket.s3.test', true],
    ['3.test', 'https://s3.test', false],
    ['bucket.s3.test', 'https://s3.test', false],
    ['s3.test:443', 'https://s3.test', true],
    ['s3.test:80', 'https://s3.test', false],
    ['s3.test:7480', 'http://s3.test:7480', true],
    ['.test:7480', 'http://s3.test:7481', false],
    ['10.1.2.3', 'http://10.1.2.3:7480', true],
    ['10.1.2.3:7480', 'http://10.1.2.3:7480', true],
    ['10.1.2.3:80', 'http://10.1.2.3:7480', false],
    ['1.2.3', 'http://10.1.2.3', false],
    ['10.0.0.0/8', 'http://10.1.2.3', true],
    ['10.0.0.0/8', 'http://11.1.2.3', false],
    ['10.0.0.0/33', 'http://10.0.0.0', false],
    ['10.0.0.0/8', 'http://10.test', false],
    ['::1', 'http://[::1]:7480', true],
    ['[::1]', 'http://[::1]:7480', true],
    ['[::1]:7480', 'http://[::1]:7480', true],
    ['[::1]:80', 'http://[::1]:7480', false],
    ['0:0:0:0:0:0:0:1', 'http://[::1]', true],
    ['fd00::/8', 'http://[fd12::1]', true],
    ['fd00::/8', 'http://[fe80::1]', false],
    ['127.0.0.1', 'http://localhost', false],
  ])('NO_PROXY=%s, %s: %s', (none, url, isExempt) => {
    expect(nameOf(url, { all: 'http://proxy.test:3128', none }) === null).toBe(isExempt)
  })

  it('the environment’s, lower case first; of a CGI program’s, not the one that its client can set', () => {
    const upper = { HTTP_PROXY: 'a', HTTPS_PROXY: 'b', ALL_PROXY: 'c', NO_PROXY: 'd' }
    expect(proxySettings(upper)).toEqual({ http: 'a', https: 'b', all: 'c', none: 'd' })
    const lower = { http_proxy: 'e', https_proxy: 'f', all_proxy: 'g', no_proxy: 'h' }
    expect(proxySettings({ ...upper, ...lower })).toEqual({ http: 'e', https: 'f', all: 'g', none: 'h' })
    expect(proxySettings({ ...upper, https_proxy: '' }).https).toBe('b')
    expect(proxySettings({ ...upper, REQUEST_METHOD: 'GET' }).http).toBe(undefined)
    expect(proxySettings({})).toEqual({})
  })

  it.each([
    ['socks5://me:secret@proxy.test:1080', 'got socks5://proxy.test:1080'],
    ['http://me:sec ret@proxy:test', 'got something else'],
  ])('no other kind of proxy: %s', (all, got) => {
    const ask = (): unknown => nameOf('https://s3.test', { all })
    expect(ask).toThrow(`expected ALL_PROXY to be the URL of an HTTP proxy (http://host:port), ${got}`)
    expect(ask).toThrow(expect.objectContaining({ code: 'Usage' }))
  })
})

describe('through a proxy', () => {
  let server: FaultyS3
  let proxy: TestProxy
  let secure: ReturnType<typeof createServer>
  const sockets = new Set<TLSSocket>()

  beforeEach(async () => {
    for (const name of VARIABLES) for (const spelled of [name, name.toUpperCase()]) vi.stubEnv(spelled, '')
    server = await FaultyS3.start()
    proxy = await TestProxy.start()
    const { directory } = fixtureTrial('mlp-vanishing')
    for (const path of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
      if (statSync(join(directory, path)).isFile()) server.objects.set(`t/${path}`, readFileSync(join(directory, path)))
    }
    // The same server behind TLS.
    const pem = readFileSync(CERTIFICATE)
    secure = createServer({ key: pem, cert: pem }, socket => {
      const { port } = new URL(server.endpoint)
      const plain = connect(Number(port), '127.0.0.1')
      sockets.add(socket)
      socket.on('close', () => plain.destroy()).on('error', () => {})
      plain.on('close', () => socket.destroy()).on('error', () => {})
      socket.pipe(plain).pipe(socket)
    })
    await new Promise<void>(done => secure.listen(0, '127.0.0.1', done))
    proxy.leadsTo = (secure.address() as AddressInfo).port
  })

  afterEach(async () => {
    vi.unstubAllEnvs()
    for (const socket of sockets) socket.destroy()
    await Promise.all([server.stop(), proxy.stop(), new Promise(done => secure.close(done))])
  })

  async function rowsOf(s3: S3Options): Promise<number> {
    const trial = await createTrial('s3://bucket/t', { s3: { ...server.options, ...s3 } })
    let rows = 0
    for await (const { error } of trial.scan()) if (!error) rows++
    await trial.close()
    return rows
  }

  function failureOf(work: Promise<unknown>): Promise<TrialscanError> {
    return work.then(
      () => Promise.reject(new Error('it did not fail')),
      error => error as TrialscanError,
    )
  }

  it('go requests for http, whole URLs in them, and give the same rows', async () => {
    const rows = await rowsOf({})
    expect(proxy.urls).toEqual([])
    vi.stubEnv('http_proxy', proxy.url)
    const before = server.seen.length
    expect(await rowsOf({})).toBe(rows)
    expect(proxy.urls.length).toBe(server.seen.length - before)
    expect(proxy.urls.every(url => url.startsWith(`${server.endpoint}/bucket`))).toBe(true)
    expect(proxy.tunnels).toEqual([])
    vi.stubEnv('NO_PROXY', '127.0.0.0/8')
    const through = proxy.urls.length
    expect(await rowsOf({})).toBe(rows)
    expect(proxy.urls.length).toBe(through)
  })

  it('go requests for https, in tunnels that are used again', async () => {
    const rows = await rowsOf({})
    // The certificate is the other test’s.
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
    vi.stubEnv('HTTPS_PROXY', proxy.url.replace('//', '//me:s%40cret@'))
    proxy.user = 'me:s@cret'
    const before = server.seen.length
    expect(await rowsOf({ endpoint: 'https://s3.test:9000', maxSockets: 4 })).toBe(rows)
    expect(server.seen.length - before).toBeGreaterThan(10)
    expect(new Set(proxy.tunnels)).toEqual(new Set(['s3.test:9000']))
    expect(proxy.tunnels.length).toBeLessThanOrEqual(4)
    expect(proxy.urls).toEqual([])
  })

  it('goes a password as it is written, if it has a % that begins no byte', async () => {
    const address = proxy.url.replace('//', '//me:50%off@')
    proxy.user = 'me:50%off'
    const rows = await rowsOf({})
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
    vi.stubEnv('ALL_PROXY', address)
    expect(await rowsOf({})).toBe(rows)
    expect(await rowsOf({ endpoint: 'https://s3.test' })).toBe(rows)
    expect(proxy.urls.length).toBeGreaterThan(0)
    expect(proxy.tunnels.length).toBeGreaterThan(0)
  })

  it('go requests to an address of IPv6, in brackets', async () => {
    vi.stubEnv('HTTPS_PROXY', proxy.url)
    const error = await failureOf(rowsOf({ endpoint: 'https://[fd00::1]:9000', maxAttempts: 1 }))
    expect(new Set(proxy.tunnels)).toEqual(new Set(['[fd00::1]:9000']))
    // The certificate is another host’s, and the test’s own besides.
    expect(error.message).toContain('got DEPTH_ZERO_SELF_SIG')
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
    expect(await rowsOf({ endpoint: 'https://[fd00::1]:9000' })).toBeGreaterThan(0)
  })

  it.each(whenLong)('go those of the command line, which trusts what it was told to trust (%s)', async () => {
    const env = {
      ...process.env,
      HTTPS_PROXY: proxy.url,
      AWS_ACCESS_KEY_ID: 'key',
      AWS_SECRET_ACCESS_KEY: 'secret',
      AWS_REGION: 'us-east-1',
    }
    const endpoint = ['--s3-endpoint', 'https://s3.test', '--s3-force-path-style']
    const ls = (more: Readonly<Record<string, string>>) =>
      promisify(execFile)(process.execPath, [CLI, 'ls', 's3://bucket/t', '--format', 'json', ...endpoint], {
        env: { ...env, ...more },
      })
    const { stdout } = await ls({ NODE_EXTRA_CA_CERTS: CERTIFICATE })
    expect(JSON.parse(stdout)).toMatchObject({ problems: [] })
    expect(new Set(proxy.tunnels)).toEqual(new Set(['s3.test:443']))
    const { code, stderr } = await failureOf(ls({})).then(error => error as unknown as { code: number; stderr: string })
    expect([code, stderr]).toEqual([
      3,
      expect.stringContaining(`through the proxy ${proxy.url}, got DEPTH_ZERO_SELF_SIG`),
    ])
  })

  describe.each([
    ['a tunnel', 'https://s3.test'],
    ['a request', 'http://s3.test'],
  ])('%s', (kind, endpoint) => {
    const secret = 'hush-hush'
    const through = (address: string, more: S3Options = {}): Promise<TrialscanError> => {
      vi.stubEnv('ALL_PROXY', address.replace('//', `//me:${secret}@`))
      return failureOf(rowsOf({ endpoint, maxAttempts: 2, ...more })).then(error => {
        const told = JSON.stringify([error.message, error.fields, String(error.cause), error.stack])
        expect(told).not.toContain(secret)
        return error
      })
    }

    it('that needs another password', async () => {
      proxy.user = 'me:another'
      const error = await through(proxy.url)
      expect(error).toMatchObject({ code: 'Denied', retryable: false, fields: { attempts: 1 } })
      expect(error.message).toContain(
        `the proxy ${proxy.url} refuses: expected a name and a password that the proxy knows, got the name and the password in ALL_PROXY`,
      )
    })

    it('to a proxy that is not there', async () => {
      const { port } = proxy
      await proxy.stop()
      const error = await through(`http://127.0.0.1:${port}`)
      expect(error).toMatchObject({ code: 'Unavailable', retryable: true, fields: { attempts: 2 } })
      expect(error.message).toContain(`through the proxy http://127.0.0.1:${port}, got ECONNREFUSED`)
      proxy = await TestProxy.start()
    })

    it('to a proxy that says nothing, which costs no connection for good', async () => {
      proxy.refusal = 'hang'
      const error = await through(proxy.url, { requestTimeoutMs: 200, maxSockets: 2 })
      expect(error).toMatchObject({ code: 'Unavailable', retryable: true, fields: { attempts: 2 } })
      expect(error.message).toContain(
        `through the proxy ${proxy.url}, got ${kind === 'a tunnel' ? 'TimeoutError: Proxy timeout' : 'ETIMEDOUT'}`,
      )
      await vi.waitFor(() => expect(proxy.connections).toBe(0))
    })
  })

  it.each([
    [403, { code: 'Denied', retryable: false, fields: { attempts: 1 } }],
    // What a proxy does not find is not missing from the bucket.
    [404, { code: 'Denied', retryable: false, fields: { attempts: 1 } }],
    [502, { code: 'Unavailable', retryable: true, fields: { attempts: 2 } }],
    [503, { code: 'Unavailable', retryable: true, fields: { attempts: 2 } }],
  ])('a tunnel that is refused with %d', async (status, expected) => {
    vi.stubEnv('HTTPS_PROXY', proxy.url)
    proxy.refusal = status
    const error = await failureOf(rowsOf({ endpoint: 'https://s3.test', maxAttempts: 2 }))
    expect(error).toMatchObject(expected)
    expect(error.message).toContain(
      `the proxy ${proxy.url} makes no connection to S3: got ${status}: allow it there, or `,
    )
  })

  it('a kind of proxy that is not known is not passed by', async () => {
    vi.stubEnv('ALL_PROXY', 'socks5://127.0.0.1:1080')
    await expect(rowsOf({})).rejects.toMatchObject({ code: 'Usage' })
    expect(server.seen).toEqual([])
  })
})
