/** Runs of the fuzzers in processes of their own, which can be ended if they don't end by themselves. */

import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from '../support/golden.js'

const execute = promisify(execFile)

/** What all fuzz tests draw from; TRIALSCAN_SEED draws others, as in test/setup.ts. */
export const SEED = Number(process.env.TRIALSCAN_SEED ?? 20191113)
export const FIXTURES = join(ROOT, 'fixtures')
/** Many times what a run takes on a busy machine. */
export const LIMIT_MS = 10 * 60_000

/**
 * @param script of this directory; takes its options as JSON in its argument, and gives its result as JSON
 * @throws with what the script has thrown, or if it is not done after LIMIT_MS
 */
export async function run<T>(script: string, options: object): Promise<T> {
  const args = ['--import', 'tsx', join(import.meta.dirname, script), JSON.stringify(options)]
  const { stdout } = await execute(process.execPath, args, { timeout: LIMIT_MS, killSignal: 'SIGKILL' })
  return JSON.parse(stdout) as T
}
