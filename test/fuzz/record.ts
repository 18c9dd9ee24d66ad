/**
 * One record through the core, in a way in which it can't look beyond the record unnoticed: between bytes of one kind,
 * and at the very end of the memory behind bytes of another kind, which must make no difference. There one byte more is a trap.
 */

import { KnownMoments, MomentsRow, RecordSlot } from '#dist/core/border/abi.js'
import { type Core, instantiateCore } from '#dist/core/border/module.js'
import { frameRecord } from '../../fixtures/event-writer.js'
import { type Chance, concat, mutateBytes, utf8 } from './bytes.js'
import { mutateEvent } from './message.js'

/** The tags that records are asked for; the first stands for any. */
export const TAGS = [null, 't', '', 'fc.weight'] as const

/** What is asked of a record, and the record. An input of the fuzzer is these two, the first in one byte. */
export interface RecordInput {
  /** 0 none, 1 minimal, 2 full. */
  readonly level: number
  readonly tag: (typeof TAGS)[number]
  /** Whether the index entry's length is the record's; else it is not told. */
  readonly isLengthAsked: boolean
  readonly isTornasole: boolean
  readonly frame: Uint8Array
  /** What lies in the frame, where the frame was put around it; null where the frame is part of the input. */
  readonly payload: Uint8Array | null
}

/** Bits of the first byte: level (2), tag (2), length asked, tornasole, whole frame, true checksum. */
export function readRecordInput(input: Uint8Array): RecordInput {
  const control = input[0] ?? 0
  const rest = input.subarray(1)
  const isFrame = (control & 64) !== 0
  return {
    level: Math.min(control & 3, 2),
    tag: TAGS[(control >> 2) & 3]!,
    isLengthAsked: (control & 16) !== 0,
    isTornasole: (control & 32) !== 0,
    frame: isFrame ? rest : frameRecord(rest, { checksum: control & 128 ? 'true' : 'constant' }),
    payload: isFrame ? null : rest,
  }
}

export function recordInput(control: number, rest: Uint8Array): Uint8Array {
  return concat([Uint8Array.of(control), rest])
}

/** Mutates the Event, or, once in eight, the frame around it; and sometimes what is asked. */
export function mutateRecord(input: Uint8Array, chance: Chance, other: () => Uint8Array): Uint8Array {
  const control = chance.once(3) ? chance.below(256) & ~64 : input[0]! & ~64
  const payload = payloadOf(input)
  const mutated = chance.once(16) ? payload : mutateEvent(payload, chance, () => payloadOf(other()))
  if (!chance.once(8)) return recordInput(control, mutated)
  const frame = frameRecord(mutated, { checksum: chance.once(2) ? 'true' : 'constant' })
  return recordInput(control | 64, mutateBytes(frame, chance, [frame.subarray(0, 12), frame.subarray(-4)]))
}

const payloads = new WeakMap<Uint8Array, Uint8Array>()

/** The Event of an input: one view of it, so that it is taken apart once. */
function payloadOf(input: Uint8Array): Uint8Array {
  const payload = payloads.get(input) ?? (input[0]! & 64 ? input.subarray(13, -4) : input.subarray(1))
  payloads.set(input, payload)
  return payload
}

const POISONS = [0x00, 0x08, 0x0a, 0x12, 0x42, 0x7f, 0x80, 0xff] as const
const MAX_RECORD_BYTES = 1 << 18
/** Readable bytes around every buffer, as assembly/arena.ts promises them. */
const PADDING = 128
const PAGE_BYTES = 1 << 16
const ROW_WORDS = MomentsRow.size / 4
/** Fields of a slot that are addresses in the record. */
const ADDRESSES = ['tag', 'data', 'value'] as const

/** Scans records one by one, each in two places. */
export class RecordProbe {
  readonly #core: Core
  readonly #at: (name: keyof typeof RecordSlot) => number
  readonly #slot: number
  readonly #row: number
  readonly #tags: readonly (readonly [number, number])[]
  readonly #frame: number
  readonly #mark: number
  /** Views of the core's memory, made again when it has grown. */
  #bytes!: Uint8Array
  #words!: Uint32Array

  constructor() {
    const core = instantiateCore()
    this.#core = core
    core.arenaReset()
    this.#slot = core.arenaReserve(RecordSlot.size)
    this.#row = core.arenaReserve(MomentsRow.size)
    this.#at = name => (this.#slot + RecordSlot[name]) / 4
    const texts = TAGS.map(tag => utf8(tag ?? ''))
    this.#tags = texts.map((text, i) => [TAGS[i] === null ? 0 : core.arenaReserve(text.length), text.length])
    this.#frame = core.arenaReserve(MAX_RECORD_BYTES + 2 * PADDING) + PADDING
    this.#mark = core.arenaMark()
    // Room for what the walk writes down, and for the record at the end.
    core.memory.grow(MAX_RECORD_BYTES / PAGE_BYTES + 16)
    this.#lookAgain()
    texts.forEach((text, i) => {
      this.#bytes.set(text, this.#tags[i]![0])
    })
  }

  /**
   * Scans a record in the middle of the memory and at its end, behind other bytes.
   * @returns its status
   * @throws where the place makes a difference, and what the core throws
   */
  check(input: RecordInput): number {
    const { frame } = input
    if (frame.length > MAX_RECORD_BYTES) throw new RangeError(`a record of ${frame.length} bytes is too long to check`)
    const middle = this.#scan(input, this.#frame, 0x55)
    const poison = POISONS[frame.length % POISONS.length]!
    const end = this.#scan(input, this.#core.memory.buffer.byteLength - frame.length, poison)
    if (!isSame(middle, end)) throw new Error(`it matters where the record lies, or what is around it (${poison})`)
    return middle[0]!
  }

  /** What was found, and the row, and the dimensions: as words, addresses counted from the record. */
  #scan(input: RecordInput, address: number, poison: number): Uint32Array {
    const { frame, level } = input
    this.#core.arenaRelease(this.#mark)
    this.#bytes.fill(poison, address - PADDING, address + frame.length + PADDING)
    this.#bytes.set(frame, address)
    const [tag, tagLength] = this.#tags[TAGS.indexOf(input.tag)]!
    const asked = this.#words
    asked.fill(0, this.#at('frame'), this.#at('size'))
    asked[this.#at('frame')] = address
    asked[this.#at('frameLength')] = frame.length
    asked[this.#at('askedLength')] = input.isLengthAsked ? frame.length : 0
    asked[this.#at('askedTag')] = tag
    asked[this.#at('askedTagLength')] = tagLength
    asked[this.#at('askedTornasole')] = input.isTornasole ? 1 : 0
    // -1 as a float64: any step.
    asked[this.#at('askedStep') + 1] = 0xbff00000
    this.#core.scanRecords(this.#slot, 1, level, this.#row, KnownMoments.all)
    this.#lookAgain()
    const words = this.#words
    for (const name of ADDRESSES) if (words[this.#at(name)] !== 0) words[this.#at(name)]! -= address
    const start = this.#at('status')
    const slotWords = this.#at('size') - start
    const rank = words[this.#at('rank')]!
    const dims = words[this.#at('dims')]! / 4
    const outcome = new Uint32Array(slotWords + ROW_WORDS + 2 * rank)
    outcome.set(words.subarray(start, start + slotWords))
    outcome.set(words.subarray(this.#row / 4, this.#row / 4 + ROW_WORDS), slotWords)
    if (rank > 0) outcome.set(words.subarray(dims, dims + 2 * rank), slotWords + ROW_WORDS)
    return outcome
  }

  #lookAgain(): void {
    const { buffer } = this.#core.memory
    if (this.#bytes?.buffer === buffer) return
    this.#bytes = new Uint8Array(buffer)
    this.#words = new Uint32Array(buffer)
  }
}

function isSame(a: Uint32Array, b: Uint32Array): boolean {
  return a.length === b.length && a.every((word, i) => word === b[i])
}
