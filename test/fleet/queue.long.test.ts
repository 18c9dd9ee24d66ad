/** Shards through a queue: a real Redis, real processes that are killed, stopped, or of another version, and trials on S3. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { CLI, outcomeOf } from '../cli/run.js'
import { ROOT } from '../support/golden.js'
import { freePort, HAS_REDIS, type RedisServer, redisServer } from '../support/redis.js'
import { ENVIRONMENT, HAS_S3, makeBucket, upload } from '../support/s3.js'
import { scratchDirectory } from '../support/scratch.js'

const FIXTURES = join(ROOT, 'fixtures/trials')
const scratch = scratchDirectory('queue')
const S3 = ['--s3-force-path-style']

let server: RedisServer
let redis: string
beforeAll(async () => {
  if (!HAS_REDIS) return
  server = await redisServer(scratch)
  await server.start()
  redis = `redis://127.0.0.1:${server.port}`
})
afterAll(() => server?.kill())

function begin(args: readonly string[], cli = CLI): ChildProcess {
  return spawn(process.execPath, [cli, ...args], { env: { ...process.env, ...ENVIRONMENT } })
}

const trialscan = (...args: readonly string[]) => outcomeOf(begin(args))

let plans = 0
async function planOf(trials: readonly string[], shards: number, ...more: readonly string[]): Promise<string> {
  const plan = join(scratch, `plan-${plans++}`)
  const made = await trialscan(
    'fleet',
    'plan',
    ...trials,
    '--out',
    plan,
    '--shards',
    String(shards),
    '--format',
    'csv',
    ...more,
  )
  expect(made.code).toBe(0)
  return plan
}

/** A trial whose scan takes a while. */
function slowTrial(name: string): string {
  const path = join(scratch, name)
  const writer = new TrialWriter(path)
  const values = Array.from({ length: 20_000 }, (_, i) => i / 7)
  for (let step = 0; step < 1500; step++) {
    const tensors = ['a', 'b', 'c'].map(name => ({ name, dtype: 'float64', shape: [values.length], values }) as const)
    writer.step({ step, mode: 'TRAIN', tensors })
  }
  writer.end()
  return path
}

describe.runIf(HAS_REDIS)('a queue', () => {
  it('gives each shard to a worker, once, and tells what is in it', async () => {
    const plan = await planOf([FIXTURES], 7)
    for (let i = 0; i < 2; i++) {
      const { stdout } = await trialscan('fleet', 'submit', plan, '--redis', redis)
      expect(stdout).toBe(`${plan}: 0 of 7 shards done; 7 in the queue trialscan-0.1.0\n`)
    }
    const workers = await Promise.all(
      [1, 2].map(count => trialscan('fleet', 'work', '--redis', redis, '--drain', '--concurrency', String(count))),
    )
    expect(workers.map(({ code }) => code)).toEqual([0, 0])
    const lines = workers.flatMap(({ stdout }) =>
      stdout
        .trimEnd()
        .split('\n')
        .filter(line => line !== ''),
    )
    expect(lines.map(line => Number(/ shard (\d) of 7: \d+ rows; [\d.]+ s$/.exec(line)?.[1])).sort()).toEqual([
      0, 1, 2, 3, 4, 5, 6,
    ])
    expect((await trialscan('fleet', 'submit', plan, '--redis', redis)).stdout).toContain(
      '7 of 7 shards done; 0 in the queue',
    )
    const { stdout } = await trialscan('fleet', 'merge', plan, '--out', '-')
    expect(stdout).toBe((await trialscan('scan', FIXTURES, '--format', 'csv')).stdout)
  })

  it('gives up a shard of a trial that has changed, says so, and tries again when it is told to', async () => {
    const trials = join(scratch, 'changed')
    for (const name of ['a', 'b']) cpSync(join(FIXTURES, 'mlp-all-zero'), join(trials, name), { recursive: true })
    const plan = await planOf([trials], 2)
    const index = join(trials, 'b/index/000000000')
    const file = join(index, readdirSync(index)[0]!)
    utimesSync(file, 1, 1)
    await trialscan('fleet', 'submit', plan, '--redis', redis)
    const { code, stderr } = await trialscan('fleet', 'work', '--redis', redis, '--drain')
    expect([code, stderr]).toEqual([
      0,
      expect.stringMatching(/shard 1 has failed, given up: .*\/b: expected the trial as it was/),
    ])
    const merged = await trialscan('fleet', 'merge', plan, '--out', '-')
    expect([merged.code, merged.stderr]).toEqual([5, expect.stringContaining('these are missing: 1 (failed 1 times: ')])
    expect((await trialscan('fleet', 'submit', plan, '--redis', redis)).stdout).toContain(
      '1 in the queue trialscan-0.1.0, 1 of which had failed for good',
    )
    await trialscan('fleet', 'work', '--redis', redis, '--drain')
    expect((await trialscan('fleet', 'status', plan)).stdout).toMatch(/1 +failed .* 2 +\/.*\/b: expected/)
  })

  it('tries again what may succeed later', async () => {
    const trials = join(scratch, 'away')
    cpSync(join(FIXTURES, 'workers-4'), join(trials, 'workers-4'), { recursive: true })
    const plan = await planOf([trials], 1)
    renameSync(trials, `${trials}-for-now`)
    await trialscan('fleet', 'submit', plan, '--redis', redis)
    const worker = begin(['fleet', 'work', '--redis', redis, '--drain'])
    const end = outcomeOf(worker)
    await new Promise(resolve => worker.stderr!.once('data', resolve))
    renameSync(`${trials}-for-now`, trials)
    const { code, stdout, stderr } = await end
    expect([code, stderr, stdout]).toEqual([
      0,
      expect.stringContaining('has failed, attempt 1 of 5: '),
      expect.stringContaining('shard 0 of 1: 85 rows'),
    ])
  })

  it('has back what a worker had begun that is told to end', async () => {
    const plan = await planOf([slowTrial('slow')], 1, '--reductions', 'p1,p50,p99')
    await trialscan('fleet', 'submit', plan, '--redis', redis)
    const worker = begin(['fleet', 'work', '--redis', redis, '--threads', '0'])
    const end = outcomeOf(worker)
    const jobs = (state: string) =>
      Number(spawnSync('redis-cli', ['-p', String(server.port), 'llen', `bull:trialscan-0.1.0:${state}`]).stdout)
    while (jobs('active') === 0) await sleep(50)
    worker.kill('SIGTERM')
    expect(await end).toMatchObject({ code: 143, stdout: '' })
    expect(JSON.parse((await trialscan('fleet', 'status', plan, '--format', 'json')).stdout)).toMatchObject({
      done: 0,
      failed: [],
    })
    // At once, and not after the lock of the other has run out.
    expect(jobs('wait')).toBe(1)
    expect((await trialscan('fleet', 'work', '--redis', redis, '--drain')).stdout).toContain('shard 0 of 1: 4,500 rows')
  })

  it('is not for workers of another version', async () => {
    const other = join(scratch, 'other')
    mkdirSync(other)
    for (const name of ['dist', 'build', 'node_modules']) {
      if (name === 'dist') cpSync(join(ROOT, 'dist/bundle'), join(other, 'dist/bundle'), { recursive: true })
      else symlinkSync(join(ROOT, name), join(other, name))
    }
    const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as object
    writeFileSync(join(other, 'package.json'), JSON.stringify({ ...manifest, version: '9.9.9' }))
    const cli = join(other, 'dist/bundle/main.js')
    const plan = await planOf([FIXTURES], 2)
    await trialscan('fleet', 'submit', plan, '--redis', redis)
    // It looks into another queue; told to look into this one, it gives back what it gets, and ends.
    expect(await outcomeOf(begin(['fleet', 'work', '--redis', redis, '--drain'], cli))).toMatchObject({
      code: 0,
      stdout: '',
    })
    const forced = await outcomeOf(
      begin(['fleet', 'work', '--redis', redis, '--drain', '--queue', 'trialscan-0.1.0'], cli),
    )
    expect([forced.code, forced.stderr]).toEqual([
      2,
      expect.stringContaining('expected trialscan 0.1.0, which has made the plan, got 9.9.9'),
    ])
    expect(await outcomeOf(begin(['fleet', 'submit', plan, '--redis', redis], cli))).toMatchObject({ code: 2 })
    expect((await trialscan('fleet', 'work', '--redis', redis, '--drain')).stdout.split('\n')).toHaveLength(3)
  })

  it('is reached with a password, and by TLS', async () => {
    const directory = join(scratch, 'tls')
    mkdirSync(directory)
    const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')]
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
    spawnSync('openssl', [
      'req',
      '-x509',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-keyout',
      key,
      '-out',
      cert,
      '-days',
      '2',
      ...subject,
    ])
    const secure = await redisServer(directory)
    const port = await freePort()
    const tls = [
      '--tls-port',
      String(port),
      '--tls-cert-file',
      cert,
      '--tls-key-file',
      key,
      '--tls-ca-cert-file',
      cert,
      '--tls-auth-clients',
      'no',
    ]
    await secure.start('--requirepass', 'secret', ...tls)
    try {
      const plan = await planOf([join(FIXTURES, 'workers-4')], 1)
      const submit = (url: string) =>
        outcomeOf(
          spawn(process.execPath, [CLI, 'fleet', 'submit', plan, '--redis', url], {
            env: { ...process.env, NODE_EXTRA_CA_CERTS: cert },
          }),
        )
      expect(await submit(`redis://:secret@127.0.0.1:${secure.port}`)).toMatchObject({ code: 0 })
      expect(await submit(`rediss://:secret@localhost:${port}`)).toMatchObject({ code: 0 })
      for (const url of [`redis://127.0.0.1:${secure.port}`, `redis://:wrong-one@127.0.0.1:${secure.port}`]) {
        const { code, stderr } = await submit(url)
        expect([code, stderr]).toEqual([3, expect.stringContaining(`redis://127.0.0.1:${secure.port}: `)])
        expect(stderr).not.toContain('wrong-one')
      }
    } finally {
      await secure.kill()
    }
  })

  it('that is not there is told in a line', async () => {
    const { code, stderr } = await trialscan('fleet', 'work', '--redis', `redis://127.0.0.1:${await freePort()}`)
    expect([code, stderr]).toEqual([3, expect.stringContaining('cannot connect to Redis: connect ECONNREFUSED')])
    expect((await trialscan('fleet', 'work', '--redis', 'localhost')).code).toBe(2)
  })
})

it('without BullMQ, submit and work say what to install', async () => {
  const hook = `export const resolve = (name, context, next) => next(name === 'bullmq' ? '@bullmq/nowhere' : name, context)`
  const url = (source: string) => `data:text/javascript,${encodeURIComponent(source)}`
  const preload = url(`import { register } from 'node:module'; register(${JSON.stringify(url(hook))})`)
  const args = ['--import', preload, CLI, 'fleet', 'work', '--redis', 'redis://127.0.0.1']
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  expect([status, stderr]).toEqual([2, expect.stringContaining('npm install bullmq ioredis')])
})

describe.runIf(HAS_REDIS && HAS_S3)('200 trials on S3', () => {
  it('come to what one scan has, whatever happens to workers and to Redis', async () => {
    const bucket = await makeBucket()
    const names = ['mlp-all-zero', 'workers-running', 'workers-tf-devices', 'cnn-raw-and-reductions']
    for (let i = 0; i < 200; i++) {
      await upload(join(FIXTURES, names[i % names.length]!), bucket, `runs/${String(i).padStart(3, '0')}/`)
    }
    const [runs, plan] = [`s3://${bucket}/runs`, `s3://${bucket}/plan`]
    const made = await trialscan('fleet', 'plan', runs, '--out', plan, '--shards', '80', '--format', 'csv', ...S3)
    expect(made.code).toBe(0)
    expect((await trialscan('fleet', 'submit', plan, '--redis', redis, ...S3)).stdout).toContain('80 in the queue')

    let kills = 0
    let seed = 11
    const random = () => {
      seed = (seed * 16_807) % 2_147_483_647
      return seed / 2_147_483_647
    }
    const started: ChildProcess[] = []
    const worker = async (): Promise<void> => {
      for (;;) {
        const child = begin(['fleet', 'work', '--redis', redis, '--drain', '--threads', '0', ...S3])
        started.push(child)
        const timer = kills < 22 ? setTimeout(() => child.kill('SIGKILL') && kills++, 300 + random() * 1200) : undefined
        const { code, signal } = await outcomeOf(child)
        clearTimeout(timer)
        if (signal === null) {
          expect(code).toBe(0)
          if (kills >= 20) return
        }
      }
    }
    const workers = [worker(), worker(), worker(), worker()]
    await sleep(3000)
    await server.kill()
    await sleep(500)
    await server.start()
    // One is so slow that its shard is given to another, and is done twice.
    const slow = begin(['fleet', 'work', '--redis', redis, '--threads', '0', ...S3])
    const slowEnd = outcomeOf(slow)
    // At work: what is stopped before it has reached Redis has not reached it in time.
    await Promise.race([new Promise(resolve => slow.stdout!.once('data', resolve)), sleep(20_000)])
    await sleep(50)
    slow.kill('SIGSTOP')
    await Promise.all(workers)
    slow.kill('SIGCONT')
    await sleep(3000)
    slow.kill('SIGTERM')
    expect((await slowEnd).code).toBe(143)
    expect(kills).toBeGreaterThanOrEqual(20)

    const status = JSON.parse((await trialscan('fleet', 'status', plan, '--format', 'json', ...S3)).stdout)
    expect(status).toMatchObject({ shards: 80, done: 80, failed: [], waiting: [] })
    const merged = await trialscan('fleet', 'merge', plan, '--out', '-', ...S3)
    expect(merged.stdout).toBe((await trialscan('scan', runs, '--format', 'csv', ...S3)).stdout)
    expect(merged.code).toBe(0)
  }, 400_000)
})
