/** Places of the work that a server does at once: every way in which an answer ends gives its place back. */

import { mkdirSync } from 'node:fs'
import { Agent, get, type IncomingMessage, request, type Server } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTrial } from '#dist/index.js'
import { listen, newApp } from '#dist/view/serve/http.js'
import { routes } from '#dist/view/serve/routes.js'
import { ServedTrial } from '#dist/view/serve/served-trial.js'
import { streamOf } from '#dist/view/serve/streams.js'
import { Turns } from '#dist/view/serve/turns.js'
import { ROOT } from '../support/golden.js'
import { LiveWriter } from '../support/live-writer.js'
import { rejectionOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'

const TRIAL = join(ROOT, 'fixtures/trials/mlp-vanishing')
const scratch = scratchDirectory('places')
const MOST = 2
let turns: Turns
let trial: ServedTrial
let server: Server
let url: string
let port: number
let closing: AbortController
let agent: Agent

async function serve(path: string, judges = false): Promise<void> {
  turns = new Turns(MOST)
  closing = new AbortController()
  agent = new Agent({ keepAlive: true })
  trial = new ServedTrial('one', path, {
    open: () => createTrial(path, { requireCollections: false, refresh: 'manual' }),
    pollMs: 100,
    judges,
  })
  const app = routes({
    trials: new Map([['one', trial]]),
    onAdded: () => () => {},
    token: undefined,
    cors: [],
    version: '1',
    app: false,
    turns,
    threads: undefined,
    memory: undefined,
    signal: closing.signal,
  })
  const listening = await listen(app, '127.0.0.1', 0)
  server = listening.server
  port = listening.port
  url = `http://127.0.0.1:${port}`
}

beforeEach(() => serve(TRIAL))
afterEach(async () => {
  closing.abort()
  agent.destroy()
  server.closeAllConnections()
  await new Promise<void>(resolve => server.close(() => resolve()))
  await trial.close()
})

/** Enough rows that no socket takes all of them at once. */
const LONG = '/api/trials/one/scan?reductions=histogram:2000'

const free = () => expect.poll(() => [turns.busy, turns.waiting], { timeout: 30_000 }).toEqual([0, 0])
const answer = (path: string, options: object = {}) =>
  new Promise<IncomingMessage>((resolve, reject) => {
    request(url + path, { agent, ...options }, resolve)
      .on('error', reject)
      .end()
  })
const text = async (response: IncomingMessage) => {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

describe('the place of an answer is free again', () => {
  it('after HEAD, of whatever there is', async () => {
    const paths = [
      ...['jsonl', 'json', 'csv', 'arrow', 'parquet'].map(format => `/api/trials/one/scan?format=${format}`),
      ...['json', 'npy'].map(format => `/api/trials/one/value?tensor=CrossEntropyLoss_output_0&format=${format}`),
      '/api/trials/one/overview',
      '/api/trials/one/view',
      '/api/trials/one/events',
      '/api/events',
    ]
    for (const path of paths) {
      for (let i = 0; i <= MOST; i++) {
        const response = await answer(path, { method: 'HEAD' })
        expect([response.statusCode, await text(response)], path).toEqual([200, ''])
      }
    }
    await free()
    const refused = await answer('/api/trials/one/scan?reductions=meen', { method: 'HEAD' })
    expect(refused.statusCode).toBe(400)
  })

  it('after an answer that is read to its end, and one that is known already', async () => {
    const first = await answer('/api/trials/one/scan')
    const tag = first.headers.etag!
    expect((await text(first)).trim().split('\n').length).toBe(206)
    await free()
    const again = await answer('/api/trials/one/scan', { headers: { 'if-none-match': tag } })
    expect(again.statusCode).toBe(304)
    await free()
  })

  it('after a request that is given up before, amid and behind its answer', async () => {
    for (let i = 0; i <= MOST; i++) {
      const before = get(url + LONG, { agent })
      before.on('error', () => {})
      before.once('socket', socket => socket.once('connect', () => before.destroy()))
    }
    await free()
    for (let i = 0; i <= MOST; i++) {
      const response = await answer(LONG)
      await new Promise(resolve => response.once('data', resolve))
      response.destroy()
    }
    await free()
    for (let i = 0; i <= MOST; i++) {
      const response = await answer('/api/trials/one/scan?tensor=loss')
      await text(response)
      response.destroy()
    }
    await free()
  })

  it('after a request that is given up while it waits for a place', async () => {
    const ends = await Promise.all(Array.from({ length: MOST }, () => turns.take(new AbortController().signal)))
    const waiting = get(url + LONG, { agent })
    waiting.on('error', () => {})
    await expect.poll(() => turns.waiting).toBe(1)
    waiting.destroy()
    await expect.poll(() => turns.waiting).toBe(0)
    for (const end of ends) end()
    await free()
  })

  it('after requests that came behind each other on one connection, which has been closed', async () => {
    const socket = connect(port, '127.0.0.1')
    for (let i = 0; i < 3; i++) socket.write(`GET ${LONG} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`)
    await new Promise(resolve => socket.once('data', resolve))
    await expect.poll(() => turns.busy).toBeGreaterThan(0)
    socket.destroy()
    await free()
  })

  it('after an error', async () => {
    expect((await answer('/api/trials/one/value?tensor=loss&step=7')).statusCode).toBe(404)
    expect((await answer('/api/trials/one/view/embedding?tensor=nosuch')).statusCode).toBe(404)
    await free()
  })

  it('after the server has closed', async () => {
    const response = await answer(LONG)
    await new Promise(resolve => response.once('data', resolve))
    response.on('error', () => {})
    closing.abort(new Error('closed'))
    response.destroy()
    await free()
  })
})

describe('a stream', () => {
  /** Serves chunks at `/`, and tells how they ended. */
  async function streamed(chunks: () => AsyncGenerator<Uint8Array>, stallMs?: number) {
    const gone = new AbortController()
    const state = { ends: 0, gone: gone.signal }
    const app = newApp()
    app.get('/', context => {
      const end = () => state.ends++
      return new Response(streamOf(context, chunks(), { gone, end, ...(stallMs !== undefined && { stallMs }) }))
    })
    const own = await listen(app, '127.0.0.1', 0)
    return { state, port: own.port, close: () => own.server.close() }
  }

  async function* endless(): AsyncGenerator<Uint8Array> {
    for (;;) yield new Uint8Array(1 << 16)
  }

  it('that nobody reads for a while is ended, and its connection too', async () => {
    const { state, port, close } = await streamed(endless, 100)
    const socket = connect(port, '127.0.0.1')
    socket.pause()
    socket.write('GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n')
    await expect.poll(() => state.ends, { timeout: 30_000 }).toBe(1)
    expect(state.gone.aborted).toBe(true)
    socket.destroy()
    close()
  })

  it('that takes long to be made is not taken for one that nobody reads', async () => {
    const { state, port, close } = await streamed(async function* () {
      yield new Uint8Array(1)
      await new Promise(resolve => setTimeout(resolve, 300))
      yield new Uint8Array(1)
    }, 50)
    const response = await fetch(`http://127.0.0.1:${port}/`)
    expect((await response.arrayBuffer()).byteLength).toBe(2)
    await expect.poll(() => state.ends).toBe(1)
    close()
  })

  it('that fails amid its chunks ends once', async () => {
    const { state, port, close } = await streamed(async function* () {
      yield new Uint8Array(1)
      await new Promise(resolve => setTimeout(resolve, 50))
      throw Object.assign(new Error('broken'), { code: 'ERR_STREAM_PREMATURE_CLOSE' })
    })
    const response = await fetch(`http://127.0.0.1:${port}/`)
    expect(await rejectionOf(response.arrayBuffer())).toBeInstanceOf(Error)
    await expect.poll(() => state.ends).toBe(1)
    close()
  })
})

it('a view tells how far the rules have come, from before they begin', async () => {
  const judged = async () => JSON.parse(await text(await answer('/api/trials/one/view'))).judged
  expect(await judged()).toEqual({ state: 'off', steps: 0 })
  await trial.close()
  closing.abort()
  server.closeAllConnections()
  server.close()
  await serve(TRIAL, true)
  expect(await judged()).toEqual({ state: 'waiting', steps: 0 })
  // Asked all the time they would not begin.
  const events = await text(await answer('/api/trials/one/events'))
  expect(events).toContain('"isOver":true')
  expect(await judged()).toEqual({ state: 'done', steps: 15 })
})

describe('events', () => {
  it('of an ended trial end, after what there is to tell', async () => {
    const told = await text(await answer('/api/trials/one/events'))
    expect(told.match(/^data: .*$/gm)!.map(line => JSON.parse(line.slice(6)))).toEqual([
      expect.objectContaining({ id: 'one', steps: 15, isEnded: true, isOver: true }),
    ])
  })

  it('of all trials go on, over one connection', async () => {
    const directory = join(scratch, 'live')
    mkdirSync(directory, { recursive: true })
    const writer = await LiveWriter.start(directory, 1)
    await writer.step(0, 0)
    await trial.close()
    closing.abort()
    server.closeAllConnections()
    server.close()
    await serve(directory)
    await answer('/api/trials/one').then(text)
    const response = await answer('/api/events')
    let told = ''
    response.on('error', () => {})
    response.on('data', chunk => {
      told += chunk
    })
    await expect.poll(() => told, { timeout: 30_000 }).toContain('"steps":1')
    await writer.step(1, 0)
    await expect.poll(() => told, { timeout: 30_000 }).toContain('"steps":2')
    await writer.end()
    await expect.poll(() => told, { timeout: 30_000 }).toContain('"isOver":true')
    expect(response.complete).toBe(false)
    response.destroy()
    writer.stop()
  })
})

describe('what one request asks for', () => {
  it('is bounded: numbers of each row, and of all', async () => {
    const of = async (path: string) => {
      const response = await answer(path)
      return [response.statusCode, JSON.parse(await text(response)).error?.message]
    }
    const many = Array.from({ length: 200 }, (_, i) => `histogram:${1000 + i}`).join(',')
    expect(await of(`/api/trials/one/scan?reductions=${many}`)).toEqual([
      400,
      'expected at most 1000 statistics, with 262144 numbers, of each tensor, got 200 with 440200: ask for fewer bins, or several times',
    ])
    const [status, message] = await of('/api/trials/one/scan?reductions=histogram:65000')
    expect(status).toBe(400)
    expect(message).toMatch(
      /^expected histograms and percentiles of at most 16777216 numbers in one answer, got 206 rows of 130001: /,
    )
    await free()
  })

  it('leaves the server responsive', async () => {
    const response = await answer('/api/trials/one/scan?reductions=histogram:40000')
    await new Promise(resolve => response.once('data', resolve))
    // While it is made and nobody reads it, others are answered.
    expect((await answer('/api/trials')).statusCode).toBe(200)
    response.destroy()
    await free()
  })
})
