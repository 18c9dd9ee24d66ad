/** Reads of a job that are under way together: each finds its own bytes in its own window, whatever the order of answers. */

import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Engine } from '#dist/core/engine.js'
import { ReadAhead } from '#dist/scan/worker/records/read-ahead.js'
import { openStore } from '#dist/storage/open.js'
import type { Store } from '#dist/storage/store.js'

/** Byte i of a file is i modulo 251. */
function fill(bytes: Uint8Array, startByte: number): number {
  for (let i = 0; i < bytes.length; i++) bytes[i] = (startByte + i) % 251
  return bytes.length
}

function atOnce(): Store {
  const local = openStore({ kind: 'local', root: '/' })
  const readInto = (_: string, startByte: number, into: Uint8Array) => fill(into, startByte)
  return Object.assign(Object.create(local), { readInto }) as Store
}

function later(underWay: { now: number; most: number }, turns: () => number): Store {
  const local = openStore({ kind: 'local', root: '/' })
  const readLater = async (_: string, startByte: number, byteLength: number, view: () => Uint8Array) => {
    underWay.most = Math.max(underWay.most, ++underWay.now)
    for (let i = turns(); i >= 0; i--) await null
    fill(view(), startByte)
    underWay.now--
    return byteLength
  }
  return Object.assign(Object.create(local), { readLater }) as Store
}

it('gives every read its own bytes', async () => {
  const lengths = fc.array(fc.nat(300), { minLength: 1, maxLength: 40 })
  const turns = fc.infiniteStream(fc.nat(9))
  await fc.assert(
    fc.asyncProperty(lengths, fc.nat(2000), turns, async (lengths, room, delays) => {
      const engine = new Engine()
      const underWay = { now: 0, most: 0 }
      const store = later(underWay, () => delays.next().value)
      const planned = lengths.map((byteLength, i) => ({ store, path: 'x', startByte: i * 7, byteLength }))
      const reads = new ReadAhead(engine, planned, { byteLength: room })
      for (const { startByte, byteLength } of planned) {
        const { window, available } = reads.next()
        expect(await available).toBe(byteLength)
        // Growing memory moves it.
        if (startByte === 21) engine.scoped(() => engine.reserveBytes(engine.byteLength))
        const expected = Array.from({ length: byteLength }, (_, i) => (startByte + i) % 251)
        expect([...engine.view(window, byteLength)]).toEqual(expected)
      }
      const total = lengths.reduce((sum, length) => sum + length, 0)
      if (total <= room && !lengths.includes(0)) expect(underWay.most).toBe(lengths.length)
    }),
    { numRuns: 200 },
  )
})

it.each([
  [true, 1],
  [false, 1],
  [true, 4],
])('keeps the bytes of reads before, if it is asked to; at once: %s, how many: %i', async (isAtOnce, kept) => {
  const lengths = fc.array(fc.nat(300), { minLength: 2, maxLength: 40 })
  const turns = fc.infiniteStream(fc.nat(9))
  await fc.assert(
    fc.asyncProperty(lengths, fc.nat(2000), turns, async (lengths, room, delays) => {
      const engine = new Engine()
      const store = isAtOnce ? atOnce() : later({ now: 0, most: 0 }, () => delays.next().value)
      const planned = lengths.map((byteLength, i) => ({ store, path: 'x', startByte: i * 7, byteLength }))
      const reads = new ReadAhead(engine, planned, { byteLength: room, kept })
      const windows = []
      for (const [i, { startByte, byteLength }] of planned.entries()) {
        const { window, available } = reads.next()
        expect(await available).toBe(byteLength)
        windows.push({ window, startByte, byteLength })
        for (const one of windows.slice(Math.max(0, i - kept))) {
          const expected = new Uint8Array(one.byteLength)
          fill(expected, one.startByte)
          expect(engine.view(one.window, one.byteLength)).toEqual(expected)
        }
      }
    }),
    { numRuns: 200 },
  )
})

it('writes nothing once its job is over', async () => {
  const engine = new Engine()
  const store = later({ now: 0, most: 0 }, () => 5)
  const planned = [0, 1, 2].map(startByte => ({ store, path: 'x', startByte, byteLength: 10 }))
  const reads = new ReadAhead(engine, planned, { byteLength: 100 })
  const { available } = reads.next()
  reads.end()
  await expect(available).rejects.toThrow('after its job had ended')
})
