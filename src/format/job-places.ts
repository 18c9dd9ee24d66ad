/** The places on S3 at which a SageMaker training job saves its outputs. */

import { UsageError } from '../base/errors.js'

/**
 * The place of a job's tensors, as `estimator.latest_job_debugger_artifacts_path()` returns it.
 * @param s3OutputPath DebuggerHookConfig's path: `s3://bucket/prefix`
 * @throws UsageError
 */
export function debugOutput(s3OutputPath: string, jobName: string): string {
  return placeOf('debugOutput', s3OutputPath, jobName, 'debug-output')
}

/** The place of a job's TensorBoard files. @param s3OutputPath TensorBoardOutputConfig's path: `s3://bucket/prefix` @throws UsageError */
export function tensorboardOutput(s3OutputPath: string, jobName: string): string {
  return placeOf('tensorboardOutput', s3OutputPath, jobName, 'tensorboard-output')
}

function placeOf(call: string, s3OutputPath: string, jobName: string, folder: string): string {
  const wrong = (expected: string, got: unknown): UsageError =>
    new UsageError(`${call}: expected ${expected}, got ${JSON.stringify(got)}`, { call })
  if (typeof s3OutputPath !== 'string' || !/^s3:\/\/[^/]/.test(s3OutputPath)) {
    throw wrong('an output path such as s3://bucket/prefix', s3OutputPath)
  }
  if (typeof jobName !== 'string' || jobName === '' || jobName.includes('/')) throw wrong('the name of a job', jobName)
  return `${s3OutputPath.replace(/\/+$/, '')}/${jobName}/${folder}`
}
