/** `trialscan summary`: trainings at a glance. */

import { setTimeout as sleep } from 'node:timers/promises'
import { UsageError } from '../../base/errors.js'
import type { Trial } from '../../trial/trial.js'
import { trialOverview } from '../../view/overview/overview.js'
import { EXIT } from '../exit.js'
import type { FormatOf } from '../format/formats.js'
import { jsonOf } from '../format/lines.js'
import { overviewText } from '../format/view/overview.js'
import { type OutputFlags, type ReadingFlags, readingOptions, settle } from '../options/given.js'
import { expectS3, type S3Flags } from '../options/s3.js'
import { type Output, writeTo } from '../output.js'
import { expectReplaceableIn } from '../real-path.js'
import { isSelective, nothingSelected, type SelectionFlags, selectionOf, unscannedParts } from '../scan/selection.js'
import { Losses, opened, trialsAt, withTrial } from '../scan/trials.js'
import { colorsFor, note, safeJson } from '../terminal.js'

export interface SummaryFlags extends SelectionFlags, S3Flags, ReadingFlags, OutputFlags<'summary'> {
  readonly all?: boolean
  readonly follow?: boolean
  readonly failFast?: boolean
}

type Settled = SummaryFlags & { readonly format: FormatOf<'summary'>; readonly onTerminal: boolean }

/** The number of lines of a section without `--all`. */
const MAX_LINES = 24
/** The largest share of the time that the looks at a followed trial take. */
const LOOK_SHARE = 0.2
const CLEAR = '\x1b[H\x1b[J'

/** @returns the exit code */
export async function summary(places: readonly string[], given: SummaryFlags, signal: AbortSignal): Promise<number> {
  const flags = settle('summary', places[0]!, given)
  const { out } = flags
  expectS3(flags, places)
  const paths = await trialsAt(places, flags)
  if (out !== undefined) await expectReplaceableIn(paths, out)
  if (flags.follow) {
    if (paths.length > 1) throw new UsageError(`expected one trial to --follow, got ${paths.length}`)
    return writeTo(out, output => followed(paths[0]!, flags, output, signal), { signal })
  }
  const losses = new Losses(paths, flags.failFast)
  await writeTo(
    out,
    async output => {
      let isFirst = true
      for await (const { path, trial } of opened(paths, flags, losses)) {
        const { text, problems } = await look(trial, flags, signal, losses)
        await output.write(isFirst || flags.format === 'json' ? text : `\n\n${text}`)
        losses.add(path, { problems })
        isFirst = false
      }
    },
    { signal },
  )
  return losses.tell()
}

/** Shows the summary again whenever the job has completed steps, until it ends. */
async function followed(path: string, flags: Settled, output: Output, signal: AbortSignal): Promise<number> {
  const losses = new Losses([path])
  return withTrial(path, flags, async trial => {
    for (;;) {
      const { text, problems, elapsedMs } = await look(trial, flags, signal, losses)
      await output.write(flags.onTerminal && flags.format === 'table' ? CLEAR + text : text)
      await output.flush()
      if (trial.loadedAllSteps) {
        losses.add(path, { problems })
        return losses.tell()
      }
      await sleep(elapsedMs / LOOK_SHARE, undefined, { signal })
      const steps = trial.steps()
      await trial.follow({ startStep: (steps.at(-1) ?? -1) + 1, signal }).next()
    }
  })
}

async function look(trial: Trial, flags: Settled, signal: AbortSignal, losses: Losses) {
  const { all, format, onTerminal } = flags
  const overview = await trialOverview(trial, {
    ...selectionOf(flags),
    ...readingOptions(flags),
    signal,
  })
  for (const message of unscannedParts(trial, flags, overview.values > 0)) note(message)
  if (overview.values === 0 && isSelective(flags)) {
    note(nothingSelected(trial, flags))
    losses.outcome(EXIT.query)
  }
  const { problems, elapsedMs } = overview
  if (format === 'json') {
    const json = jsonOf(overview)
    return { text: `${onTerminal ? safeJson(json) : json}\n`, problems, elapsedMs }
  }
  const text = overviewText(overview, {
    width: process.stdout.columns ?? Number(process.env.COLUMNS || 0),
    colors: colorsFor(onTerminal ? process.stdout : null),
    maxLines: all ? Number.POSITIVE_INFINITY : MAX_LINES,
  })
  return { text, problems, elapsedMs }
}
