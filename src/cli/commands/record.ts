/** `trialscan record`: tensors from standard input, saved as a trial. */

import { readFile } from 'node:fs/promises'
import { type FormatError, type Framework, parseHookConfig, recordStream, StoreError, UsageError } from '../../index.js'
import { EXIT } from '../exit.js'
import { counted, countText } from '../format/number.js'
import { type S3Flags, s3OptionsFor } from '../options/s3.js'
import { note } from '../terminal.js'

export interface RecordFlags extends S3Flags {
  readonly out: string
  readonly config?: string
  readonly framework?: Framework
  readonly worker?: string
  readonly numWorkers?: number
  readonly files?: string
  readonly checksums?: boolean
  readonly fsync?: 'step' | 'end'
  readonly failFast?: boolean
}

/** Problems that are told one by one. */
const MAX_NOTES = 100

/** @returns the exit code */
export async function record(flags: RecordFlags, signal: AbortSignal): Promise<number> {
  const { out, config, framework, worker, numWorkers, files, checksums, fsync, failFast } = flags
  if (process.stdin.isTTY) {
    throw new UsageError('expected tensors on standard input, got a terminal: write PROGRAM | trialscan record --out …')
  }
  const configured = config === undefined ? null : parseHookConfig(await textOf(config), config)
  for (const key of configured?.ignored ?? []) note(`${config}: ${key} means nothing here, and is ignored`)
  let told = 0
  const onProblem = (problem: FormatError): void => {
    if (failFast) throw problem
    if (told++ < MAX_NOTES) note(problem.message)
  }
  const { steps, tensors, problemCount, isAborted } = await recordStream(process.stdin, out, {
    ...configured?.options,
    ...s3OptionsFor(out, flags),
    ...(framework !== undefined && { framework }),
    ...(worker !== undefined && { worker }),
    ...(numWorkers !== undefined && { numWorkers }),
    ...(files !== undefined && { directory: files }),
    ...(checksums !== undefined && { checksums }),
    ...(fsync !== undefined && { fsync }),
    onProblem,
    signal,
  })
  if (problemCount > MAX_NOTES) note(`and ${countText(problemCount - MAX_NOTES)} more that could not be saved`)
  note(
    `${counted(steps, 'step')}, ${counted(tensors, 'tensor')}, in ${out}${isAborted ? '; the last step was given up' : ''}`,
  )
  return problemCount > 0 ? EXIT.format : EXIT.ok
}

async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new StoreError('Unavailable', `${path}: ${(error as Error).message}`, { url: path }, error)
  }
}
