/** Trials over HTTP: what is answered, to whom, and what is refused. */

import { execFile, execFileSync } from 'node:child_process'
import { request } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { tableFromIPC } from 'apache-arrow'
import { parquetReadObjects } from 'hyparquet'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createTrial, serveTrials, type TrialServer } from '#dist/index.js'
import { Busy, Turns } from '#dist/view/serve/turns.js'
import { isRequired, ROOT } from '../support/golden.js'
import { LiveWriter } from '../support/live-writer.js'
import { rejectionOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'
import { writeHostile } from '../view/hostile.js'

const trialPath = (name: string) => join(ROOT, 'fixtures/trials', name)
const run = promisify(execFile)
const hasNumpy = (() => {
  try {
    execFileSync('/usr/bin/python3', ['-c', 'import numpy'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})()
const scratch = scratchDirectory('serve')
const VANISHING = trialPath('mlp-vanishing')
let server: TrialServer
const started: TrialServer[] = []
const writers: LiveWriter[] = []

beforeAll(async () => {
  server = await serveTrials([VANISHING, trialPath('dtypes'), trialPath('workers-4')], { port: 0 })
})
afterAll(() => server.close())
afterEach(async () => {
  for (const one of started.splice(0)) await one.close()
  for (const writer of writers.splice(0)) writer.stop()
})

async function start(...args: Parameters<typeof serveTrials>): Promise<TrialServer> {
  const one = await serveTrials(args[0], { port: 0, ...args[1] })
  started.push(one)
  return one
}

const get = (path: string, headers: Record<string, string> = {}, of = server) => fetch(of.url + path, { headers })
const json = async (path: string, of = server) => (await get(path, {}, of)).json()

/** With headers that `fetch` sets itself. */
function rawStatus(url: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    request(url, { headers }, response => {
      response.resume()
      resolve(response.statusCode!)
    })
      .on('error', reject)
      .end()
  })
}

describe('the list of trials', () => {
  it('has each by the last part of its path, and what is known of it', async () => {
    await json('/api/trials')
    await Promise.all(['mlp-vanishing', 'dtypes', 'workers-4'].map(id => json(`/api/trials/${id}`)))
    const listed = await json('/api/trials')
    expect(listed.map(({ id, state, steps, tensors }: never) => [id, state, steps, tensors])).toEqual([
      ['mlp-vanishing', 'ended', 15, 22],
      ['dtypes', 'ended', 3, 81],
      ['workers-4', 'ended', 8, 3],
    ])
  })

  it('tells what can not be opened, and numbers trials of one name', async () => {
    const of = await start([join(scratch, 'nothing'), VANISHING, VANISHING])
    expect((await get('/api/trials/nothing', {}, of)).status).toBe(502)
    const listed = await json('/api/trials', of)
    expect(listed.map(({ id }: never) => id)).toEqual(['nothing', 'mlp-vanishing', 'mlp-vanishing~2'])
    expect(listed[0]).toMatchObject({ state: 'failed', error: expect.stringContaining('nothing') })
  })
})

describe('a scan', () => {
  const PART = 'tensor=gradient&steps=:50&reductions=mean,abs_max'
  const scan = async (format: string, of = server) =>
    get(`/api/trials/mlp-vanishing/scan?${PART}&format=${format}`, {}, of)

  async function expected() {
    const trial = await createTrial(VANISHING)
    const asked = { tensors: 'gradient', steps: { to: 50 }, reductions: ['mean', 'abs_max'] } as const
    const rows = []
    for await (const row of trial.scan(asked)) rows.push(row)
    const lines = async (format: 'csv' | 'jsonl') => {
      const chunks: Uint8Array[] = []
      for await (const some of trial.scan(asked).lines(format)) chunks.push(some)
      return Buffer.concat(chunks).toString()
    }
    const texts = { csv: await lines('csv'), jsonl: await lines('jsonl') }
    await trial.close()
    return { rows, ...texts }
  }

  it('is answered as JSON, lines of it, CSV, Arrow and Parquet, with the numbers of the library', async () => {
    const { rows, csv, jsonl } = await expected()
    expect(rows.length).toBeGreaterThan(50)
    expect(await (await scan('csv')).text()).toBe(csv)
    expect(await (await scan('jsonl')).text()).toBe(jsonl)
    expect(await (await scan('json')).json()).toEqual(
      jsonl
        .trim()
        .split('\n')
        .map(line => JSON.parse(line)),
    )
    const means = rows.map(({ reductions }) => reductions.mean)
    const arrow = tableFromIPC(new Uint8Array(await (await scan('arrow')).arrayBuffer()))
    expect([...arrow.getChild('mean')!]).toEqual(means)
    const file = await (await scan('parquet')).arrayBuffer()
    const table = await parquetReadObjects({ file })
    expect(table.map(({ mean }) => mean)).toEqual(means)
  })

  it('is an empty array where nothing matches', async () => {
    expect(await json('/api/trials/mlp-vanishing/scan?tensor=nosuch&format=json')).toEqual([])
  })

  it.each([
    ['reductions=meen', 400, 'did you mean mean'],
    ['format=xml', 400, 'expected format to be one of jsonl'],
    ['stepz=1', 400, 'did you mean steps'],
    ['steps=9:3', 400, 'which comes later'],
    ['mode=TRAIN&mode=EVAL', 400, 'expected mode once'],
    ['tensor=(', 400, '('],
    ['collection=nosuch', 404, 'nosuch'],
    ['worker=nobody', 404, 'nobody'],
  ])('with %s is refused with %i before it begins', async (query, status, message) => {
    const response = await get(`/api/trials/mlp-vanishing/scan?${query}`)
    expect(response.status).toBe(status)
    expect((await response.json()).error.message).toContain(message)
  })

  it('is not made again for whoever has it, and is for whoever asks for something else', async () => {
    const first = await scan('csv')
    const tag = first.headers.get('etag')!
    await first.text()
    const path = `/api/trials/mlp-vanishing/scan?${PART}&format=csv`
    expect((await get(path, { 'if-none-match': tag })).status).toBe(304)
    expect((await get(`${path}&mode=TRAIN`, { 'if-none-match': tag })).status).toBe(200)
  })

  it.each([
    ['jsonl', 'gzip'],
    ['csv', 'gzip'],
    ['json', 'gzip'],
    ['parquet', null],
  ])('as %s has the encoding %s for whoever accepts it', async (format, encoding) => {
    const path = `/api/trials/mlp-vanishing/scan?format=${format}`
    const [packed, plain] = [
      await get(path, { 'accept-encoding': 'gzip' }),
      await get(path, { 'accept-encoding': 'identity' }),
    ]
    expect([packed.headers.get('content-encoding'), plain.headers.get('content-encoding')]).toEqual([encoding, null])
    expect(Buffer.from(await packed.arrayBuffer()).equals(Buffer.from(await plain.arrayBuffer()))).toBe(true)
  })

  it('that nobody reads to its end gives its turn to the next', async () => {
    const of = await start(VANISHING, { maxWork: 1 })
    for (let i = 0; i < 3; i++) {
      const gone = new AbortController()
      const response = await fetch(`${of.url}/api/trials/mlp-vanishing/scan`, { signal: gone.signal })
      await response.body!.getReader().read()
      gone.abort()
    }
    expect((await scan('csv', of)).status).toBe(200)
  })
})

describe('a value', () => {
  const of = (query: string) => `/api/trials/dtypes/value?${query}`

  it('is nested lists, with NaN as text', async () => {
    const answer = await json(of('tensor=edge%2Fnan'))
    expect(answer).toMatchObject({ tensor: 'edge/nan', shape: [3], values: expect.arrayContaining(['NaN']) })
  })

  it('is what numpy reads, to the byte', async () => {
    const trial = await createTrial(trialPath('dtypes'))
    const name = trial.tensorNames({ regex: '^float32/' })[0]!
    const tensor = trial.tensor(name)
    const { bytes } = await tensor.value(tensor.steps().at(-1)!)
    const answer = await get(of(`tensor=${encodeURIComponent(name)}&format=npy`))
    const file = Buffer.from(await answer.arrayBuffer())
    expect(file.subarray(1, 6).toString()).toBe('NUMPY')
    expect(file.subarray(file.length - bytes.byteLength)).toEqual(Buffer.from(bytes))
    await trial.close()
  })

  it.runIf(hasNumpy || isRequired('numpy'))('is an array in Python, as docs/serve.md reads it', async () => {
    const name = 'int64/2d'
    const trial = await createTrial(trialPath('dtypes'))
    const known = trial.tensorNames({ regex: '^int64/' })
    const asked = known.includes(name) ? name : known[0]!
    const script = `import io, numpy, sys, urllib.request
array = numpy.load(io.BytesIO(urllib.request.urlopen(sys.argv[1]).read()))
print(array.dtype.name, list(array.shape), [int(x) for x in array.ravel()])`
    const url = `${server.url}${of(`tensor=${encodeURIComponent(asked)}&format=npy`)}`
    const printed = await run('/usr/bin/python3', ['-c', script, url])
    const tensor = trial.tensor(asked)
    const { shape, data } = await tensor.value(tensor.steps().at(-1)!)
    const elements = Array.from(data as BigInt64Array, String).join(', ')
    expect(printed.stdout.trim()).toBe(`int64 [${shape.join(', ')}] [${elements}]`)
    await trial.close()
  })

  it.each([
    ['', 400],
    ['tensor=nosuch', 404],
    ['tensor=edge%2Fnan&step=7', 404],
    ['tensor=edge%2Fnan&step=x', 400],
  ])('%j is refused with %i', async (query, status) => expect((await get(of(query))).status).toBe(status))
})

it('judges what is looked at, and gives an overview', async () => {
  await expect
    .poll(async () => (await json('/api/trials/mlp-vanishing/findings')).findings.length, { timeout: 10_000 })
    .toBe(62)
  const { findings } = await json('/api/trials/mlp-vanishing/findings')
  expect(findings[0]).toMatchObject({ rule: 'VanishingGradient', step: 0, cause: null })
  const overview = await json('/api/trials/mlp-vanishing/overview?mode=TRAIN')
  expect(overview.losses).toHaveLength(1)
  expect(overview.gradients).toHaveLength(20)
})

describe('a running training', () => {
  it('is told step by step, with numbers for the new steps, until it ends', async () => {
    const directory = join(scratch, 'live')
    const writer = await LiveWriter.start(directory, 1)
    writers.push(writer)
    await writer.step(0, 0)
    const of = await start(directory)
    const column = async () => json('/api/trials/live/view/column?statistic=mean&kind=all', of)
    const before = await column()
    const seen: { steps: number; isEnded: boolean }[] = []
    const gone = new AbortController()
    const events = await fetch(`${of.url}/api/trials/live/events`, { signal: gone.signal })
    const reading = (async () => {
      for await (const chunk of events.body!.pipeThrough(new TextDecoderStream()))
        for (const [, data] of chunk.matchAll(/^data: (.*)$/gm)) seen.push(JSON.parse(data!))
    })().catch(() => {})
    await expect.poll(() => seen.length).toBeGreaterThan(0)
    await writer.step(1, 0)
    await expect.poll(() => seen.at(-1)!.steps, { timeout: 5000 }).toBe(2)
    const after = await column()
    expect([before.numbers.length, after.numbers.length]).toEqual([1, 2])
    expect(after.version).toBeGreaterThan(before.version)
    await writer.end()
    await expect.poll(() => seen.at(-1)!.isEnded, { timeout: 5000 }).toBe(true)
    expect((await json('/api/trials/live', of)).state).toBe('ended')
    gone.abort()
    await reading
  })
})

describe('who may ask', () => {
  const TOKEN = 'a-token-of-24-characters'

  it('is this machine alone, unless there is a token', async () => {
    expect(await rejectionOf(serveTrials(VANISHING, { host: '0.0.0.0', port: 0 }))).toHaveProperty(
      'message',
      expect.stringMatching(/expected a token/),
    )
    expect(await rejectionOf(serveTrials(VANISHING, { token: 'short', port: 0 }))).toHaveProperty(
      'message',
      expect.stringMatching(/16 letters/),
    )
    expect(await rawStatus(`${server.url}/api/trials`, { host: 'evil.example' })).toBe(403)
    expect(await rawStatus(`${server.url}/api/trials`, { host: `localhost:${server.port}` })).toBe(200)
  })

  it('is whoever has the token: as a header, or once in the address for a cookie', async () => {
    const of = await start(VANISHING, { host: '0.0.0.0', token: TOKEN })
    const url = `http://127.0.0.1:${of.port}`
    const statusOf = async (path: string, headers: Record<string, string> = {}) =>
      (await fetch(url + path, { headers, redirect: 'manual' })).status
    expect(await statusOf('/api/trials')).toBe(401)
    expect(await statusOf('/')).toBe(401)
    expect(await statusOf('/assets/page.js')).toBe(401)
    expect(await statusOf('/api/trials', { authorization: `Bearer ${TOKEN}x` })).toBe(401)
    expect(await statusOf('/api/trials', { authorization: `Bearer ${TOKEN}` })).toBe(200)
    expect(await statusOf('/?token=another-token-entirely')).toBe(401)
    const entry = await fetch(`${url}/trials/mlp-vanishing?token=${TOKEN}`, { redirect: 'manual' })
    expect([entry.status, entry.headers.get('location')]).toEqual([303, '/trials/mlp-vanishing'])
    const [cookie, ...flags] = entry.headers.get('set-cookie')!.split('; ')
    expect(flags).toEqual(expect.arrayContaining(['HttpOnly', 'SameSite=Strict']))
    expect(await statusOf('/trials/mlp-vanishing', { cookie: cookie! })).toBe(200)
  })

  it('is no page of another origin, unless it was named', async () => {
    const of = await start(VANISHING, { cors: ['https://friend.example'] })
    const allowed = async (origin: string) =>
      (await get('/api/trials', { origin }, of)).headers.get('access-control-allow-origin')
    expect(await allowed('https://friend.example')).toBe('https://friend.example')
    expect(await allowed('https://stranger.example')).toBeNull()
    expect(
      (await get('/api/trials', { origin: 'https://friend.example' })).headers.get('access-control-allow-origin'),
    ).toBeNull()
    expect(await rejectionOf(serveTrials(VANISHING, { cors: ['*'], port: 0 }))).toHaveProperty(
      'message',
      expect.stringMatching(/expected an origin/),
    )
  })
})

describe('what is not there', () => {
  it.each(['/etc/passwd', '/assets/..%2f..%2fpackage.json', '/trials/..%2f..%2fetc', '/api/trials/nosuch', '/api/x'])(
    '%s is answered with 404',
    async path => {
      const response = await get(path)
      expect(response.status).toBe(404)
      expect((await response.json()).error.message).not.toContain(ROOT)
    },
  )

  it('takes nothing', async () => {
    const response = await fetch(`${server.url}/api/trials`, { method: 'POST', body: '{}' })
    expect(response.status).toBe(405)
  })
})

describe('a page', () => {
  it('runs its own script alone, and names of a hostile trial are data in it', async () => {
    const directory = join(scratch, 'hostile')
    writeHostile(directory)
    const of = await start(directory)
    const page = await get('/', {}, of)
    expect(page.headers.get('content-security-policy')).toMatch(/default-src 'none'; script-src 'self'/)
    expect((await page.text()).match(/<script/g)).toHaveLength(2)
    const view = await get('/api/trials/hostile/view', {}, of)
    expect(view.headers.get('content-type')).toBe('application/json')
    expect(view.headers.get('x-content-type-options')).toBe('nosniff')
  })
})

it('leads to the app where it is asked to and there is no trial, and hands out no other file', async () => {
  const of = await start([], { app: true })
  const page = await get('/', {}, of)
  expect([page.url, page.status]).toEqual([`${of.url}/app/`, 200])
  expect(await page.text()).toContain('<title>trialscan')
  for (const [file, type] of [
    ['app.js', 'text/javascript; charset=utf-8'],
    ['service-worker.js', 'text/javascript; charset=utf-8'],
    ['trialscan.wasm', 'application/wasm'],
  ] as const) {
    expect((await get(`/app/${file}`, {}, of)).headers.get('content-type')).toBe(type)
  }
  for (const path of ['nothing.js', '..%2Fbundle%2Fmain.js', '.', 'package.json']) {
    expect((await get(`/app/${path}`, {}, of)).headers.get('content-type'), path).not.toContain('text/javascript')
  }
  of.serve([VANISHING])
  expect((await get('/', {}, of)).url).toBe(`${of.url}/`)
  expect((await get('/', {}, await start([]))).url).not.toContain('/app/')
})

it('describes each of its answers', async () => {
  const { openapi, paths } = await json('/api/openapi.json')
  expect(openapi).toBe('3.1.0')
  const needed: Record<string, string> = { '/api/trials/{id}/value': '?tensor=edge%2Fnan' }
  for (const [path, { get: operation }] of Object.entries<{ get: { responses: Record<string, { content: object }> } }>(
    paths,
  )) {
    const gone = new AbortController()
    const response = await fetch(server.url + path.replace('{id}', 'dtypes') + (needed[path] ?? ''), {
      signal: gone.signal,
    })
    expect(response.status, path).toBe(200)
    const type = response.headers.get('content-type')!.split(';')[0]!
    expect(Object.keys(operation.responses['200']!.content), path).toContain(type)
    gone.abort()
  }
})

describe('turns', () => {
  it('are taken in order, no more at once than there are, and refused where too many wait', async () => {
    const turns = new Turns(1)
    const { signal } = new AbortController()
    const end = await turns.take(signal)
    const order: number[] = []
    const waiting = Array.from({ length: 64 }, (_, i) =>
      turns.take(new AbortController().signal).then(end => {
        order.push(i)
        end()
      }),
    )
    expect(await rejectionOf(turns.take(signal))).toBeInstanceOf(Busy)
    end()
    end()
    await Promise.all(waiting)
    expect(order).toEqual(Array.from({ length: 64 }, (_, i) => i))
  })

  it('are not kept for those who have gone', async () => {
    const turns = new Turns(1)
    const end = await turns.take(new AbortController().signal)
    const gone = new AbortController()
    const left = turns.take(gone.signal)
    gone.abort(new Error('gone'))
    expect(await rejectionOf(left)).toHaveProperty('message', 'gone')
    end()
    await turns.take(new AbortController().signal)
  })
})
