/** Trials that are written to a real S3 server. */

import { spawn } from 'node:child_process'
import { pipeline } from 'node:stream/promises'
import { ListMultipartUploadsCommand } from '@aws-sdk/client-s3'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  createTrial,
  createWriter,
  exportTensorBoard,
  importTensorBoard,
  npyChunks,
  recordStream,
  UsageError,
  verifyTrial,
} from '#dist/index.js'
import { Destination } from '#dist/storage/destination.js'
import { PART_BYTES } from '#dist/storage/s3/upload.js'
import { CLI } from '../cli/run.js'
import { fixtureTrial } from '../support/golden.js'
import { client, ENDPOINT, ENVIRONMENT, HAS_S3, makeBucket, OPTIONS } from '../support/s3.js'

let bucket = ''
beforeAll(async () => {
  if (!HAS_S3) return
  if (ENDPOINT === undefined) throw new Error('expected an S3 server at TRIALSCAN_S3, which TRIALSCAN_REQUIRE asks for')
  bucket = await makeBucket()
}, 60_000)

async function uploadsUnderWay(): Promise<number> {
  const s3 = client()
  const { Uploads = [] } = await s3.send(new ListMultipartUploadsCommand({ Bucket: bucket }))
  s3.destroy()
  return Uploads.length
}

describe.runIf(HAS_S3)('a trial on S3', () => {
  it('has steps of more than 512 MiB, which memory never holds', async () => {
    const path = `s3://${bucket}/long`
    const writer = await createWriter(path, {
      saveConfig: { saveInterval: 1 },
      checksums: true,
      queueByteLength: 16 << 20,
      s3: OPTIONS,
    })
    const [elements, count] = [5 << 20, 28]
    const data = Float32Array.from({ length: elements }, (_, i) => i)
    const before = process.memoryUsage().arrayBuffers
    let most = 0
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage().arrayBuffers - before)
    }, 5)
    await writer.step()
    for (let i = 0; i < count; i++) {
      data[0] = i
      await writer.save(`t${i}`, data)
    }
    await writer.close()
    clearInterval(watch)
    // Three parts and the queue, and what waits to be collected.
    expect(most).toBeLessThan(300 << 20)
    const trial = await createTrial(path, { s3: OPTIONS })
    expect(trial.steps()).toEqual([0])
    const scanned = new Map<string | null, unknown>()
    for await (const { tensor, reductions, error } of trial.scan({ reductions: ['min', 'max'], checkLevel: 'full' })) {
      expect(error).toBe(undefined)
      scanned.set(tensor, [reductions?.min, reductions?.max])
    }
    const expected = Array.from({ length: count }, (_, i) => [`t${i}`, [Math.min(i, 1), elements - 1]] as const)
    expect(scanned).toEqual(new Map(expected))
    await trial.close()
    expect(await uploadsUnderWay()).toBe(0)
  })

  it('has one writer of each worker, however many begin at once', async () => {
    const path = `s3://${bucket}/contested`
    const tries = await Promise.allSettled(
      Array.from({ length: 8 }, () => createWriter(path, { saveConfig: { saveInterval: 1 }, s3: OPTIONS })),
    )
    const [writer, ...more] = tries.flatMap(one => (one.status === 'fulfilled' ? [one.value] : []))
    expect(more).toEqual([])
    for (const one of tries) {
      if (one.status === 'rejected') expect(one.reason.message).toMatch(/expected no part of worker_0 yet, got one/)
    }
    await writer!.step()
    await writer!.save('x', 1)
    await writer!.close()
    await expect(createWriter(path, { s3: OPTIONS })).rejects.toThrow(UsageError)
    expect((await verifyTrial(path, { deep: true, s3: OPTIONS })).ok).toBe(true)
  })

  it('is recorded from a stream, with files in it', async () => {
    const path = `s3://${bucket}/recorded`
    const elements = Float32Array.from({ length: 1 << 20 }, (_, i) => i)
    const bytes = new Uint8Array(elements.buffer)
    const matrix = {
      dtype: 'float32',
      shape: [1 << 10, 1 << 10],
      stride: [1 << 10, 1],
      offset: 0,
      data: elements,
      bytes,
    } as const
    const npy = Buffer.concat([...npyChunks(matrix)])
    const parts = [0, 1, 2].flatMap(step => [
      `{"step": ${step}, "mode": "TRAIN", "name": "loss", "value": ${1 / (step + 1)}}\n`,
      `{"name": "weight", "bytes": ${npy.length}}\n`,
      npy,
    ])
    const child = spawn(process.execPath, [CLI, 'record', '--out', path, '--s3-force-path-style'], {
      env: { ...process.env, ...ENVIRONMENT },
      stdio: ['pipe', 'ignore', 'pipe'],
    })
    let told = ''
    child.stderr.setEncoding('utf8').on('data', text => (told += text))
    const ended = new Promise(resolve => child.on('close', resolve))
    await pipeline(parts, child.stdin)
    expect([await ended, told]).toEqual([0, expect.not.stringContaining('line')])
    const trial = await createTrial(path, { s3: OPTIONS })
    expect([trial.steps({ mode: 'TRAIN' }), trial.loadedAllSteps]).toEqual([[0, 1, 2], true])
    expect((await trial.tensor('loss').value(1)).data).toEqual(Float64Array.of(0.5))
    const { shape, data } = await trial.tensor('weight').value(2)
    expect(shape).toEqual([1 << 10, 1 << 10])
    expect(Buffer.compare(bytes, new Uint8Array((data as Float32Array).slice().buffer))).toBe(0)
    await trial.close()
    expect((await verifyTrial(path, { deep: true, s3: OPTIONS })).ok).toBe(true)
    expect(await uploadsUnderWay()).toBe(0)
    // Where there is a trial already, nothing is recorded.
    await expect(recordStream(['{"step": 0}'], path, { s3: OPTIONS })).rejects.toThrow(UsageError)
  })

  it('goes to runs of TensorBoard on S3, and comes back', async () => {
    const [logs, path] = [`s3://${bucket}/logs`, `s3://${bucket}/imported`]
    const source = await createTrial(fixtureTrial('workers-4').directory, { requireCollections: false })
    const { runs } = await exportTensorBoard(source, logs, { s3: OPTIONS })
    expect(runs).toHaveLength(8)
    await expect(exportTensorBoard(source, logs, { s3: OPTIONS })).rejects.toThrow(/expected no run there yet/)
    const exported = await createTrial(logs, { s3: OPTIONS })
    expect(await importTensorBoard(exported, path, { s3: OPTIONS })).toMatchObject({ problemCount: 0 })
    const imported = await createTrial(path, { s3: OPTIONS })
    expect([imported.workers(), imported.steps()]).toEqual([source.workers(), source.steps()])
    for (const trial of [source, exported, imported]) await trial.close()
    expect((await verifyTrial(path, { deep: true, s3: OPTIONS })).ok).toBe(true)
    expect(await uploadsUnderWay()).toBe(0)
  })

  it('has objects in parts that are there as they are, or not at all', async () => {
    const destination = Destination.at(`s3://${bucket}/objects`, OPTIONS)
    const parts = function* (byte: number, isBroken = false) {
      for (let i = 0; i < 3; i++) yield Buffer.alloc(PART_BYTES - 1, byte)
      if (isBroken) throw new Error('no more')
    }
    await expect(destination.create('x', parts(1, true))).rejects.toThrow('no more')
    expect(await (await destination.look()).exists('x')).toBe(false)
    expect(await destination.create('x', parts(2))).toBe(3 * PART_BYTES - 3)
    expect(await destination.create('x', parts(3))).toBe(null)
    const view = new Uint8Array(3 * PART_BYTES)
    const read = (await destination.look()).readLater!('x', 0, view.length, () => view)
    expect(await read).toBe(3 * PART_BYTES - 3)
    expect(view.subarray(0, -3).every(byte => byte === 2)).toBe(true)
    expect(await uploadsUnderWay()).toBe(0)
    await destination.close()
  })
})
