/** Everything that crosses a thread: jobs and replies. Plain data, with numbers in columns whose buffers are moved. */

import type { ArraysJob, ArraysReply } from './arrays.js'
import type { CopyJob, CopyReply } from './copy.js'
import type { DescribeJob, DescribeReply } from './describe.js'
import type { IndexJob, IndexReply } from './index-files.js'
import type { MeasureJob, MeasureReply } from './measure.js'
import type { QuantisedJob, QuantisedReply } from './quantised.js'
import type { PartJob, PartReply, ScanJob, ScanReply } from './scan.js'
import type { SurveyJob, SurveyReply } from './survey.js'
import type { ValueJob, ValueReply } from './value.js'
import type { VerifyJob, VerifyReply } from './verify.js'

export type Job =
  | ScanJob
  | PartJob
  | MeasureJob
  | QuantisedJob
  | DescribeJob
  | ValueJob
  | IndexJob
  | SurveyJob
  | VerifyJob
  | CopyJob
  | ArraysJob

export type Reply =
  | ScanReply
  | PartReply
  | MeasureReply
  | QuantisedReply
  | DescribeReply
  | ValueReply
  | IndexReply
  | SurveyReply
  | VerifyReply
  | CopyReply
  | ArraysReply

/** The reply that belongs to a job. */
export type ReplyTo<J extends Job> = Extract<Reply, { kind: J['kind'] }>
