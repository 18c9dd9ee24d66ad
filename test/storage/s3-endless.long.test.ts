/** A server that lists ever new keys below a prefix: whoever asks gets an error before memory runs out. */

import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { CLI } from '../cli/run.js'
import { type Fault, FaultyS3 } from '../support/faulty-s3.js'

let server: FaultyS3

beforeEach(async () => {
  server = await FaultyS3.start()
  server.objects.set('t/collections/000000000/worker_0_collections.json', Buffer.from('{}'))
})

afterEach(() => server.stop())

/** A page of a thousand index files, and the way to the next. */
const endlessPage: Fault = (answer, serve, request) => {
  const query = new URL(request.url!, 'http://host').searchParams
  const prefix = query.get('prefix') ?? ''
  if (query.has('delimiter') || !'t/index/'.startsWith(prefix)) {
    serve()
    return
  }
  const page = Number(query.get('continuation-token') ?? 0)
  const first = page * 1000
  const contents = Array.from({ length: 1000 }, (_, i) => {
    const name = `${String(page).padStart(9, '0')}/${String(first + i).padStart(12, '0')}`
    return `<Contents><Key>t/index/${name}_worker_0.json</Key><ETag>"${first + i}"</ETag><Size>1000</Size></Contents>`
  })
  const next = `<IsTruncated>true</IsTruncated><NextContinuationToken>${page + 1}</NextContinuationToken>`
  answer.end(`<ListBucketResult>${next}${contents.join('')}</ListBucketResult>`)
}

it.each([
  ['ls', 's3://bucket/t'],
  ['verify', 's3://bucket/t'],
  ['repair', 's3://bucket/t', '--out', join(import.meta.dirname, 'no-copy')],
])('%s', async (...args) => {
  server.faultOf = () => endlessPage
  const env = {
    ...process.env,
    NODE_OPTIONS: '--max-old-space-size=100',
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'key',
    AWS_SECRET_ACCESS_KEY: 'secret',
  }
  const flags = ['--s3-endpoint', server.endpoint, '--s3-force-path-style']
  const failure = await promisify(execFile)(process.execPath, [CLI, ...args, ...flags], { env, timeout: 120_000 }).then(
    () => Promise.reject(new Error('it did not fail')),
    (error: { code: number; stderr: string }) => error,
  )
  expect([failure.code, failure.stderr]).toEqual([
    3,
    expect.stringMatching(/the listing of bucket bucket is too long: expected at most 1\d\d,\d\d\d objects, got more/),
  ])
  // A page at a time, and no page twice.
  expect(server.seen.length).toBeLessThan(250)
})
