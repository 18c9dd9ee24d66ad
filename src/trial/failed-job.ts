/** A job that failed as a whole: what that is for each of its records and files. */

import { type ErrorData, errorFromData, errorToData, type TrialscanError } from '../errors.js'
import type { DescribeJob, ValueJob } from '../plan.js'
import type { ReplyTo } from '../pool/message.js'
import type { JobRecords } from '../pool/record.js'
import { isFaultOfJob, type Runner, runTwice } from '../pool/runner.js'

/** The error of one of the job's records: it names file, offset, tensor and step. */
export function failureOfRecord(
  error: ErrorData,
  { files, tags, records }: JobRecords,
  record: number,
  urlOf: (path: string) => string,
): TrialscanError {
  const url = urlOf(files[records.file[record]!]!)
  const offset = records.startByte[record]!
  const tensor = tags[records.tag[record]!]!
  const step = records.step[record]!
  const message = `${url}, offset ${offset}, tensor ${JSON.stringify(tensor)} at step ${step}: ${error.message}`
  return errorFromData({ ...error, message, fields: { ...error.fields, url, offset, tensor, step } })
}

/** The error of a file that the job was to read. @throws what is no fault of the job */
export function failureOfFile(error: unknown, url: string): TrialscanError {
  if (!isFaultOfJob(error)) throw error
  const data = errorToData(error)
  return errorFromData({ ...data, message: `${url}: ${data.message}`, fields: { ...data.fields, url } })
}

/** Runs a job whose answer is wanted whole. @throws for a job that failed, the error of its first record */
export async function runWhole<J extends DescribeJob | ValueJob>(
  runner: Runner,
  job: J,
  urlOf: (path: string) => string,
): Promise<ReplyTo<J>> {
  try {
    return await runTwice(runner, job)
  } catch (error) {
    if (!isFaultOfJob(error) || job.files.length === 0) throw error
    throw failureOfRecord(errorToData(error), job, 0, urlOf)
  }
}
