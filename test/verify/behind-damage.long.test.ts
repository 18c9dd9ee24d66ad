/** What lies behind damage on S3, 30 ms away: the commands end in the time that its bytes take. */

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { repairTrial, verifyTrial } from '#dist/index.js'
import {
  encodeEvent,
  eventFilePath,
  frameRecord,
  indexFilePath,
  indexFileText,
  TrialWriter,
} from '../../fixtures/event-writer.js'
import { measured } from '../hostile/measured.js'
import { contentsOf } from '../repair/tree.js'
import { FaultyS3 } from '../support/faulty-s3.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('far-damage')
const before = { ...process.env }
let server: FaultyS3

beforeAll(async () => {
  server = await FaultyS3.start()
  server.latencyMs = 30
  Object.assign(process.env, {
    AWS_ENDPOINT_URL_S3: server.endpoint,
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'key',
    AWS_SECRET_ACCESS_KEY: 'secret',
  })
})

afterAll(async () => {
  process.env = before
  await server.stop()
})

it.each(['verify', 'repair'])('%s of an object of zeros under 5,000 entries', async command => {
  const directory = join(scratch, command)
  const writer = new TrialWriter(directory, { numWorkers: 1 })
  const tensors = Array.from(
    { length: 5000 },
    (_, i) => ({ name: `t${i}`, dtype: 'float32', shape: [1], values: [i] }) as const,
  )
  writer.step({ step: 0, mode: 'TRAIN', worker: 0, tensors })
  writer.end()
  for (const path of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    if (!path.includes('.')) continue
    const bytes = readFileSync(join(directory, path))
    server.objects.set(`${command}/${path}`, path === eventFilePath(0, 'worker_0') ? Buffer.alloc(bytes.length) : bytes)
  }
  server.seen.length = 0
  const startedAt = performance.now()
  const { code, stderr } = await measured(
    command,
    `s3://bucket/${command}`,
    ...(command === 'repair' ? ['--out', join(scratch, 'copy')] : []),
    '--s3-force-path-style',
  )
  expect(code, stderr).toBe(4)
  expect(server.seen.length).toBeLessThan(20)
  // It was 150 s for the round trips alone.
  expect(performance.now() - startedAt).toBeLessThan(60_000)
})

it('a record of 200,000 Values is kept byte for byte', async () => {
  const directory = join(scratch, 'values')
  const names = Array.from({ length: 200_000 }, (_, i) => `t${i}`)
  const tensor = { dtype: 'float32', shape: [], values: [1] } as const
  const values = names.map(tag => ({ tag, mode: 'TRAIN', modeStep: 0, tensor }) as const)
  const bytes = frameRecord(encodeEvent({ wallTime: 1, step: 0, values }), { checksum: 'true' })
  const some = [{ name: 't0', dtype: 'float32', shape: [1], values: [1] }] as const
  new TrialWriter(directory, { numWorkers: 1 }).step({ step: 0, mode: 'TRAIN', worker: 0, tensors: some })
  writeFileSync(join(directory, eventFilePath(0, 'worker_0')), bytes)
  const tensor_payload = names.map(tensorname => ({ tensorname, start_idx: 0, length: bytes.length }))
  const meta = { mode: 'TRAIN', mode_step: 0, event_file_name: eventFilePath(0, 'worker_0') } as const
  const index = join(directory, indexFilePath(0, 'worker_0'))
  writeFileSync(index, indexFileText({ meta, tensor_payload, shape_payload: [] }))
  expect((await verifyTrial(directory)).problems).toEqual([])
  const out = join(scratch, 'values-copy')
  expect((await repairTrial(directory, out)).leftOut).toEqual([])
  expect(contentsOf(out)).toEqual(contentsOf(directory))
})
