/** What S3 does to its clients, done by a server of ours: each fault once, and what becomes of it. */

import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTrial, diff, type S3Options } from '#dist/index.js'
import { openStore, storeSpec } from '#dist/storage/open.js'
import { newTraffic, type Store } from '#dist/storage/store.js'
import {
  type Fault,
  FaultyS3,
  failWith,
  hang,
  html,
  longLength,
  resetAfter,
  shortLength,
  stallAfter,
  trickle,
} from '../support/faulty-s3.js'
import { fixtureTrial, ROOT } from '../support/golden.js'

let server: FaultyS3
const body = randomBytes(200_000)

beforeEach(async () => {
  server = await FaultyS3.start()
  server.objects.set('t/events/a', body)
})

afterEach(() => server.stop())

function open(options: S3Options = {}): Store {
  return openStore(storeSpec('s3://bucket/t', { s3: { ...server.options, ...options } }))
}

/** Reads a range, and holds it against the object. */
async function readRange(store: Store, startByte = 1000, byteLength = 150_000): Promise<void> {
  const view = new Uint8Array(byteLength)
  expect(await store.readInto('events/a', startByte, view)).toBe(byteLength)
  expect(body.subarray(startByte, startByte + byteLength).equals(view)).toBe(true)
}

function fileTrial(name: string): string {
  const { directory } = fixtureTrial(name)
  for (const path of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    if (statSync(join(directory, path)).isFile())
      server.objects.set(`${name}/${path}`, readFileSync(join(directory, path)))
  }
  return `s3://bucket/${name}`
}

describe('goes on', () => {
  it('from the last byte that came when the connection breaks', async () => {
    server.faults.push(resetAfter(60_000), resetAfter(10_000))
    await readRange(open())
    const [first, second, third] = server.seen
    expect(first).toMatchObject({ range: 'bytes=1000-150999', ifMatch: undefined })
    // Where it went on depends on how much the reset left of what was sent; never from the start, never beyond.
    const [from, again] = [second, third].map(seen => Number(/bytes=(\d+)-150999/.exec(seen!.range!)![1]))
    expect(from).toBeGreaterThanOrEqual(1000)
    expect(from).toBeLessThanOrEqual(61_000)
    expect(again).toBeGreaterThanOrEqual(from!)
    expect(server.seen).toHaveLength(3)
    if (from! > 1000) expect(second!.ifMatch).toMatch(/^"[0-9a-f]{32}"$/)
  })

  it('when a body stalls', async () => {
    server.faults.push(stallAfter(60_000))
    await readRange(open({ idleTimeoutMs: 100 }))
    expect(server.seen.map(({ range }) => range)).toEqual(['bytes=1000-150999', 'bytes=61000-150999'])
    expect(server.seen[1]!.ifMatch).toMatch(/^"[0-9a-f]{32}"$/)
  })

  it('when a body trickles', async () => {
    server.faults.push(trickle(50))
    await readRange(open({ rateTimeoutMs: 300, idleTimeoutMs: 10_000 }))
    expect(server.seen).toHaveLength(2)
    expect(Number(/bytes=(\d+)-/.exec(server.seen[1]!.range!)![1])).toBeGreaterThan(1000)
  })

  it('when an answer trickles that is a listing, or an error', async () => {
    const slow = { rateTimeoutMs: 300, idleTimeoutMs: 10_000 }
    server.listFaults.push(trickle(50))
    expect(await open(slow).list('events')).toEqual(['events/a'])
    server.faults.push(answer => {
      answer.writeHead(403)
      trickle(50)(answer, () => answer.end('<Error><Code>AccessDenied</Code></Error>'), undefined as never)
    })
    await readRange(open(slow))
    expect(server.seen).toHaveLength(4)
  })

  it('when the head of an answer trickles', async () => {
    server.faults.push(answer => {
      const { socket } = answer
      const head = `HTTP/1.1 206 Partial Content\r\n${'x-padding: 1\r\n'.repeat(100)}`
      let at = 0
      const drip = setInterval(() => {
        if (socket?.destroyed) clearInterval(drip)
        else socket?.write(head[at++]!)
      }, 50)
    })
    await readRange(open({ requestTimeoutMs: 400 }))
    expect(server.seen).toHaveLength(2)
  })

  it('when no answer begins', async () => {
    server.faults.push(hang)
    await readRange(open({ requestTimeoutMs: 200 }))
    expect(server.seen).toHaveLength(2)
  })

  it.each([
    ['503 SlowDown', failWith(503, 'SlowDown')],
    ['429', failWith(429, 'TooManyRequests')],
    ['500', failWith(500, 'InternalError')],
    ['502 with HTML', html(502)],
    ['200 with HTML', html(200)],
    ['400 KMS.ThrottlingException', failWith(400, 'KMS.ThrottlingException')],
    ['400 RequestTimeout', failWith(400, 'RequestTimeout')],
  ])('after %s', async (_, fault) => {
    server.faults.push(fault, fault)
    const traffic = newTraffic()
    await readRange(open().within!({ traffic: [traffic] }))
    expect(traffic).toEqual({ listRequests: 0, getRequests: 3, receivedBytes: 150_000, retries: 2 })
  })

  it('waits as long as Retry-After says', async () => {
    server.faults.push(failWith(503, 'SlowDown', { 'retry-after': '1' }))
    const startedAt = performance.now()
    await readRange(open())
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(990)
  })

  it('when Content-Length says too little, or too much', async () => {
    server.faults.push(shortLength(40_000), longLength)
    await readRange(open())
    expect(server.seen[1]!.range).toBe('bytes=41000-150999')
    // All bytes had come: nothing was asked for again.
    expect(server.seen.length).toBeLessThanOrEqual(3)
  })

  it('when a listing fails', async () => {
    server.listFaults.push(failWith(503, 'SlowDown'), html(502))
    expect(await open().list('events')).toEqual(['events/a'])
    expect(server.seen).toHaveLength(3)
  })

  it('where the bucket is, if S3 says so, and stays there', async () => {
    const there = failWith(301, 'PermanentRedirect', { 'x-amz-bucket-region': 'eu-north-1' })
    server.faults.push(there)
    const store = open()
    await readRange(store)
    await readRange(store)
    const regions = server.seen.map(({ authorization }) => /\d{8}\/([a-z0-9-]+)\/s3/.exec(authorization!)![1])
    expect(regions).toEqual(['us-east-1', 'eu-north-1', 'eu-north-1'])
  })

  it('past 2^31, and with an object that grows no larger than it is', async () => {
    const view = new Uint8Array(10)
    const startByte = 6 * 2 ** 30
    server.faults.push(answer => {
      answer.writeHead(206, {
        etag: '"x"',
        'content-length': '10',
        'content-range': `bytes ${startByte}-${startByte + 9}/${2 ** 43}`,
      })
      answer.end(body.subarray(0, 10))
    })
    expect(await open().readInto('events/a', startByte, view)).toBe(10)
    expect(server.seen[0]!.range).toBe(`bytes=${startByte}-${startByte + 9}`)
    expect(body.subarray(0, 10).equals(view)).toBe(true)
    expect(await open().readInto('events/a', startByte, view)).toBe(0)
    expect(await open().readInto('events/a', body.length - 3, view)).toBe(3)
  })
})

const KMS_DENIED =
  'User: arn:aws:iam::1:user/u is not authorized to perform: kms:Decrypt on the resource associated with this ciphertext'
const SSE_C =
  'The object was stored using a form of Server Side Encryption. The correct parameters must be provided to retrieve the object.'
const portal: Fault = answer => {
  answer.writeHead(404, { 'content-type': 'text/html' })
  answer.end('<html><body><h1>404 Not Found</h1></body></html>')
}
const LATER = 'Sat, 01 Jan 2039 00:00:00 GMT'

describe('gives up', () => {
  it.each([
    ['object gone', failWith(404, 'NoSuchKey'), 'NotFound', false, 'no such object', 1],
    ['a portal’s page', portal, 'NotFound', false, "a status 404 that is not S3's", 1],
    ['no such bucket', failWith(404, 'NoSuchBucket'), 'NotFound', false, 'no such bucket: bucket', 1],
    ['denied', failWith(403, 'AccessDenied'), 'Denied', false, 'is the region right, and are s3:ListBucket', 1],
    ['expired credentials', failWith(400, 'ExpiredToken'), 'Denied', false, 'expired', 1],
    ['unknown key', failWith(403, 'InvalidAccessKeyId'), 'Denied', false, 'does not know the access key', 1],
    [
      'expired credentials of STS',
      failWith(403, 'ExpiredTokenException'),
      'Denied',
      false,
      'have expired: get new ones',
      1,
    ],
    ['archived', failWith(403, 'InvalidObjectState'), 'Unavailable', false, 'archived (Glacier', 1],
    ['KMS key disabled', failWith(400, 'KMS.DisabledException'), 'Denied', false, 'its KMS key is disabled', 1],
    ['KMS key gone', failWith(400, 'KMS.NotFoundException'), 'Denied', false, 'its KMS key is not there', 1],
    [
      'KMS denied',
      failWith(403, 'AccessDenied', {}, KMS_DENIED),
      'Denied',
      false,
      'its KMS key refuses (AccessDenied)',
      1,
    ],
    ['a customer’s key', failWith(400, 'InvalidRequest', {}, SSE_C), 'Denied', false, 'SSE-C', 1],
    ['clock', failWith(403, 'RequestTimeTooSkewed', { date: LATER }), 'Denied', true, `S3 says ${LATER}: set it`, 2],
    ['wrong signature', failWith(403, 'SignatureDoesNotMatch'), 'Denied', false, 'secret access key', 1],
    ['elsewhere, without a word where', failWith(301, 'PermanentRedirect'), 'Unavailable', false, 'region', 1],
    ['500 for ever', failWith(500, 'InternalError'), 'Unavailable', true, 'it was InternalError (2 attempts)', 2],
    ['503 for ever', failWith(503, 'SlowDown'), 'Unavailable', true, 'SlowDown', 2],
    ['hangs for ever', hang, 'Unavailable', true, '200 ms', 2],
    ['breaks for ever', resetAfter(0), 'Unavailable', true, '2 attempts', 2],
    ['trickles for ever', trickle(50), 'Unavailable', true, 'expected 1000 bytes a second, got ', 2],
    ['stalls for ever', stallAfter(10), 'Unavailable', true, 'no byte came for 0.2 s', 2],
  ])('%s', async (_, fault, code, retryable, message, attempts) => {
    server.faults.push(fault, fault, fault)
    // A busy machine may be late with a byte that trickles.
    const idleTimeoutMs = message.startsWith('expected') ? 5000 : 200
    const store = open({ maxAttempts: 2, requestTimeoutMs: 200, idleTimeoutMs, rateTimeoutMs: 300 })
    const error = await readRange(store).catch(error => error)
    expect(error).toMatchObject({ name: 'StoreError', code, retryable, url: 's3://bucket/t/events/a' })
    expect(error.message).toContain(message)
    expect(error.fields).toMatchObject({ range: 'bytes=1000-150999', attempts })
    expect(server.seen).toHaveLength(attempts)
    // Every body was read or given up: the connections serve the next ones.
    server.faults.length = 0
    for (let i = 0; i < 3; i++) await readRange(open({ maxSockets: 1 }))
  })

  it('changed between requests, or within one that is resumed: FormatError naming it', async () => {
    const store = open()
    await readRange(store)
    server.objects.set('t/events/a', randomBytes(200_000))
    const changed = { name: 'FormatError', code: 'ObjectChanged', url: 's3://bucket/t/events/a' }
    await expect(readRange(store)).rejects.toMatchObject(changed)
    expect(server.seen[1]!.ifMatch).toMatch(/^"[0-9a-f]{32}"$/)
    server.faults.push((answer, serve, request) => {
      stallAfter(1000)(answer, serve, request)
      server.objects.set('t/events/a', randomBytes(200_000))
    })
    await expect(readRange(open({ idleTimeoutMs: 100 }))).rejects.toMatchObject(changed)
  })

  it('no server', async () => {
    const error = await readRange(open({ endpoint: 'http://127.0.0.1:1', maxAttempts: 2 })).catch(error => error)
    expect(error).toMatchObject({ name: 'StoreError', code: 'Unavailable', retryable: true, fields: { attempts: 2 } })
    expect(error.message).toContain('ECONNREFUSED')
  })

  it('too large', async () => {
    const error = await open()
      .read('events/a', { maxByteLength: 100 })
      .catch(error => error)
    expect(error).toMatchObject({ name: 'StoreError', code: 'TooLarge' })
  })

  it('paths that leave the trial', async () => {
    for (const path of ['../x', '/x', 'a/../../x', 'a\0']) {
      await expect(open().read(path, { maxByteLength: 1 })).rejects.toMatchObject({ code: 'Denied' })
    }
    expect(server.seen).toEqual([])
  })
})

it('waits for descriptors, and then makes fewer connections', async () => {
  const path = fileTrial('mlp-vanishing')
  const script = `
    const { execFileSync } = await import('node:child_process')
    const { createTrial } = await import(${JSON.stringify(join(ROOT, 'dist/bundle/index.js'))})
    // Only now: Node.js opens all modules that one imports at once.
    execFileSync('prlimit', ['--pid', String(process.pid), '--nofile=32'])
    const trial = await createTrial(${JSON.stringify(path)}, { s3: ${JSON.stringify({ ...server.options, maxSockets: 100 })} })
    let rows = 0
    for await (const { error } of trial.scan({ threads: 0 })) { if (error) throw error; rows++ }
    console.log(JSON.stringify([rows, trial.traffic.retries > 0]))
    process.exit()`
  server.latencyMs = 30
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
  const [rows, hasWaited] = JSON.parse(stdout) as [number, boolean]
  expect(rows).toBeGreaterThan(100)
  expect(hasWaited).toBe(true)
})

it('a read of which a part is lost writes no more: its memory is soon of another', async () => {
  const isFirst = (range: string | undefined): boolean => range?.startsWith('bytes=0-') === true
  const late: Fault = (answer, serve, { headers }) =>
    void setTimeout(
      isFirst(headers.range) ? () => failWith(403, 'AccessDenied')(answer) : serve,
      isFirst(headers.range) ? 50 : 300,
    )
  server.faults.push(...new Array(8).fill(late))
  const view = new Uint8Array(200_000)
  await expect(open({ partByteLength: 64 << 10 }).readInto('events/a', 0, view)).rejects.toMatchObject({
    code: 'Denied',
  })
  view.fill(7)
  await expect.poll(() => server.inFlight).toBe(0)
  await new Promise(resolve => setTimeout(resolve, 50))
  expect(server.seen.length).toBeGreaterThan(3)
  expect(view.every(byte => byte === 7)).toBe(true)
})

it('runs are compared there as on disk', async () => {
  const [on, other] = [fileTrial('mlp-vanishing'), fileTrial('mlp-all-zero')]
  const trials = await Promise.all([on, other].map(path => createTrial(path, { s3: server.options })))
  const local = await Promise.all(
    ['mlp-vanishing', 'mlp-all-zero'].map(name => createTrial(join(ROOT, 'fixtures/trials', name))),
  )
  const [there, here] = [await diff(trials[0]!, trials[1]!), await diff(local[0]!, local[1]!)]
  expect(there).toEqual(here)
  expect(here.differences.length).toBeGreaterThan(5)
  const same = await diff(trials[0]!, local[0]!)
  expect([same.divergence, same.missing, same.equal]).toEqual([null, 0, same.compared])
  for (const trial of [...trials, ...local]) await trial.close()
})

describe('a scan', () => {
  it('loses one record to one lost range, and no more', async () => {
    const path = fileTrial('mlp-vanishing')
    const trial = await createTrial(path, { s3: { ...server.options, maxAttempts: 1 } })
    server.faults.push(failWith(500, 'InternalError'))
    const failed: string[] = []
    let rows = 0
    for await (const { error, step } of trial.scan({ tensors: /./ })) {
      rows++
      if (error) failed.push(`${step} ${error.code} ${error.fields.range !== undefined}`)
    }
    expect(rows).toBeGreaterThan(100)
    expect(new Set(failed)).toEqual(new Set(['0 Unavailable true']))
    expect(failed.length).toBeLessThan(rows / 2)
  })

  it('ends all requests at once when it is aborted', async () => {
    const path = fileTrial('mlp-vanishing')
    const trial = await createTrial(path, { s3: server.options })
    const abort = new AbortController()
    server.faults.push(...new Array(100).fill(hang))
    const scan = trial.scan({ signal: abort.signal })
    setTimeout(() => abort.abort(new Error('enough')), 100)
    const startedAt = performance.now()
    await expect(async () => {
      for await (const _ of scan);
    }).rejects.toThrow('enough')
    expect(performance.now() - startedAt).toBeLessThan(5000)
    expect(server.seen.length).toBeGreaterThan(3)
    await expect.poll(() => server.inFlight).toBe(0)
  })

  it('has no more requests in flight than maxSockets, and more than one', async () => {
    const path = fileTrial('mlp-vanishing')
    server.latencyMs = 20
    const trial = await createTrial(path, { s3: { ...server.options, maxSockets: 5 } })
    for await (const _ of trial.scan());
    expect(server.mostInFlight).toBe(5)
    expect(await server.connections()).toBeLessThanOrEqual(5)
  })

  it('is not thrown by a server that asks for fewer requests', async () => {
    const path = fileTrial('mlp-vanishing')
    const trial = await createTrial(path, { s3: server.options })
    server.faults.push(...new Array(20).fill(failWith(503, 'SlowDown')))
    for await (const { error } of trial.scan()) expect(error).toBeUndefined()
    expect(trial.traffic.retries).toBe(20)
  })
})
