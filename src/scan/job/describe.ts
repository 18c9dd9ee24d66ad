/** Reads dtype and shape of records, and no more than that takes. */

import type { RecordJob } from './plan/coalesce.js'
import type { Descriptions, RecordReply } from './reply.js'

export interface DescribeJob extends RecordJob {
  readonly kind: 'describe'
  readonly windowByteLength: number
}

export interface DescribeReply extends RecordReply {
  readonly kind: 'describe'
  readonly described: Descriptions
}
