/** Turns the failure of a whole job into errors of its records and files. */

import {
  type ErrorData,
  errorFromData,
  errorToData,
  quote,
  type TrialscanError,
  withShortPath,
} from '../../base/errors.js'
import type { ReplyTo } from '../job/job.js'
import type { JobRecords } from '../job/plan/coalesce.js'
import type { DescribeJob, ValueJob } from '../job/value-job.js'
import { isFaultOfJob, type Runner, runTwice } from './runner.js'

/** The error of one of the job's records, with file, offset, tensor and step. */
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
  const message = `${url}, offset ${offset}, tensor ${quote(tensor)} at step ${step}: ${error.message}`
  const fields = { ...error.fields, url, offset, tensor, step }
  return errorFromData(withShortPath(errorFromData({ ...error, message, fields }).toJSON()))
}

/** The number of files that may fail on their own before the rest of their job is given up. */
const MAX_POISONED_FILES = 3

/**
 * The result of a job for each of its files, or the error. A job that failed as a whole is repeated file by file, so that a file that
 * kills its thread doesn't affect the others.
 * @param run runs a job on some of the files
 */
export async function runOnFiles<F, T extends object>(
  files: readonly F[],
  run: (files: readonly F[]) => Promise<{ readonly files: readonly (T | ErrorData)[] }>,
  urlOf: (file: F) => string,
): Promise<(T | TrialscanError)[]> {
  try {
    return (await run(files)).files.map(file => ('code' in file ? errorFromData(file as ErrorData) : file))
  } catch (error) {
    if (!isFaultOfJob(error)) throw error
    const data = errorToData(error)
    if (files.length === 1) return [failureOfFile(data, urlOf(files[0]!))]
    const results: (T | TrialscanError)[] = []
    let failed = 0
    for (const file of files) {
      const isGivenUp = failed >= MAX_POISONED_FILES
      const result = isGivenUp ? failureOfFile(data, urlOf(file)) : (await runOnFiles([file], run, urlOf))[0]!
      if (isFaultOfJob(result)) failed++
      results.push(result)
    }
    return results
  }
}

function failureOfFile(error: ErrorData, url: string): TrialscanError {
  return errorFromData({ ...error, message: `${url}: ${error.message}`, fields: { ...error.fields, url } })
}

/** Runs a job that is useful only as a whole. @throws the error of its first record, if any failed */
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
