/** A prefix that is that of no trial: what lies below is listed once, up to a limit, and told. */

import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTrial, repairTrial, type S3Options, type TrialscanError, verifyTrial } from '#dist/index.js'
import { CLI } from '../cli/run.js'
import { FaultyS3 } from '../support/faulty-s3.js'
import { fixtureTrial } from '../support/golden.js'

let server: FaultyS3

beforeEach(async () => {
  server = await FaultyS3.start()
})

afterEach(() => server.stop())

function failureOf(work: Promise<unknown>): Promise<TrialscanError> {
  return work.then(
    () => Promise.reject(new Error('it did not fail')),
    error => error as TrialscanError,
  )
}

/** Trials of some objects each. */
function fill(trials: number, objects: number): void {
  const nothing = Buffer.alloc(0)
  for (let i = 0; i < trials; i++) {
    for (let step = 0; step < objects; step++) {
      const name = String(step).padStart(12, '0')
      server.objects.set(`jobs/train-${String(i).padStart(3, '0')}/events/${name}/${name}_worker_0.tfevents`, nothing)
    }
  }
}

const works: readonly (readonly [string, (s3: S3Options) => Promise<unknown>])[] = [
  ['createTrial', s3 => createTrial('s3://bucket/jobs', { s3 })],
  ['verifyTrial', s3 => verifyTrial('s3://bucket/jobs', { s3, threads: 0 })],
  ['repairTrial', s3 => repairTrial('s3://bucket/jobs', join(import.meta.dirname, 'no-copy'), { s3, threads: 0 })],
]

describe.each(works)('%s', (_, work) => {
  it('lists what is below once, and names the trials', async () => {
    fill(300, 10)
    server.pageKeys = 100
    const error = await failureOf(work(server.options))
    expect(error).toMatchObject({ code: 'MissingCollectionFiles' })
    expect(error.message).toContain('there are trials below it; name one of them: train-000, train-001,')
    expect(error.message).toContain(' and 295 more')
    // A page for a hundred, and some listings of the prefix itself, three pages each.
    expect(server.seen.length).toBeLessThanOrEqual(30 + 15)
  })

  it('lists no more than a limit', async () => {
    fill(300, 100)
    const error = await failureOf(work(server.options))
    expect(error).toMatchObject({ code: 'MissingCollectionFiles', fields: { listed: 10_000 } })
    expect(error.message).toMatch(
      /among the first 10,000 objects there are trials below.* and 95 more \(s3\.listLimit, --s3-/,
    )
    expect(server.seen.length).toBeLessThanOrEqual(10 + 10)
    server.seen.length = 0
    await expect(work({ ...server.options, listLimit: 2000 })).rejects.toMatchObject({ fields: { listed: 2000 } })
    await expect(work({ ...server.options, listLimit: 0 })).rejects.toThrow(' and 295 more')
  })
})

it('a trial is repaired whatever else lies beside it', async () => {
  const { directory } = fixtureTrial('mlp-vanishing')
  for (const path of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    if (statSync(join(directory, path)).isFile())
      server.objects.set(`jobs/${path}`, readFileSync(join(directory, path)))
  }
  for (let i = 0; i < 5000; i++) server.objects.set(`jobs/checkpoints/${String(i).padStart(6, '0')}`, Buffer.alloc(0))
  const out = join(import.meta.dirname, `.copy-${process.pid}`)
  const { rmSync } = await import('node:fs')
  try {
    await repairTrial('s3://bucket/jobs', out, { s3: { ...server.options, listLimit: 1000 }, threads: 0 })
    expect(readdirSync(out)).toContain('events')
  } finally {
    rmSync(out, { recursive: true, force: true })
  }
})

describe('on a terminal', () => {
  const run = promisify(execFile)
  const flags = ['--s3-endpoint', '$ENDPOINT', '--s3-force-path-style', '--s3-list-limit', '1000']
  const command = `"${process.execPath}" "${CLI}" show s3://bucket/jobs loss ${flags.join(' ')}`
  const ask = (answer: string): Promise<{ code?: number; stdout: string }> =>
    run('/bin/sh', ['-c', `{ sleep 2; printf '${answer}\\n'; sleep 4; } | script -qec '${command}' /dev/null`], {
      env: {
        ...process.env,
        ENDPOINT: server.endpoint,
        AWS_REGION: 'us-east-1',
        AWS_ACCESS_KEY_ID: 'key',
        AWS_SECRET_ACCESS_KEY: 'secret',
      },
    }).catch((error: { code: number; stdout: string }) => error)

  it.runIf(process.platform === 'linux')('a question names what was found', async () => {
    fill(30, 100)
    const no = await ask('n')
    expect(no.stdout).toContain('among the first 1,000 objects there are trials below')
    expect(no.stdout).toContain('List everything? [y/N]')
    expect(server.seen.length).toBeLessThan(15)
    // Once, with the question.
    expect(no.stdout.split('there are trials below').length).toBe(2)
    expect(no.code).toBe(5)
    const yes = await ask('y')
    expect(yes.stdout).toContain('but there are trials below it; name one of them: train-000')
    expect(yes.stdout).toContain(' and 25 more')
  })
})
