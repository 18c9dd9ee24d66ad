/** Tensors of more than 4 GiB, in sparse files. */

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, createReadStream, ftruncateSync, openSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('huge')
/** 5 GiB of float32. */
const SHAPE = [5, 1 << 14, 1 << 14]
const COUNT = SHAPE.reduce((product, size) => product * size, 1)
const VALUES: readonly (readonly [at: number, value: number])[] = [
  [0, 3],
  [COUNT / 2, -7],
  // Behind 4 GiB.
  [2 ** 30 + 12_345, 2],
  [COUNT - 1, 11],
]
const MEMORY_KB = 800_000

/** @param values by element; all others are 0 */
function sparse(name: string, values: typeof VALUES): string {
  const path = join(scratch, name)
  const entry = { dtype: 'F32', shape: SHAPE, data_offsets: [0, 4 * COUNT] }
  const header = new TextEncoder().encode(JSON.stringify({ w: entry }))
  const file = openSync(path, 'w')
  const length = new Uint8Array(8)
  new DataView(length.buffer).setBigUint64(0, BigInt(header.length), true)
  writeSync(file, length)
  writeSync(file, header)
  ftruncateSync(file, 8 + header.length + 4 * COUNT)
  for (const [at, value] of values) writeSync(file, Float32Array.of(value), 0, 4, 8 + header.length + 4 * at)
  closeSync(file)
  return path
}

/** Runs a program in a process of its own, and says how much memory that took. */
function inProcess(
  program: string,
  ...values: readonly string[]
): { readonly answer: unknown; readonly peakKb: number } {
  const source = `
    import { createTrial, diff } from 'trialscan'
    const answer = await (async (...places) => { ${program} })(...process.argv.slice(1))
    const peakKb = process.resourceUsage().maxRSS
    console.log(JSON.stringify({ answer, peakKb }))`
  const run = spawnSync(process.execPath, ['--input-type=module', '-e', source, ...values], {
    encoding: 'utf8',
    cwd: join(import.meta.dirname, '..'),
  })
  expect(run.stderr).toBe('')
  return JSON.parse(run.stdout)
}

/** SHA-256 of a file's last bytes. */
async function sha256Behind(path: string, start: number): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of createReadStream(path, { start, highWaterMark: 1 << 22 })) hash.update(piece)
  return hash.digest('hex')
}

describe('a tensor of 5 GiB', () => {
  const path = sparse('a.safetensors', VALUES)

  it('is digested in bounded memory, whether its parts are combined or streamed', async () => {
    const { answer, peakKb } = inProcess(
      `const trial = await createTrial(places[0], { threads: 2 })
      const found = []
      for (const reductions of [['crc32c'], ['crc32c', 'sha256']])
        for await (const row of trial.scan({ reductions })) found.push(row.error?.message ?? row.reductions)
      await trial.close()
      return found`,
      path,
    )
    const [combined, streamed] = answer as [{ crc32c: string }, { crc32c: string; sha256: string }]
    expect(combined.crc32c).toBe(streamed.crc32c)
    expect(streamed.sha256).toBe(await sha256Behind(path, statSync(path).size - 4 * COUNT))
    expect(peakKb).toBeLessThan(MEMORY_KB)
  }, 600_000)

  for (const threads of [0, 2]) {
    it(`is reduced and sketched on ${threads} threads, in bounded memory`, () => {
      const { answer, peakKb } = inProcess(
        `const trial = await createTrial(places[0], { threads: ${threads} })
        const rows = []
        for await (const row of trial.scan({ reductions: ['min', 'max', 'sum', 'nan_count', 'zero_count', '~p50'] })) {
          rows.push([row.error?.message ?? null, row.shape, row.reductions])
        }
        await trial.close()
        return rows`,
        path,
      )
      expect(answer).toEqual([
        [null, SHAPE, { min: -7, max: 11, sum: 9, nan_count: 0, zero_count: COUNT - 4, '~p50': 0 }],
      ])
      expect(peakKb).toBeLessThan(MEMORY_KB)
    }, 600_000)
  }

  it('is compared, the first difference behind 4 GiB', () => {
    const other = sparse('b.safetensors', [...VALUES.slice(0, 3), [2 ** 30 + 99_999, 0.5], [COUNT - 1, 12]])
    const { answer, peakKb } = inProcess(
      `const [a, b] = await Promise.all(places.map(place => createTrial(place)))
      const { divergence } = await diff(a, b)
      await Promise.all([a.close(), b.close()])
      return divergence`,
      path,
      other,
    )
    expect(answer).toMatchObject({ element: [4, 6, 1695], kind: 'values' })
    expect(peakKb).toBeLessThan(MEMORY_KB)
  }, 600_000)
})
