/** Shards on a real S3 server: written once, whoever writes them, by processes that are killed. */

import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { fleetStatus, PlanPlace } from '#dist/index.js'
import { Destination } from '#dist/storage/destination.js'
import { CLI, outcomeOf } from '../cli/run.js'
import { ROOT } from '../support/golden.js'
import { ENDPOINT, ENVIRONMENT, HAS_S3, makeBucket, OPTIONS, upload } from '../support/s3.js'

const FIXTURES = join(ROOT, 'fixtures/trials')
const TRIALS = 60
let bucket: string

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

beforeAll(async () => {
  if (!HAS_S3) return
  if (ENDPOINT === undefined) throw new Error('expected an S3 server at TRIALSCAN_S3, which TRIALSCAN_REQUIRE asks for')
  bucket = await makeBucket()
}, 60_000)

function begin(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [CLI, ...args], {
    env: { ...process.env, ...ENVIRONMENT, AWS_S3_FORCE_PATH_STYLE: 'true' },
  })
}

const trialscan = (...args: readonly string[]) => outcomeOf(begin(args))

describe.runIf(HAS_S3)('a destination on S3', () => {
  it('keeps what is there, unless it is to be replaced', async () => {
    const destination = Destination.at(`s3://${bucket}/some/place`, OPTIONS)
    const read = async () =>
      Buffer.from(await (await destination.look()).read('a/b.txt', { maxByteLength: 100 })).toString()
    expect(await destination.create('a/b.txt', ['one ', Buffer.from('two')])).toBe(7)
    expect(await read()).toBe('one two')
    expect(await destination.create('a/b.txt', ['three'])).toBe(null)
    expect(await read()).toBe('one two')
    await destination.replace('a/b.txt', 'four')
    expect(await read()).toBe('four')
    await destination.close()
  })

  it('tells what it can’t write', async () => {
    const wrong = { ...OPTIONS, credentials: { accessKeyId: 'nobody', secretAccessKey: 'nothing' } }
    const destination = Destination.at(`s3://${bucket}/some/place`, wrong)
    await expect(destination.create('x', ['x'])).rejects.toMatchObject({ name: 'StoreError', code: 'Denied' })
    const nowhere = Destination.at('s3://trialscan-no-such-bucket/x', OPTIONS)
    await expect(nowhere.create('x', ['x'])).rejects.toMatchObject({ name: 'StoreError', code: 'NotFound' })
  })
})

describe.runIf(HAS_S3)(`${TRIALS} trials on S3`, () => {
  const path = (...args: readonly string[]) => [...args, '--s3-force-path-style']

  it('come to what one scan has, though workers are killed at random and one shard fails for ever', async () => {
    const names = ['mlp-all-zero', 'workers-running', 'workers-tf-devices', 'cnn-raw-and-reductions']
    for (let i = 0; i < TRIALS; i++) {
      await upload(join(FIXTURES, names[i % names.length]!), bucket, `runs/${String(i).padStart(3, '0')}/`)
    }
    const [runs, plan] = [`s3://${bucket}/runs`, `s3://${bucket}/plan`]
    const made = await trialscan(...path('fleet', 'plan', runs, '--out', plan, '--shards', '30', '--format', 'csv'))
    expect([made.code, made.stdout]).toEqual([0, expect.stringContaining(`${TRIALS} trials`)])

    let [kills, seed] = [0, 7]
    const random = () => {
      seed = (seed * 16_807) % 2_147_483_647
      return seed / 2_147_483_647
    }
    const ended = (child: ChildProcess) => new Promise<number | null>(resolve => child.on('close', resolve))
    const worker = async (): Promise<void> => {
      for (;;) {
        const child = begin(path('fleet', 'run', plan, '--all', '--threads', '0'))
        const end = ended(child)
        const timer = kills < 10 ? setTimeout(() => child.kill('SIGKILL') && kills++, 300 + random() * 1500) : undefined
        const code = await end
        clearTimeout(timer)
        if (code !== null) {
          expect(code).toBe(0)
          if (kills >= 8) return
        }
      }
    }
    await Promise.all([worker(), worker(), worker(), worker()])
    expect(kills).toBeGreaterThanOrEqual(8)

    const place = await PlanPlace.open(plan, { s3: OPTIONS })
    const status = await fleetStatus(place)
    expect([status.done, status.shards.length]).toEqual([30, 30])
    // Each table once, and nothing else.
    expect(await place.destination.store.list('shards')).toHaveLength(60)
    await place.close()
    const merged = await trialscan(...path('fleet', 'merge', plan, '--out', '-'))
    const scan = await trialscan(...path('scan', runs, '--format', 'csv'))
    expect(merged.stdout).toBe(scan.stdout)
    expect([merged.code, scan.code]).toEqual([0, 0])
  }, 300_000)

  it('have a report of the table that is there, whoever has written it', async () => {
    const [runs, plan] = [`s3://${bucket}/runs/000`, `s3://${bucket}/plan-3`]
    await trialscan(...path('fleet', 'plan', runs, '--out', plan, '--shards', '1', '--format', 'csv'))
    const place = await PlanPlace.open(plan, { s3: OPTIONS })
    // As one leaves it that is killed before it has written the report, and has cut its table elsewhere.
    expect(await place.destination.create(place.tablePath(0), ['of', ' another'])).toBe(10)
    expect((await trialscan(...path('fleet', 'run', plan, '--shard', '0'))).code).toBe(0)
    expect(await place.report(0)).toMatchObject({ bytes: 10, sha256: sha256('of another') })
    await place.close()
  }, 60_000)

  it('of which one has changed fail by that one alone, and it is named', async () => {
    const [runs, plan] = [`s3://${bucket}/runs`, `s3://${bucket}/plan-2`]
    await trialscan(...path('fleet', 'plan', `${runs}/00*`, '--out', plan, '--shards', '5', '--format', 'parquet'))
    await upload(join(FIXTURES, 'workers-4'), bucket, 'runs/004/')
    const { stdout } = await trialscan(...path('fleet', 'status', plan, '--format', 'json'))
    for (const shard of (JSON.parse(stdout) as { waiting: number[] }).waiting) {
      await trialscan(...path('fleet', 'run', plan, '--shard', String(shard)))
    }
    const { code, stderr } = await trialscan(...path('fleet', 'merge', plan, '--out', '-'))
    expect([code, stderr]).toEqual([
      5,
      expect.stringMatching(/these are missing: \d \(failed 1 times: .*runs\/004: expected the trial as it was/),
    ])
  }, 60_000)
})
