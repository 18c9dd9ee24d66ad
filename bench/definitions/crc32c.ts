/** CRC-32C of buffers, and of short records. */
import { crc32c as bytewise, elementBytes, encodeEvent, frameRecord } from '../../fixtures/event-writer.js'
import { uniform } from '../../fixtures/random.js'
import { type Case, contender, type Definition, expectSame, type Options, sizeName } from '../definition.js'
import { single } from '../engines/answers.js'
import * as awsCrypto from '../engines/aws-crypto.js'
import * as native from '../engines/native.js'
import * as nodeRs from '../engines/node-rs.js'
import * as ours from '../engines/ours.js'
import type { Records } from '../engines/record.js'
import { scratchFile } from '../scratch.js'

const KIB = 1024
const MIB = KIB * KIB

/** Bytes of a buffer, and of all buffers of a run: more than one, since some addresses are luckier than others. */
const SIZES = [
  [64, 16 * KIB],
  [KIB, 32 * KIB],
  [4 * KIB, 128 * KIB],
  [64 * KIB, 512 * KIB],
  [MIB, 4 * MIB],
  [64 * MIB, 64 * MIB],
] as const

const RECORD_PAYLOAD = 100
const RECORD_COUNT = 4096

export const crc32c: Definition = {
  name: 'crc32c',
  measures: 'CRC-32C of buffers that are in memory (ours: in the core’s memory), one call for each; framed records',
  *cases({ quick }: Options): Generator<Case> {
    for (const [byteLength, total] of SIZES) {
      if (quick && total > 8 * MIB) continue
      const data = randomBytes(total)
      let expected = 0
      for (let at = 0; at < total; at += byteLength) expected ^= bytewise(data.subarray(at, at + byteLength))
      const wrong = expectSame(expected >>> 0)
      yield {
        size: sizeName(byteLength),
        byteLength: total,
        contenders: [
          contender(ours.NAME, ours.crc32c(data, byteLength), wrong),
          ...crcInC('', ['crc32c', scratchFile(data), byteLength], wrong),
          contender(nodeRs.NAME, nodeRs.crc32c(data, byteLength), wrong),
          contender(awsCrypto.NAME, awsCrypto.crc32c(data, byteLength), wrong),
        ],
      }
    }
    yield recordCase()
  },
}

function crcInC(label: string, request: readonly (string | number)[], wrong: (crc: number) => string | undefined) {
  return native.hasCrc32 ? native.contenders(label, request, single(wrong)) : []
}

/** Both checksums of each record. The core's entry for a run of records walks the Events as well. */
function recordCase(): Case {
  const step = 7
  const { records, payloads } = makeRecords(step)
  const wrong = expectSame<number>(RECORD_COUNT)
  return {
    size: `records of ${RECORD_PAYLOAD} B`,
    byteLength: records.bytes.length,
    records: RECORD_COUNT,
    contenders: [
      contender(`${ours.NAME}, walk included`, ours.walkInCore(records, 'full'), wrong),
      contender(`${ours.NAME}, payloads, a call each`, ours.crc32cOf(payloads), expectSame(xorOf(payloads))),
      ...crcInC('', ['records', scratchFile(records.bytes), RECORD_PAYLOAD], wrong),
    ],
  }
}

function makeRecords(step: number): { records: Records; payloads: Uint8Array[] } {
  const content = elementBytes('float32', [1, 2, 3, 4, 5, 6, 7, 8])
  const tensor = { dtype: 'float32', shape: [8], content, dimNames: false } as const
  const payloadOf = (tag: string) => encodeEvent({ wallTime: 1.7e9, step, values: [{ tag, tensor }] })
  const tagLength = RECORD_PAYLOAD - payloadOf('').length - 2
  const tags = Array.from({ length: RECORD_COUNT }, (_, i) => `${i}`.padStart(tagLength, 'gradient/'))
  const payloads = tags.map(payloadOf)
  const framed = payloads.map(payload => frameRecord(payload, { checksum: 'true' }))
  const byteLength = RECORD_PAYLOAD + 16
  const frames = framed.map((_, i) => ({ startByte: i * byteLength, byteLength }))
  return { records: { bytes: new Uint8Array(Buffer.concat(framed)), frames, tags, step }, payloads }
}

function xorOf(payloads: readonly Uint8Array[]): number {
  return payloads.reduce((all, payload) => all ^ bytewise(payload), 0) >>> 0
}

function randomBytes(byteLength: number): Uint8Array {
  const random = uniform(1)
  const words = new Uint32Array(byteLength / 4)
  for (let i = 0; i < words.length; i++) words[i] = random() * 4294967296
  return new Uint8Array(words.buffer)
}
