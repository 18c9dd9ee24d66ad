/** `trialscan record`: saves tensors from standard input as a trial. */

import { type FormatError, UsageError } from '../../base/errors.js'
import type { Framework } from '../../base/types.js'
import { parseHookConfig } from '../../write/hook-config.js'
import { type RecordedStream, recordStream } from '../../write/stream/record.js'
import { EXIT } from '../exit.js'
import { counted, countText } from '../format/number.js'
import { readInputFile } from '../input-file.js'
import { defined, readingOptions } from '../options/given.js'
import { onlyPlaceOptions, type S3Flags } from '../options/s3.js'
import { note } from '../terminal.js'

export interface RecordFlags extends S3Flags {
  readonly out: string
  readonly config?: string
  readonly framework?: Framework
  readonly worker?: string
  readonly numWorkers?: number
  readonly files?: string
  /** MiB. */
  readonly memory?: number
  readonly checksums?: boolean
  readonly fsync?: 'step' | 'end'
  readonly failFast?: boolean
}

/** The number of problems that are reported one by one. */
const MAX_NOTES = 100

/** @returns the exit code */
export async function record(flags: RecordFlags, signal: AbortSignal): Promise<number> {
  const { out, config, framework, worker, numWorkers, files, checksums, fsync, failFast } = flags
  if (process.stdin.isTTY) {
    throw new UsageError('expected tensors on standard input, got a terminal: write PROGRAM | trialscan record --out …')
  }
  const configured = config === undefined ? null : parseHookConfig(await configText(config), config, framework)
  for (const key of configured?.ignored ?? []) note(`${config}: ${key} means nothing here, and is ignored`)
  let noteCount = 0
  const onProblem = (problem: FormatError): void => {
    if (failFast) throw problem
    if (noteCount++ < MAX_NOTES) note(problem.message)
  }
  const recorded = await recordStream(process.stdin, out, {
    ...configured?.options,
    ...onlyPlaceOptions(out, flags),
    ...readingOptions(flags),
    ...defined({ framework, worker, numWorkers, directory: files, checksums, fsync }),
    onProblem,
    signal,
  })
  const { problemCount } = recorded
  if (problemCount > MAX_NOTES) note(`and ${countText(problemCount - MAX_NOTES)} more that could not be saved`)
  note(summary(recorded, out))
  return problemCount > 0 ? EXIT.format : EXIT.ok
}

async function configText(path: string): Promise<string> {
  return new TextDecoder().decode(await readInputFile(path, '--config'))
}

/** The result of a stream in a line. */
function summary({ steps, tensors, savedSteps, savedTensors, isAborted }: RecordedStream, out: string): string {
  const partText = (saved: number, all: number, noun: string): string =>
    saved === all ? counted(all, noun) : `${countText(saved)} of ${counted(all, noun)}`
  const saved = `saved ${partText(savedSteps, steps, 'step')} and ${partText(savedTensors, tensors, 'tensor')} in ${out}`
  const unsaved = tensors - savedTensors
  const ways = [
    ...(unsaved > 0 ? [`the configuration leaves out ${counted(unsaved, 'tensor')}`] : []),
    ...(isAborted ? ['the last step was given up'] : []),
  ]
  return [saved, ...ways].join('; ')
}
