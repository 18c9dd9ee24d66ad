/** The job that verifies event files from the first byte to the last. */

import { type ErrorData, TrialscanError } from '../../../base/errors.js'
import type { Engine } from '../../../core/engine.js'
import type { Store } from '../../../storage/store.js'
import type { VerifiedRange, VerifyJob, VerifyReply } from '../../job/verify-job.js'
import { settingOf } from './job.js'
import { RangeVerifier } from './range.js'

/** Verifies the records that begin in ranges of event files. A file that can't be read is an error in the reply. */
export async function verifyEventFiles(job: VerifyJob, engine: Engine, store: Store): Promise<VerifyReply> {
  const setting = settingOf(job, engine, store)
  const ranges: (VerifiedRange | ErrorData)[] = []
  let readBytes = 0
  for (const range of job.ranges) {
    try {
      const verifier = new RangeVerifier(setting, range, await store.byteLength(range.path))
      ranges.push(await verifier.run())
      readBytes += verifier.readBytes
    } catch (error) {
      if (!(error instanceof TrialscanError)) throw error
      ranges.push(error.toJSON())
    }
  }
  return { kind: 'verify', ranges, tags: setting.tags.names, readBytes }
}
