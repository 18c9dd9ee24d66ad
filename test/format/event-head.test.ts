/** What an Event holds, told without its elements: odd forms. What is usual, event-files.test.ts has. */

import { describe, expect, it } from 'vitest'
import { type EventHead, type FileBytes, MalformedEvent, walkEventHead } from '#dist/format/event-head.js'
import { encodeEvent } from '../../fixtures/event-writer.js'
import { thrownBy } from '../support/scanning.js'

const tensor = { dtype: 'float32', shape: [1], values: [1] } as const

function headOf(bytes: Uint8Array): EventHead {
  const all: FileBytes = {
    has: () => true,
    byte: at => bytes[at]!,
    slice: (at, byteLength) => bytes.subarray(at, at + byteLength),
  }
  return walkEventHead(all, 0, bytes.length).next().value as EventHead
}

describe('the head of an Event', () => {
  it('has the mode that is told last, even if that is none, as the core has it', () => {
    const modes = (plugins: [string, string][]) =>
      headOf(encodeEvent({ wallTime: 0, step: 0, tag: 't', tensor, plugins })).values.map(value => [
        value.mode,
        value.modeStep,
      ])
    expect(
      modes([
        ['mode', '1'],
        ['mode', '2'],
        ['mode_step', '3'],
      ]),
    ).toEqual([[2, 3]])
    expect(
      modes([
        ['mode', '1'],
        ['mode', 'x'],
        ['mode_step', '3'],
        ['mode_step', ''],
      ]),
    ).toEqual([[0, -1]])
    expect(
      modes([
        ['mode', '5'],
        ['mode_step', '1234567890123456'],
      ]),
    ).toEqual([[0, -1]])
    expect(
      modes([
        ['mode', '1'],
        ['mode', '1'.repeat(100)],
      ]),
    ).toEqual([[0, -1]])
    expect(
      modes([
        ['mode', '1'],
        ['p'.repeat(100_000), '2'],
      ]),
    ).toEqual([[1, -1]])
  })

  it('is none where a group is left open', () => {
    const good = encodeEvent({ wallTime: 0, step: 0, tag: 't', tensor })
    // Field 15, wire types 3 and 4: a group begins and ends.
    expect(headOf(Buffer.concat([good, Buffer.of(0x7b, 0x7c)])).values.length).toBe(1)
    expect(thrownBy(() => headOf(Buffer.concat([good, Buffer.of(0x7b)])))).toBeInstanceOf(MalformedEvent)
    expect(thrownBy(() => headOf(Buffer.concat([good, Buffer.of(0x7c)])))).toBeInstanceOf(MalformedEvent)
  })

  it('has tags to the letter, a byte order mark included', () => {
    expect(headOf(encodeEvent({ wallTime: 0, step: 0, tag: '\ufefft', tensor })).values[0]?.tag).toBe('\ufefft')
  })
})
