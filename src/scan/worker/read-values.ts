/** The values of records. */

import type { Engine } from '../../core/engine.js'
import { UnfoldBudget } from '../../core/values.js'
import type { Histogram } from '../../format/histogram.js'
import type { Store } from '../../storage/store.js'
import type { RawValue, ValueJob, ValueReply } from '../job/value-job.js'
import { rawValue } from './raw-value.js'
import { openLarge } from './records/large.js'
import { type RecordVisitor, readRecords } from './records/read-records.js'
import { Failures, shapeOf } from './records/record-table.js'

export async function readValues(job: ValueJob, engine: Engine, store: Store): Promise<ValueReply> {
  const total = job.records.file.length
  const values = new Array<RawValue | null>(total).fill(null)
  const failures = new Failures(job, () => store)
  const unfoldBudget = new UnfoldBudget(job.unfoldLimit)
  const visitor: RecordVisitor = {
    record(record, i, { batch, slots }) {
      const contents = slots.found(i)
      return () => {
        const strings = contents.kind === 'strings' ? engine.values.copyStrings(batch, i, contents, unfoldBudget) : null
        const bytes = strings ? null : engine.values.copyElements(batch, i, contents, unfoldBudget)
        values[record] = rawValue(contents, bytes, strings, engine)
      }
    },
    fail: (record, error) => failures.add(record, error),
  }
  const stats = { records: total, readBytes: 0, reads: 0 }
  if (job.batches.length > 0) {
    engine.reset()
    const { order } = job
    const read = await readRecords(job, engine, visitor, {
      sourceOf: () => store,
      known: null,
      order,
      isAnyOrder: true,
    })
    stats.readBytes = read.readBytes
    stats.reads = read.reads
  } else {
    for (let record = 0; record < total; record++) {
      try {
        engine.reset()
        const large = await openLarge(job, record, engine, store, stats)
        const strings = large.contents.dtype === 'string' ? await large.readStrings(unfoldBudget) : null
        const bytes = strings ? null : await large.readElements(unfoldBudget)
        values[record] = rawValue(large.contents, bytes, strings, engine)
      } catch (error) {
        failures.add(record, error)
      }
    }
  }
  const failed = await failures.finish((record, histogram) => {
    values[record] = histogramValue(histogram)
  })
  return { kind: 'value', values: values.filter(value => value !== null), failures: failed, stats }
}

function histogramValue(histogram: Histogram): RawValue {
  const bytes = new Uint8Array(histogram.rows.buffer)
  return { dtype: 'float64', shape: shapeOf(histogram), bytes, widened: null, strings: null }
}
