/** CRC-32C of buffers. */
import { crc32c as bytewise } from '../../fixtures/event-writer.js'
import { uniform } from '../../fixtures/random.js'
import { type Case, contender, type Definition, expectSame, type Options, sizeName } from '../definition.js'
import * as awsCrypto from '../engines/aws-crypto.js'
import * as nodeRs from '../engines/node-rs.js'
import * as ours from '../engines/ours.js'

const KIB = 1024
const MIB = KIB * KIB

/** Bytes of a buffer, and of all buffers of a run: more than one, since some addresses are luckier than others. */
const SIZES = [
  [64, 16 * KIB],
  [KIB, 32 * KIB],
  [64 * KIB, 512 * KIB],
  [MIB, 4 * MIB],
  [64 * MIB, 64 * MIB],
] as const

export const crc32c: Definition = {
  name: 'crc32c',
  measures: 'CRC-32C of buffers that are in memory (ours: in the core’s memory), one call for each',
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
          contender(nodeRs.NAME, nodeRs.crc32c(data, byteLength), wrong),
          contender(awsCrypto.NAME, awsCrypto.crc32c(data, byteLength), wrong),
        ],
      }
    }
  },
}

function randomBytes(byteLength: number): Uint8Array {
  const random = uniform(1)
  const words = new Uint32Array(byteLength / 4)
  for (let i = 0; i < words.length; i++) words[i] = random() * 4294967296
  return new Uint8Array(words.buffer)
}
