/** `trialscan import`: runs of TensorBoard as a trial. */

import { MissingCollectionFiles } from '../../base/errors.js'
import { problemLines } from '../../base/problem-lines.js'
import type { Trial } from '../../trial/trial.js'
import { importTensorBoard } from '../../write/tensorboard/import.js'
import type { LeftOutSummary } from '../../write/tensorboard/left-out.js'
import { EXIT } from '../exit.js'
import { counted } from '../format/number.js'
import { defined, type ReadingFlags, readingOptions } from '../options/given.js'
import { expectS3, isOnS3, type S3Flags, s3For } from '../options/s3.js'
import { expectEmpty, expectOutside } from '../real-path.js'
import { isSelective, nothingSelected, type SelectionFlags, selectionOf, unscannedParts } from '../scan/selection.js'
import { openTrial } from '../scan/trials.js'
import { note } from '../terminal.js'

export interface ImportFlags extends SelectionFlags, S3Flags, ReadingFlags {
  readonly out: string
  readonly checksums?: boolean
}

/** @returns the exit code */
export async function runImport(path: string, flags: ImportFlags, signal: AbortSignal): Promise<number> {
  const { out, checksums } = flags
  expectS3(flags, [path, out])
  if (!isOnS3(out)) {
    await expectOutside(path, out, 'a directory')
    await expectEmpty(out)
  }
  let trial: Trial
  try {
    trial = await openTrial(path, flags)
  } catch (error) {
    if (!(error instanceof MissingCollectionFiles)) throw error
    note(`${path}: expected runs of TensorBoard, with event files named events.out.tfevents.…, got none`)
    return EXIT.query
  }
  try {
    const { runs, steps, tensors, leftOut, problems, problemCount } = await importTensorBoard(trial, out, {
      ...selectionOf(flags),
      ...s3For(out, flags),
      ...defined({ checksums }),
      ...readingOptions(flags),
      signal,
    })
    for (const line of problemLines(problems)) note(line)
    if (problemCount > problems.length) note(`and ${counted(problemCount - problems.length, 'problem')} more`)
    const isEmpty = tensors + problemCount === 0
    for (const summary of leftOut) note(leftOutText(summary))
    if (isEmpty && !isSelective(flags)) {
      note(`${path}: its event files hold no scalars, histograms or tensors, so that no trial was written`)
      return EXIT.query
    }
    if (isEmpty) note(nothingSelected(trial, flags))
    for (const message of unscannedParts(trial, flags, !isEmpty)) note(message)
    note(`${counted(runs.length, 'run')}, ${counted(steps, 'step')}, ${counted(tensors, 'tensor')}, in ${out}`)
    if (problemCount > 0) return EXIT.format
    return isEmpty ? EXIT.query : EXIT.ok
  } finally {
    await trial.close()
  }
}

const KINDS = { image: 'image', audio: 'audio clip', graph: 'graph' } as const

function leftOutText({ kind, count, tags }: LeftOutSummary): string {
  return `${counted(count, KINDS[kind])} left out${tags.length > 0 ? `: ${tags.join(', ')}` : ''}`
}
