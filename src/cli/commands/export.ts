/** `trialscan export`: a trial as runs of TensorBoard. */

import { problemLines } from '../../base/problem-lines.js'
import { exportTensorBoard } from '../../write/tensorboard/export.js'
import { EXIT } from '../exit.js'
import { bytesText, counted, countText } from '../format/number.js'
import { defined, type ReadingFlags, readingOptions } from '../options/given.js'
import { expectS3, isOnS3, type S3Flags, s3For } from '../options/s3.js'
import { Progress } from '../progress.js'
import { expectOutside } from '../real-path.js'
import {
  isSelective,
  nothingSelected,
  requestedStatistics,
  type SelectionFlags,
  selectionOf,
  unscannedParts,
} from '../scan/selection.js'
import { withTrial } from '../scan/trials.js'
import { note } from '../terminal.js'

export interface ExportFlags extends SelectionFlags, S3Flags, ReadingFlags {
  readonly tensorboard: string
  readonly reductions?: readonly string[]
  readonly histograms: boolean
  readonly images?: boolean
}

/** @returns the exit code */
export async function runExport(path: string, flags: ExportFlags, signal: AbortSignal): Promise<number> {
  const { tensorboard, reductions, histograms, images } = flags
  expectS3(flags, [path, tensorboard])
  if (!isOnS3(tensorboard)) await expectOutside(path, tensorboard, 'a directory', '--tensorboard')
  const progress = new Progress(false)
  return withTrial(path, flags, async trial => {
    const { runs, leftOutCount, problems, problemCount } = await exportTensorBoard(trial, tensorboard, {
      ...selectionOf(flags),
      ...s3For(tensorboard, flags),
      ...defined({ reductions: reductions && (requestedStatistics(reductions) ?? 'all'), images }),
      histograms,
      ...readingOptions(flags),
      signal,
      onProgress: progress.update,
    })
    progress.stop()
    for (const line of problemLines(problems)) note(line)
    if (problemCount > problems.length) note(`and ${counted(problemCount - problems.length, 'problem')} more`)
    const isEmpty = runs.length + leftOutCount + problemCount === 0
    if (isEmpty) note(isSelective(flags) ? nothingSelected(trial, flags) : `${path} has no tensors to export`)
    for (const message of unscannedParts(trial, flags, !isEmpty)) note(message)
    if (leftOutCount > 0) {
      note(`${countText(leftOutCount)} left out: texts, complex numbers, and tensors without a finite element`)
    }
    const sum = (countOf: (run: (typeof runs)[number]) => number) =>
      runs.reduce((total, run) => total + countOf(run), 0)
    const [scalars, others, pictures] = [sum(run => run.scalars), sum(run => run.histograms), sum(run => run.images)]
    const shown = images ? `, ${counted(pictures, 'image')}` : ''
    const what = `${counted(scalars, 'scalar')}, ${counted(others, 'histogram')}${shown}`
    const written = `${counted(runs.length, 'run')}, ${what}, ${bytesText(sum(run => run.byteLength))}, in ${tensorboard}`
    if (!isEmpty) note(runs.length > 0 ? written : 'nothing was exported')
    if (problemCount > 0) return EXIT.format
    return runs.length > 0 ? EXIT.ok : EXIT.query
  })
}
