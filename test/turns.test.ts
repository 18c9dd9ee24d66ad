/** Long work on the calling thread lets signals and timers have their turn. Turns are counted, not timed. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { sortedInTurns } from '#dist/base/turns.js'
import { Output } from '#dist/cli/output.js'
import { columnLines } from '#dist/cli/terminal.js'
import { readDistributed } from '#dist/format/checkpoint/dcp/dcp.js'
import { createTrial } from '#dist/index.js'
import { pump } from '#dist/scan/runner/pump.js'
import { StatisticTable } from '#dist/view/columns.js'
import { SHOWN_STATISTICS } from '#dist/view/data.js'
import { withHeader } from '../fixtures/checkpoint-writer.js'
import { uniform } from '../fixtures/random.js'
import { bytesOf, distributedMetadata, pickled, tensor, torchZip } from './support/pickles.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('turns')

/** The turns of the event loop that others get while work runs. */
async function turnsOf<T>(work: () => Promise<T>): Promise<{ readonly turns: number; readonly result: T }> {
  let turns = 0
  let isOver = false
  const count = (): void => {
    turns++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const result = await work()
  isOver = true
  return { turns, result }
}

function busy(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until; );
}

describe('others have their turn', () => {
  it('while a list is sorted, which comes out as sort has it', async () => {
    const random = uniform(1)
    const items = Array.from({ length: 100_000 }, (_, i) => ({ key: Math.floor(random() * 5000), i }))
    const compare = (a: (typeof items)[0], b: (typeof items)[0]): number => a.key - b.key
    const { turns, result } = await turnsOf(() => sortedInTurns(items, compare))
    const order = (list: typeof items): string => list.map(({ i }) => i).join()
    expect(order(result)).toBe(order([...items].sort(compare)))
    expect(turns).toBeGreaterThan(1)
    expect(await sortedInTurns([], compare)).toEqual([])
    expect(await sortedInTurns(result.slice(0, 3), compare)).toEqual(result.slice(0, 3))
  })

  it('while a checkpoint of very many tensors is opened', async () => {
    const count = 60_000
    const entries = Array.from(
      { length: count },
      (_, i) => `"layers.${count - i}.w":{"dtype":"U8","shape":[1],"data_offsets":[${i},${i + 1}]}`,
    )
    const path = join(scratch, 'many.safetensors')
    writeFileSync(path, withHeader(`{${entries.join(',')}}`, new Uint8Array(count)))
    const { turns, result } = await turnsOf(() => createTrial(path))
    expect(result.tensorNames().length).toBe(count)
    // Of its header, its names, its records, its collections: each some thousand at a time.
    expect(turns).toBeGreaterThan(60)
    await result.close()
  })

  it('while the metadata of a distributed checkpoint of very many tensors are read', async () => {
    const count = 10_000
    const piece = torchZip({
      'data.pkl': pickled(tensor({ count: 6, size: [2, 3], stride: [3, 1] })),
      'data/0': new Uint8Array(24),
      version: bytesOf('3\n'),
    })
    const chunk = { offsets: [0, 0], sizes: [2, 3], place: { file: '__0_0.distcp', start: 0, length: piece.length } }
    const pieces = Array.from(
      { length: count },
      (_, i) => [`layers.${i}.w`, { size: [2, 3], chunks: [chunk] }] as const,
    )
    const fileOf = (path: string, bytes: Uint8Array) => {
      const read = async (start: number, length: number) => bytes.subarray(start, start + length)
      return { path, url: path, byteLength: bytes.length, read }
    }
    const metadata = fileOf('.metadata', distributedMetadata(Object.fromEntries(pieces)))
    const around = { paths: [], open: async (path: string) => fileOf(path, piece) }
    const { turns, result } = await turnsOf(() => readDistributed(metadata, around))
    expect(result.tensors.length).toBe(count)
    expect(turns).toBeGreaterThan(3)
  })

  it('while numbers are packed for a page', async () => {
    const count = 100_000
    const table = new StatisticTable(count, 1)
    const random = uniform(2)
    for (const name of SHOWN_STATISTICS) for (let i = 0; i < count; i++) table.set(name, i, 0, random())
    const { turns, result } = await turnsOf(() => table.pack())
    expect(result.map(({ name }) => name)).toEqual(SHOWN_STATISTICS)
    expect(turns).toBeGreaterThan(3)
  })

  it('while lines are written to a file, which takes them at once', async () => {
    const path = join(scratch, 'lines')
    const { turns } = await turnsOf(async () => {
      const output = await Output.open(path)
      const line = `${'x'.repeat(70_000)}\n`
      function* lines(): Generator<string> {
        for (let i = 0; i < 20; i++) {
          busy(12)
          yield line
        }
      }
      await output.writeAll(lines())
      await output.end()
    })
    expect(turns).toBeGreaterThan(18)
  })

  it('while a table is measured', () => {
    const rows = Array.from({ length: 10_000 }, (_, i) => [`name ${i}`, `${i}`])
    const texts = [...columnLines(rows, [1])]
    expect(texts.slice(0, 3)).toEqual(['', '', 'name 0        0\n'])
    expect(texts.length).toBe(rows.length + 2)
  })

  it('between replies that are all there', async () => {
    const plans = Array.from({ length: 20 }, (_, i) => i)
    const { turns } = await turnsOf(async () => {
      for await (const { plan } of pump(plans, async plan => plan, { ahead: 20 })) {
        expect(plan).toBeLessThan(20)
        busy(12)
      }
    })
    expect(turns).toBeGreaterThan(15)
  })
})
