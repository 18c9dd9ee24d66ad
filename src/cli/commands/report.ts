/** `trialscan report`: a page about one training, or about two. */

import { UsageError } from '../../base/errors.js'
import type { Trial } from '../../trial/trial.js'
import { reportHtml } from '../../view/report.js'
import { EXIT } from '../exit.js'
import { formatOfName, isForeignName } from '../format/formats.js'
import { bytesText, counted } from '../format/number.js'
import { expectNoInput } from '../input-file.js'
import { defined, type ReadingFlags, readingOptions } from '../options/given.js'
import { expectS3, type S3Flags } from '../options/s3.js'
import { writeTo } from '../output.js'
import { Progress } from '../progress.js'
import { expectReplaceableIn } from '../real-path.js'
import { isSelective, nothingSelected, type SelectionFlags, selectionOf, unscannedParts } from '../scan/selection.js'
import { tensorMapIn } from '../scan/tensor-map.js'
import { openTrial } from '../scan/trials.js'
import { note } from '../terminal.js'
import { VERSION } from '../version.js'

export interface ReportFlags extends SelectionFlags, S3Flags, ReadingFlags {
  readonly out: string
  readonly title?: string
  readonly map?: string
  readonly embed?: string
  readonly labels?: string
  readonly images?: string
  readonly reconstructions?: string
  readonly perplexity?: number
  readonly iterations?: number
}

const HTML = /\.html?(\.gz|\.zst)?$/i

/** @returns the exit code */
export async function report(paths: readonly string[], flags: ReportFlags, signal: AbortSignal): Promise<number> {
  const { out, map, title, embed, labels, images, reconstructions, perplexity, iterations } = flags
  if (paths.length > 2) throw new UsageError(`expected one trial or two that are compared, got ${paths.length}`)
  expectS3(flags, paths)
  const names = map === undefined ? undefined : await tensorMapIn(map)
  if (out !== '-') {
    await expectReplaceableIn(paths, out)
    await expectNoInput(out)
  }
  if (formatOfName(out) ?? isForeignName(out.replace(HTML, '')))
    throw new UsageError(`expected a file name that ends in .html, got ${out}`)
  const trials: Trial[] = []
  const progress = new Progress(false, 'rows')
  try {
    for (const path of paths) trials.push(await openTrial(path, flags))
    const page = await reportHtml(trials, {
      ...selectionOf(flags),
      ...defined({ title, map: names, embed, labels, images, reconstructions, perplexity, iterations }),
      ...readingOptions(flags),
      version: VERSION,
      signal,
      onProgress: done => progress.update(done),
    })
    progress.stop()
    for (const trial of trials) for (const message of unscannedParts(trial, flags, page.values > 0)) note(message)
    if (page.values === 0 && isSelective(flags)) {
      note(nothingSelected(trials[0]!, flags))
      return EXIT.query
    }
    await writeTo(out === '-' ? undefined : out, output => output.writeBytes(Buffer.from(page.html)), { signal })
    for (const problem of page.problems) note(problem)
    if (out !== '-') note(`${counted(page.values, 'tensor value')}, ${bytesText(page.html.length)}, in ${out}`)
    return page.problems.length > 0 ? EXIT.format : EXIT.ok
  } finally {
    for (const trial of trials) await trial.close()
  }
}
