/** Tensors of more than 4 GiB: what is planned of them, and how they are read of a store that makes requests. */

import { describe, expect, it } from 'vitest'
import { KnownMoments } from '#dist/core/border/abi.js'
import { FRAMING_LENGTH } from '#dist/core/border/framing.js'
import { withEngine } from '#dist/core/engines.js'
import { Moments } from '#dist/core/moments.js'
import { RECORD_END, RecordHeads } from '#dist/scan/catalog/checkpoint/record-head.js'
import { sourceRecord } from '#dist/scan/catalog/checkpoint/source-record.js'
import { columnsOf } from '#dist/scan/job/plan/coalesce.js'
import { DEFAULT_MEMORY, PART_BYTES, windowByteLength } from '#dist/scan/job/plan/memory.js'
import { planJobs } from '#dist/scan/job/scan-job.js'
import { openLarge } from '#dist/scan/worker/records/large.js'
import { contentsOf } from '#dist/scan/worker/records/tensor-head.js'
import { ComposedStore } from '#dist/storage/composed/composed-store.js'
import { TableBuilder } from '#dist/storage/composed/table-builder.js'
import type { Store } from '#dist/storage/store.js'

const SHAPE = [100, 1 << 14, 1 << 14]
const BYTES = SHAPE.reduce((product, size) => product * size, 4)
const BASE = { kind: 'local', root: '.' } as const

/** 100 GiB of float32, all 2 but a 7 at the end of the file, on a store that makes requests. */
function remote(): { readonly store: ComposedStore; readonly byteLength: number } {
  const builder = new TableBuilder(RECORD_END)
  builder.begin('w#0', 'w')
  const tensor = { name: 'w', dtype: 'float32', shape: SHAPE, blocks: [{ file: 'w', start: 8 }] } as const
  const { byteLength } = builder.add(sourceRecord(3, tensor, new RecordHeads()))
  const fill = (start: number, view: Uint8Array): Uint8Array => {
    const [two, seven] = [2, 7].map(value => new Uint8Array(Float32Array.of(value).buffer))
    for (let i = 0; i < view.length; i++) view[i] = (start + i < BYTES + 4 ? two : seven)![(start + i) % 4]!
    return view
  }
  const read = async (_: string, start: number, length: number, view: () => Uint8Array): Promise<number> => {
    fill(start, view())
    return length
  }
  const base = {
    url: (path: string) => path,
    readInto: (path: string, start: number, view: Uint8Array) => read(path, start, view.length, () => view),
    readLater: read,
    async stream(_: string, start: number, length: number, take: (chunk: Uint8Array) => void) {
      for (let at = 0; at < length; at += 1 << 16)
        take(fill(start + at, new Uint8Array(Math.min(1 << 16, length - at))))
      return length
    },
  } as unknown as Store
  return { store: new ComposedStore(base, { kind: 'composed', base: BASE, tables: [builder.finish()] }), byteLength }
}

describe('a tensor of 100 GiB', () => {
  const place = (byteLength: number) => ({ file: 'w#0', tag: 'w', startByte: 0, byteLength, step: 3 })

  it('is told by its head', () => {
    const head = new RecordHeads().of(3, 'w', 'float32', SHAPE, BYTES)
    expect(contentsOf(head, head.length + BYTES + RECORD_END.length)).toMatchObject({
      dtype: 'float32',
      shape: SHAPE,
      elementCount: BYTES / 4,
      kind: 'content',
      dataOffset: head.length,
      dataByteLength: BYTES,
      eventStep: 3,
    })
  })

  it('is cut into parts where a store puts it together, and nowhere else', () => {
    const plan = (kind: 'composed' | 'local', byteLength: number) => {
      const store = kind === 'local' ? BASE : { kind, base: BASE, tables: [] }
      const context = { store, checkLevel: 1, memory: DEFAULT_MEMORY, known: 0 }
      return [...planJobs([place(byteLength)], context)].map(({ job }) => job.kind)
    }
    expect(plan('local', BYTES)).toEqual(['scan'])
    expect(plan('composed', BYTES)).toEqual(new Array(Math.ceil(BYTES / PART_BYTES)).fill('part'))
  })

  it('is read part by part of a store that makes requests', async () => {
    const { store, byteLength } = remote()
    expect(byteLength).toBeGreaterThan(BYTES + FRAMING_LENGTH)
    const job = { ...columnsOf([place(byteLength)]), checkLevel: 2, windowByteLength: windowByteLength(DEFAULT_MEMORY) }
    const parts = Math.ceil(byteLength / PART_BYTES)
    await withEngine(async engine => {
      const counts = { readBytes: 0, reads: 0 }
      const large = await openLarge(job, 0, engine, store, counts, DEFAULT_MEMORY)
      const asked = { kept: undefined, sketch: null, digests: null }
      const { rows, checksums } = await large.reduceParts(parts - 2, 2, parts, KnownMoments.all, asked)
      // Behind whole blocks nothing is left for the last part but the end of the record.
      const last = new Moments('float32', rows)
      expect(checksums.length).toBe(2)
      const count = Number(last.reduction('count'))
      expect([last.reduction('max'), last.reduction('min')]).toEqual([7, 2])
      expect(last.reduction('sum')).toBe(2 * count + 5)
      expect(counts.readBytes).toBeLessThan(2 * PART_BYTES)
    })
  })
})
