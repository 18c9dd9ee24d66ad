/** Checks the Values of records one by one: tags and histograms, and for a deep check the content of tensors. */

import { quote } from '../../../base/errors.js'
import { ValueKind } from '../../../core/border/abi.js'
import type { Moments } from '../../../core/moments.js'
import type { SlotReader } from '../../../core/slots.js'
import { isHistogram } from '../../../format/histogram.js'
import type { FoundRecords } from './found.js'
import type { RangeSetting } from './job.js'
import { DeepLook } from './values.js'

export class ValueCheck {
  readonly #setting: RangeSetting
  readonly #found: FoundRecords
  readonly #url: string
  /** The deep check; null if not requested. */
  readonly #deep: DeepLook | null
  /** Records that hold a histogram, to be decoded. */
  readonly #histograms: { readonly tensor: string; readonly record: number; readonly value: Uint8Array }[] = []
  /** The tags of histograms at the last step. */
  readonly #histogramTags = new Set<string>()

  constructor(setting: RangeSetting, found: FoundRecords, url: string) {
    this.#setting = setting
    this.#found = found
    this.#url = url
    this.#deep = setting.job.deep ? new DeepLook(setting.engine) : null
  }

  get isDeep(): boolean {
    return this.#deep !== null
  }

  tagName(slots: SlotReader, i: number): string {
    const { tags } = this.#setting
    return tags.names[tags.number(slots.tagBytes(i))]!
  }

  /** Adds the content of a slot to the last record. */
  take(slots: SlotReader, i: number): void {
    const held = slots.holds(i)
    if (held === ValueKind.noValue) return
    const found = this.#found
    const { tags } = this.#setting
    const tagBytes = slots.tagBytes(i)
    const number = tags.number(tagBytes)
    const kind = held === ValueKind.tensor ? 'tensor' : held === ValueKind.histogram ? 'histogram' : 'other'
    found.addValue(number, slots.mode(i), slots.modeStep(i), kind)
    const isGood = slots.ok(i)
    if (this.#setting.job.withShapes && kind === 'tensor' && isGood) found.setShape(slots.shape(i))
    // A damaged payload needs no further findings.
    if (found.isSpoilt) return
    const tensor = tags.names[number]!
    const startByte = found.startOf(found.last)
    if (!isGood) {
      found.failAs(slots.status(i), tensor, () => slots.error(i, { url: this.#url, startByte, tensor }))
    } else if (!tags.isText(tagBytes)) {
      found.fail('BadText', tensor, () => found.error('BadText', startByte, 'a tag in UTF-8', 'other bytes'))
    } else if (kind === 'histogram') this.#keepHistogram(slots, i, tensor)
    else if (this.#deep !== null && kind === 'tensor') this.#look(this.#deep, slots, i, tensor)
  }

  /** Copies a histogram, which the core only skips. One that streams, or the second with a tag, is never read. */
  #keepHistogram(slots: SlotReader, i: number, tensor: string): void {
    const record = this.#found.last
    if (!this.#isInMemory(slots, i)) return
    if (this.#histograms.at(-1)?.record !== record) this.#histogramTags.clear()
    if (this.#histogramTags.has(tensor)) return
    this.#histogramTags.add(tensor)
    this.#histograms.push({ tensor, record, value: slots.valueBytes(i) })
  }

  /** Decodes the histograms that were kept. */
  async checkHistograms(): Promise<void> {
    const found = this.#found
    for (const { tensor, record, value } of this.#histograms.splice(0)) {
      if (found.isBad(record) || (await isHistogram(value))) continue
      found.setBad(record)
      const [expected, got] = ['a well-formed histogram', 'bytes that do not parse as one']
      found.failRecord(record, tensor, 'MalformedEvent', () =>
        found.error('MalformedEvent', found.startOf(record), expected, got),
      )
    }
  }

  /** Decodes a value. A record that streams is not in memory: see `keep`. */
  #look(deep: DeepLook, slots: SlotReader, i: number, tensor: string): void {
    if (!this.#isInMemory(slots, i)) return
    const found = this.#found
    const { last } = found
    const startByte = found.startOf(last)
    const fault = deep.look(this.#setting.batch, slots, i, tensor, last)
    if (fault === 'text') {
      found.fail('BadText', tensor, () => found.error('BadText', startByte, 'strings in UTF-8', 'other bytes'))
    } else if (fault === 'bool') {
      found.note('OddEncoding', last, tensor, () =>
        found.error('OddEncoding', startByte, 'bools of 0 and 1', 'other bytes, which count as true'),
      )
    }
  }

  #isInMemory(slots: SlotReader, i: number): boolean {
    return slots.frameByteLength(i) === this.#found.byteLengthOf(this.#found.last)
  }

  /** Takes the moments of a tensor of the last record, which was streamed. */
  keep(moments: Moments, shape: readonly number[], tensor: string): void {
    const { last } = this.#found
    this.#deep?.keep(moments, shape, tensor, this.#found.stepOf(last), last)
  }

  /** Compares saved reductions with their tensors, within one range: a file is not cut for a deep check. */
  compareReductions(): void {
    const found = this.#found
    for (const { saved, computed } of this.#deep?.mismatches() ?? []) {
      const { reduction, tensor, step, record, value } = saved
      const expected = `${reduction} ${computed} of tensor ${quote(tensor)}, which is saved beside it`
      const error = () => found.error('ReductionMismatch', found.startOf(record), expected, `${value}`)
      found.failRecord(record, tensor, 'ReductionMismatch', error, step)
    }
  }
}
