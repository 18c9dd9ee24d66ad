/** Everything that crosses a thread: jobs and replies. Plain data, with numbers in columns whose buffers are moved. */

import type { ArraysJob, ArraysReply } from './array-job.js'
import type { CopyJob, CopyReply } from './copy-job.js'
import type { IndexJob, IndexReply } from './index-job.js'
import type { MeasureJob, MeasureReply } from './measure-job.js'
import type { QuantisedJob, QuantisedReply } from './quantised-job.js'
import type { PartJob, PartReply, ScanJob, ScanReply } from './scan-job.js'
import type { SurveyJob, SurveyReply } from './survey-job.js'
import type { DescribeJob, DescribeReply, ValueJob, ValueReply } from './value-job.js'
import type { VerifyJob, VerifyReply } from './verify-job.js'

/** Each kind of job, with its reply. */
type Work =
  | readonly [ScanJob, ScanReply]
  | readonly [PartJob, PartReply]
  | readonly [MeasureJob, MeasureReply]
  | readonly [QuantisedJob, QuantisedReply]
  | readonly [DescribeJob, DescribeReply]
  | readonly [ValueJob, ValueReply]
  | readonly [IndexJob, IndexReply]
  | readonly [SurveyJob, SurveyReply]
  | readonly [VerifyJob, VerifyReply]
  | readonly [CopyJob, CopyReply]
  | readonly [ArraysJob, ArraysReply]

export type Job = Work[0]
export type Reply = Work[1]

/** The reply that belongs to a job. */
export type ReplyTo<J extends Job> = Extract<Reply, { kind: J['kind'] }>
