/** Framed Event records to dtype, shape and elements. */
import { elementBytes, encodeEvent, frameRecord } from '../../fixtures/event-writer.js'
import { normals } from '../../fixtures/random.js'
import { type Case, contender, type Definition, expectSame } from '../definition.js'
import * as ours from '../engines/ours.js'
import * as protobufjs from '../engines/protobufjs.js'
import type { Decoded, Records } from '../engines/record.js'

const STEP = 1000

export const decode: Definition = {
  name: 'decode',
  measures:
    'a run of framed Events in memory to dtype, shape and a Float32Array view of each (walk: to the core’s slots)',
  *cases(): Generator<Case> {
    for (const [count, elementCount] of [
      [1000, 256],
      [50, 65536],
    ] as const) {
      const { records, expected } = makeRecords(count, elementCount)
      const wrong = (answer: readonly Decoded[]) => wrongTensors(answer, expected)
      yield {
        size: `${count} × ${elementCount} floats`,
        byteLength: records.bytes.length,
        records: count,
        contenders: [
          contender(`${ours.NAME}, check minimal`, ours.decode(records, 'minimal'), wrong),
          contender(`${ours.NAME}, check none`, ours.decode(records, 'none'), wrong),
          contender(`${ours.NAME}, check full`, ours.decode(records, 'full'), wrong),
          contender(`${ours.NAME}, minimal, walk`, ours.walk(records, 'minimal'), expectSame<number>(count)),
          contender(protobufjs.NAME, protobufjs.decode(records), wrong),
        ],
      }
    }
  },
}

function makeRecords(count: number, elementCount: number): { records: Records; expected: Decoded[] } {
  const values = normals(count * elementCount, 2)
  const shape = [elementCount / 16, 16]
  const framed: { record: Uint8Array; startByte: number }[] = []
  const expected: Decoded[] = []
  const tags = Array.from({ length: count }, (_, i) => `gradient/layer${i}.weight`)
  let end = 0
  tags.forEach((tag, i) => {
    const data = Float32Array.from(values.subarray(i * elementCount, (i + 1) * elementCount))
    const content = elementBytes('float32', [...data])
    const tensor = { dtype: 'float32', shape, content } as const
    const value = { tag, mode: 'TRAIN', modeStep: STEP, tensor } as const
    const payload = encodeEvent({ wallTime: 1.7e9 + i, step: STEP, values: [value] })
    const record = frameRecord(payload, { checksum: 'true' })
    // The elements on a word's border: what is measured is the decoding, not who copies what lies askew.
    const startByte = end + ((4 - ((end + Buffer.from(record).indexOf(content)) % 4)) % 4)
    framed.push({ record, startByte })
    expected.push({ dtype: 'float32', shape, data })
    end = startByte + record.length
  })
  const bytes = new Uint8Array(end)
  for (const { record, startByte } of framed) bytes.set(record, startByte)
  const frames = framed.map(({ record, startByte }) => ({ startByte, byteLength: record.length }))
  return { records: { bytes, frames, tags, step: STEP }, expected }
}

function wrongTensors(answer: readonly Decoded[], expected: readonly Decoded[]): string | undefined {
  if (answer.length !== expected.length) return `expected ${expected.length} tensors, got ${answer.length}`
  const i = expected.findIndex(({ dtype, shape, data }, at) => {
    const got = answer[at]!
    const same = got.dtype === dtype && got.shape.join() === shape.join() && got.data.length === data.length
    return !same || data.some((value, k) => got.data[k] !== value)
  })
  return i < 0 ? undefined : `tensor ${i} is not the one that was written`
}
