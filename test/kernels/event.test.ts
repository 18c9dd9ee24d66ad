import { describe, expect, it } from 'vitest'
import { decodeEvent, FormatError, QueryError, UsageError } from '#dist/kernels.js'
import { encodeEvent, type WireForm } from '../../fixtures/event-writer.js'

const FORMS: readonly WireForm[] = [
  {},
  { order: 'reversed' },
  { unknownFields: true },
  { paddedVarints: true },
  { splitMessages: true },
  { overridden: true },
]

describe('decodeEvent', () => {
  it.each(FORMS)('reads tensors, numbers and what else there is: %j', form => {
    const histogram = { min: 0, max: 1, num: 2, sum: 1, sumSquares: 1, bucketLimit: [1], bucket: [2] }
    const values = [
      { tag: 'a/ä', mode: 'TRAIN', modeStep: 7, tensor: { dtype: 'float32', shape: [2, 1], values: [1.5, -2] } },
      { tag: 'half', plugins: [], tensor: { dtype: 'float16', shape: [2], values: [0.5, 3], place: 'packed' } },
      { tag: 'words', plugins: [], tensor: { dtype: 'string', shape: [2], strings: ['x', 'ÿ'] } },
      { tag: 'loss', plugins: [], simpleValue: 0.25 },
      { tag: 'weights', plugins: [], histogram },
    ] as const
    const event = decodeEvent(encodeEvent({ wallTime: 1.7e9, step: 12, values }, form))
    expect([event.wallTime, event.step, event.fileVersion]).toEqual([1.7e9, 12, undefined])
    const [a, half, words, loss, weights] = event.values
    expect(a).toMatchObject({ tag: 'a/ä', mode: 'TRAIN', modeStep: 7, tensor: { dtype: 'float32', shape: [2, 1] } })
    expect(a!.tensor!.data).toEqual(Float32Array.of(1.5, -2))
    expect(half!.tensor!.data).toEqual(Float32Array.of(0.5, 3))
    expect([half!.mode, half!.modeStep]).toEqual([undefined, undefined])
    expect(words!.tensor!.data).toEqual(['x', 'ÿ'])
    expect([loss!.tensor!.shape, loss!.tensor!.data]).toEqual([[], Float32Array.of(0.25)])
    expect([weights!.tensor, weights!.bytes!.length > 20]).toEqual([undefined, true])
  })

  it('reads what begins a file, and nothing', () => {
    const first = encodeEvent({ wallTime: 5, step: 0, fileVersion: 'brain.Event:2' })
    expect(decodeEvent(first)).toEqual({ wallTime: 5, step: 0, fileVersion: 'brain.Event:2', values: [] })
    expect(decodeEvent(new Uint8Array(0))).toEqual({ wallTime: 0, step: 0, fileVersion: undefined, values: [] })
  })

  it('reads more Values than it has room for at once, however large', () => {
    const values = Array.from({ length: 200 }, (_, i) => ({
      tag: `t${i}`,
      tensor: {
        dtype: 'float64' as const,
        shape: [i * 40],
        values: new Array<number>(i * 40).fill(i),
        place: 'packed' as const,
      },
    }))
    const event = decodeEvent(encodeEvent({ wallTime: 0, step: 1, values }))
    expect(event.values.map(({ tag, tensor }) => [tag, tensor!.data.length, tensor!.data.at(-1)])).toEqual(
      values.map((_, i) => [`t${i}`, i * 40, i === 0 ? undefined : i]),
    )
  })

  it('says of each tensor why it can not be read', () => {
    const values = [
      { tag: 'short', tensor: { dtype: 'float32', shape: [3], content: new Uint8Array(8) } },
      { tag: 'huge', tensor: { dtype: 'float32', shape: [2 ** 40], values: [1], place: 'packed' } },
      { tag: 'good', tensor: { dtype: 'float32', shape: [1], values: [1] } },
    ] as const
    const event = decodeEvent(encodeEvent({ wallTime: 0, step: 1, values }))
    expect(event.values.map(({ tag, error }) => [tag, error?.code])).toEqual([
      ['short', 'ShapeMismatch'],
      ['huge', 'ValueTooLarge'],
      ['good', undefined],
    ])
    expect(event.values[0]!.error!.message).toContain('tensor "short": expected 12 bytes or values')
    expect(event.values[1]!.error).toBeInstanceOf(QueryError)
  })

  it('refuses what is no Event', () => {
    const whole = encodeEvent({ wallTime: 1, step: 2, values: [{ tag: 'a', simpleValue: 1 }] })
    expect(() => decodeEvent(whole.subarray(0, whole.length - 1))).toThrow(FormatError)
    expect(() => decodeEvent(Uint8Array.of(0x12, 0x34))).toThrow(
      /^event, offset \d+: expected a well-formed Event message/,
    )
    // @ts-expect-error: text has no bytes
    expect(() => decodeEvent('event')).toThrow(UsageError)
  })

  it('refuses every piece of an Event, or reads it', () => {
    const whole = encodeEvent({ wallTime: 1, step: 2, values: [{ tag: 'a', simpleValue: 1 }] }, { unknownFields: true })
    for (let end = 0; end < whole.length; end++) {
      try {
        expect(decodeEvent(whole.subarray(0, end)).values.length).toBeLessThan(2)
      } catch (error) {
        expect(error).toBeInstanceOf(FormatError)
      }
    }
  })
})
