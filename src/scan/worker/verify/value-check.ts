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
  readonly #records: FoundRecords
  readonly #url: string
  /** The deep check; null if not requested. */
  readonly #deep: DeepLook | null
  /** Records that hold a histogram, to be decoded. */
  readonly #histograms: { readonly tensor: string; readonly record: number; readonly value: Uint8Array }[] = []
  /** The tags of histograms at the last step. */
  readonly #histogramTags = new Set<string>()

  constructor(setting: RangeSetting, records: FoundRecords, url: string) {
    this.#setting = setting
    this.#records = records
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
    const records = this.#records
    const { tags } = this.#setting
    const tagBytes = slots.tagBytes(i)
    const number = tags.number(tagBytes)
    const kind = held === ValueKind.tensor ? 'tensor' : held === ValueKind.histogram ? 'histogram' : 'other'
    records.addValue(number, slots.mode(i), slots.modeStep(i), kind)
    const isGood = slots.ok(i)
    if (this.#setting.job.withShapes && kind === 'tensor' && isGood) records.setShape(slots.shape(i))
    // A damaged payload needs no further findings.
    if (records.isSpoilt) return
    const tensor = tags.names[number]!
    const startByte = records.startOf(records.last)
    if (!isGood) {
      records.failAs(slots.status(i), tensor, () => slots.error(i, { url: this.#url, startByte, tensor }))
    } else if (!tags.isText(tagBytes)) {
      records.fail('BadText', tensor, () => records.error('BadText', startByte, 'a tag in UTF-8', 'other bytes'))
    } else if (kind === 'histogram') this.#keepHistogram(slots, i, tensor)
    else if (this.#deep !== null && kind === 'tensor') this.#look(this.#deep, slots, i, tensor)
  }

  /** Copies a histogram, which the core only skips. One that streams, or the second with a tag, is never read. */
  #keepHistogram(slots: SlotReader, i: number, tensor: string): void {
    const record = this.#records.last
    if (!this.#isInMemory(slots, i)) return
    if (this.#histograms.at(-1)?.record !== record) this.#histogramTags.clear()
    if (this.#histogramTags.has(tensor)) return
    this.#histogramTags.add(tensor)
    this.#histograms.push({ tensor, record, value: slots.valueBytes(i) })
  }

  /** Decodes the histograms that were kept. */
  async checkHistograms(): Promise<void> {
    const records = this.#records
    for (const { tensor, record, value } of this.#histograms.splice(0)) {
      if (records.isBad(record) || (await isHistogram(value))) continue
      records.setBad(record)
      const [expected, got] = ['a well-formed histogram', 'bytes that do not parse as one']
      records.failRecord(record, tensor, 'MalformedEvent', () =>
        records.error('MalformedEvent', records.startOf(record), expected, got),
      )
    }
  }

  /** Decodes a value. A record that streams is not in memory: see `keep`. */
  #look(deep: DeepLook, slots: SlotReader, i: number, tensor: string): void {
    if (!this.#isInMemory(slots, i)) return
    const records = this.#records
    const { last } = records
    const startByte = records.startOf(last)
    const fault = deep.look(this.#setting.batch, slots, i, tensor, last)
    if (fault === 'text') {
      records.fail('BadText', tensor, () => records.error('BadText', startByte, 'strings in UTF-8', 'other bytes'))
    } else if (fault === 'bool') {
      records.note('OddEncoding', last, tensor, () =>
        records.error('OddEncoding', startByte, 'bools of 0 and 1', 'other bytes, which count as true'),
      )
    }
  }

  #isInMemory(slots: SlotReader, i: number): boolean {
    return slots.frameByteLength(i) === this.#records.byteLengthOf(this.#records.last)
  }

  /** Takes the moments of a tensor of the last record, which was streamed. */
  keep(moments: Moments, shape: readonly number[], tensor: string): void {
    const { last } = this.#records
    this.#deep?.keep(moments, shape, tensor, this.#records.stepOf(last), last)
  }

  /** Compares saved reductions with their tensors, within one range: a file is not cut for a deep check. */
  compareReductions(): void {
    const records = this.#records
    for (const { saved, computed } of this.#deep?.mismatches() ?? []) {
      const { reduction, tensor, step, record, value } = saved
      const expected = `${reduction} ${computed} of tensor ${quote(tensor)}, which is saved beside it`
      const error = () => records.error('ReductionMismatch', records.startOf(record), expected, `${value}`)
      records.failRecord(record, tensor, 'ReductionMismatch', error, step)
    }
  }
}
