/** `trialscan dump`: writes the values of tensors for numpy, as one .npz or as a directory with a .npy for each. */

import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { type TrialscanError, UsageError } from '../../base/errors.js'
import { problemLines } from '../../base/problem-lines.js'
import type { TensorValue } from '../../scan/job/tensor-value.js'
import { npyChunks } from '../../table/npy.js'
import type { Trial } from '../../trial/trial.js'
import { readValues, type SavedValue } from '../../trial/values.js'
import { EXIT } from '../exit.js'
import { npySubstitute } from '../format/elements.js'
import { bytesText, counted, countText } from '../format/number.js'
import { ZipWriter } from '../format/zip.js'
import { expectNoInput } from '../input-file.js'
import { type ReadingFlags, readingOptions } from '../options/given.js'
import { expectS3, type S3Flags } from '../options/s3.js'
import { type Output, writeFile, writeTo } from '../output.js'
import { Progress } from '../progress.js'
import { expectEmpty, expectOutside, expectReplaceable } from '../real-path.js'
import { fileName } from '../scan/partitions.js'
import { isSelective, nothingSelected, type SelectionFlags, selectionOf, unscannedParts } from '../scan/selection.js'
import { withTrial } from '../scan/trials.js'
import { note } from '../terminal.js'

export interface DumpFlags extends SelectionFlags, S3Flags, ReadingFlags {
  readonly out: string
}

/** A value that was read. */
type Found = SavedValue & { readonly tensor: string; readonly value: TensorValue }

/** The number of files with unreadable values that are named one by one. */
const MAX_NOTES = 100
/** The number of errors that are kept for these notes. */
const MAX_FAILURES = 10_000

/** @returns the exit code */
export async function dump(path: string, flags: DumpFlags, signal: AbortSignal): Promise<number> {
  const { out } = flags
  expectS3(flags, [path])
  const isArchive = /\.npz$/i.test(out)
  if (!isArchive && /\.[a-z][a-z0-9]*$/i.test(out)) {
    throw new UsageError(`expected --out to be a file .npz, or a directory such as values/, got ${out}`)
  }
  if (isArchive) await expectReplaceable(path, out)
  else await expectOutside(path, out, 'a directory')
  const progress = new Progress(false, 'values')
  const tally = new Tally(progress)
  return withTrial(path, flags, async trial => {
    const values = tally.found(
      readValues(trial, {
        ...selectionOf(flags),
        ...readingOptions(flags),
        signal,
      }),
    )
    if (isArchive) await writeTo(out, output => writeArchive(trial, values, output))
    else await writeDirectory(trial, values, out)
    progress.stop()
    if (tally.seen === 0) note(nothingSelected(trial, flags))
    for (const message of unscannedParts(trial, flags, tally.seen > 0)) note(message)
    tally.tell()
    note(`${counted(tally.count, 'array')}, ${bytesText(tally.byteLength)}, in ${out}`)
    if (tally.failed > 0) return EXIT.format
    return tally.seen === 0 && isSelective(flags) ? EXIT.query : EXIT.ok
  })
}

/** The counts of a dump. */
class Tally {
  readonly #progress: Progress
  readonly #failures: TrialscanError[] = []
  /** The number of tensors of which only reductions were saved. */
  #reduced = 0
  /** The notes on dtypes that numpy lacks. */
  readonly #substitutes = new Set<string>()
  seen = 0
  count = 0
  byteLength = 0
  failed = 0

  constructor(progress: Progress) {
    this.#progress = progress
  }

  /** Passes on the values that could be read, and counts all. */
  async *found(values: AsyncIterable<SavedValue>): AsyncGenerator<Found> {
    for await (const saved of values) {
      this.seen++
      const { tensor, value, error } = saved
      if (error !== undefined) {
        this.failed++
        if (this.#failures.length < MAX_FAILURES) this.#failures.push(error)
      } else if (value === null) this.#reduced++
      else {
        this.count++
        this.byteLength += value.bytes.byteLength
        const substitute = npySubstitute(value.dtype)
        if (substitute !== null) this.#substitutes.add(substitute)
        yield { ...saved, tensor: tensor!, value }
      }
      this.#progress.update({ doneRows: this.seen, totalRows: this.seen })
    }
  }

  tell(): void {
    const lines = problemLines(this.#failures)
    for (const line of lines.slice(0, MAX_NOTES)) note(line)
    if (this.failed > 0) note(`${countText(this.failed)} of ${counted(this.seen, 'value')} could not be had`)
    for (const substitute of this.#substitutes) note(substitute)
    if (this.#reduced > 0) {
      note(`of ${countText(this.#reduced)} only reductions were saved: trialscan scan has them`)
    }
  }
}

/** The parts of a value's file name: with the worker only if there are several. */
function partsOf(trial: Trial, { worker, step, tensor }: Found): readonly string[] {
  return trial.workers().length > 1 ? [worker, String(step), tensor] : [String(step), tensor]
}

/** A name that would lead elsewhere where an archive is unpacked is written as that of a file. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
const LEADS_ELSEWHERE = /(?:^|\/)\.\.(?:\/|$)|[\\\u0000-\u001f]|^[A-Za-z]:/

async function writeArchive(trial: Trial, values: AsyncIterable<Found>, output: Output): Promise<void> {
  const zip = new ZipWriter(bytes => output.writeBytes(bytes))
  for await (const value of values)
    await zip.add(`${partsOf(trial, value).map(memberName).join('/')}.npy`, [...npyChunks(value.value)])
  await zip.finish()
}

function memberName(part: string): string {
  return LEADS_ELSEWHERE.test(part) ? fileName(part) : part
}

/** Writes files into a directory, and at the end index.jsonl, which describes each. */
async function writeDirectory(trial: Trial, values: AsyncIterable<Found>, out: string): Promise<void> {
  const list = join(out, 'index.jsonl')
  if ((await lstat(list).catch(() => null))?.isFile()) {
    throw new UsageError(
      `${list} lists what was dumped there before: expected a directory without a dump, or remove it`,
    )
  }
  await expectNoInput(list)
  await expectEmpty(out)
  const lines = async function* () {
    for await (const saved of values) {
      const { tensor, step, mode, modeStep, worker, value } = saved
      const file = `${partsOf(trial, saved).map(fileName).join('/')}.npy`
      await writeFile(join(out, file), npyChunks(value))
      const { dtype, shape } = value
      yield `${JSON.stringify({ file, tensor, step, mode, mode_step: modeStep, worker, dtype, shape })}\n`
    }
  }
  await writeFile(list, lines())
}
