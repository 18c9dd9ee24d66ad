/** Tensors as long as a record can be. */

import { execFile } from 'node:child_process'
import { closeSync, openSync, readSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { createTrial, createWriter } from '#dist/index.js'
import { ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('large')
const EVENTS = 'events/000000000000/000000000000_worker_0.tfevents'

it('a tensor of 4.1 GB is written in little memory, and read back', async () => {
  const path = join(scratch, 'big')
  // In a process of its own, whose memory is known.
  const script = `
    import { createWriter } from ${JSON.stringify(join(ROOT, 'dist/index.js'))}
    const data = new Float32Array(1_025_000_000)
    data.set([1, 0, 1, 1], data.length - 4)
    const writer = await createWriter(${JSON.stringify(path)}, { saveConfig: { saveInterval: 1 }, checksums: true })
    await writer.step()
    await writer.save('big', data, { shape: [1025, 1_000_000] })
    await writer.save('behind', 7)
    await writer.close()
    console.log(process.resourceUsage().maxRSS * 1024)`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
  // Zeros of an array that was never written to are not in memory.
  expect(Number(stdout)).toBeLessThan(500e6)
  const trial = await createTrial(path)
  const found: unknown[] = []
  for await (const { tensor, shape, moments, reductions, error } of trial.scan({ checkLevel: 'full' })) {
    found.push([tensor, error, shape, moments?.zeroCount, reductions?.sum])
  }
  expect(found).toEqual([
    ['big', undefined, [1025, 1_000_000], 1_024_999_997, 3],
    ['behind', undefined, [], 0, 7],
  ])
  await trial.close()
  // The elements are where they were.
  const { size } = statSync(join(path, EVENTS))
  const end = Buffer.alloc(1024)
  const file = openSync(join(path, EVENTS), 'r')
  readSync(file, end, 0, end.length, size - end.length)
  closeSync(file)
  expect(end.indexOf(Buffer.from(Float32Array.of(0, 1, 0, 1, 1).buffer))).toBeGreaterThan(0)
  rmSync(path, { recursive: true })
})

it('one that is longer than a record can be is refused, with what can be done', async () => {
  const path = join(scratch, 'longer')
  const writer = await createWriter(path, { saveConfig: { saveInterval: 1 } })
  await writer.step()
  await writer.save('x', 1)
  const tooLong = new Uint8Array(2 ** 32 - 100)
  expect(() => writer.save('big', tooLong)).toThrow(
    /^big: expected at most 4294967279 bytes in a record, got 4294967\d\d\d: save it in pieces, each a tensor of its own$/,
  )
  await writer.step()
  await writer.close()
  expect((await createTrial(path)).tensorNames()).toEqual(['x'])
})
