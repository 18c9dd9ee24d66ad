/** `trialscan export`: a trial as runs of TensorBoard. */

import { problemLines } from '../../base/problem-lines.js'
import type { CheckLevel } from '../../base/types.js'
import { exportTensorBoard } from '../../write/tensorboard/export.js'
import { EXIT } from '../exit.js'
import { bytesText, counted, countText } from '../format/number.js'
import { expectS3, isOnS3, type S3Flags, s3For } from '../options/s3.js'
import { Progress } from '../progress.js'
import { expectOutside } from '../real-path.js'
import { openTrial } from '../scan/open-trial.js'
import {
  asked,
  isSelective,
  nothingSelected,
  type SelectionFlags,
  selectionOf,
  unscannedParts,
} from '../scan/selection.js'
import { openOptions } from '../scan/trials.js'
import { note } from '../terminal.js'

export interface ExportFlags extends SelectionFlags, S3Flags {
  readonly tensorboard: string
  readonly reductions?: readonly string[]
  readonly histograms: boolean
  readonly images?: boolean
  readonly checkLevel?: CheckLevel
  readonly threads?: number
  readonly memory?: number
}

/** @returns the exit code */
export async function runExport(path: string, flags: ExportFlags, signal: AbortSignal): Promise<number> {
  const { tensorboard, reductions, histograms, images, checkLevel, threads, memory } = flags
  expectS3(flags, [path, tensorboard])
  if (!isOnS3(tensorboard)) await expectOutside(path, tensorboard, 'a directory', '--tensorboard')
  const trial = await openTrial(path, openOptions(path, flags))
  const progress = new Progress(false)
  try {
    const { runs, leftOutCount, problems, problemCount } = await exportTensorBoard(trial, tensorboard, {
      ...selectionOf(flags),
      ...s3For(tensorboard, flags),
      ...(reductions && { reductions: asked(reductions) ?? 'all' }),
      histograms,
      ...(images !== undefined && { images }),
      ...(checkLevel && { checkLevel }),
      ...(threads !== undefined && { threads }),
      ...(memory !== undefined && { memory: memory * 2 ** 20 }),
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
    const sum = (of: (run: (typeof runs)[number]) => number) => runs.reduce((total, run) => total + of(run), 0)
    const [scalars, others, pictures] = [sum(run => run.scalars), sum(run => run.histograms), sum(run => run.images)]
    const shown = images ? `, ${counted(pictures, 'image')}` : ''
    const what = `${counted(scalars, 'scalar')}, ${counted(others, 'histogram')}${shown}`
    const written = `${counted(runs.length, 'run')}, ${what}, ${bytesText(sum(run => run.byteLength))}, in ${tensorboard}`
    if (!isEmpty) note(runs.length > 0 ? written : 'nothing was exported')
    if (problemCount > 0) return EXIT.format
    return runs.length > 0 ? EXIT.ok : EXIT.query
  } finally {
    progress.stop()
    await trial.close()
  }
}
