/** `trialscan ls`: lists the content of trials. */

import { TrialscanError } from '../../base/errors.js'
import { problemLines } from '../../base/problem-lines.js'
import { type Mode, modes } from '../../base/types.js'
import { prepareMembers } from '../../trial/names.js'
import type { TensorSummary } from '../../trial/summary.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import type { FormatOf } from '../format/formats.js'
import {
  type CollectionListing,
  type Listed,
  listingsText,
  type StepListing,
  type TrialListing,
} from '../format/listing.js'
import { settle } from '../options/given.js'
import { expectS3, type S3Flags } from '../options/s3.js'
import { writeTo } from '../output.js'
import { expectReplaceableIn } from '../real-path.js'
import { Losses, opened, trialsAt } from '../scan/trials.js'
import { modeStepOf } from '../step-texts.js'
import { listFiles } from './ls-files.js'

export interface LsFlags extends S3Flags {
  readonly json?: boolean
  readonly files?: boolean
  readonly format?: FormatOf<'ls'>
  readonly failFast?: boolean
  readonly out?: string
}

/** @returns the exit code */
export async function ls(places: readonly string[], given: LsFlags): Promise<number> {
  const flags = settle('ls', places[0]!, given)
  const { format, onTerminal, out } = flags
  expectS3(flags, places)
  if (flags.files) return listFiles(places, flags)
  const paths = await trialsAt(places, flags)
  if (out !== undefined) await expectReplaceableIn(paths, out)
  const losses = new Losses(paths, flags.failFast)
  const texts = listingsText(listingsOf(paths, flags, losses), paths.length === 1, format, onTerminal)
  await writeTo(out, async output => {
    for await (const text of texts) await output.write(text)
  })
  return losses.tell()
}

async function* listingsOf(paths: readonly string[], flags: LsFlags, losses: Losses): AsyncGenerator<Listed> {
  const maxCollections = flags.format === 'table' ? MAX_COLLECTIONS : Number.POSITIVE_INFINITY
  for await (const { path, trial } of opened(paths, flags, losses)) {
    try {
      const listed = await listedOf(path, trial, maxCollections)
      losses.add(path, { problems: problemLines(listed.problems) })
      yield listed
    } catch (error) {
      losses.trial(path, error)
    }
  }
}

async function listedOf(path: string, trial: Trial, maxCollections: number): Promise<Listed> {
  const { tensors, byteLength } = await trial.summary()
  await prepareMembers(stateOf(trial))
  const collections = listCollections(trial, maxCollections)
  return {
    listing: {
      name: trial.name,
      path,
      complete: trial.loadedAllSteps,
      bytes: byteLength,
      steps: listSteps(trial),
      workers: trial.workers(),
      workers_with_data: trial.workersWithData(),
      collections: collections.listed,
      tensors: [...tensors, ...unreadTensors(trial)],
      ...checkpointListing(trial),
    },
    problems: [...trial.problems, ...collections.problems, ...tensors.flatMap(({ error }) => error ?? [])],
  }
}

/** The facts about checkpoints. */
function checkpointListing({ checkpoint }: Trial): Pick<TrialListing, 'checkpoint'> {
  if (checkpoint === null) return {}
  const { model, formats, family, parameters, elements, tensors, dtypes, files, byteLength, metadata, aliases } =
    checkpoint
  const counts = { parameters, elements, tensors, dtypes, files, bytes: byteLength }
  const texts = { metadata: Object.fromEntries(metadata), aliases: Object.fromEntries(aliases) }
  return { checkpoint: { model, formats, steps: family, ...counts, ...texts } }
}

/** The tensors of the last checkpoint that can't be read. */
function unreadTensors(trial: Trial): TensorSummary[] {
  const last = trial.steps({ showIncompleteSteps: true }).at(-1) ?? 0
  const at = { stepCount: 1, firstStep: last, lastStep: last }
  return (trial.checkpoint?.unread ?? []).map(({ name, shape = null, byteLength = 0, error }) => {
    return { name, dtype: null, shape, lastShape: shape, ...at, byteLength, savedReductions: [], error }
  })
}

function listSteps(trial: Trial): TrialListing['steps'] {
  const saved = trial.modes()
  const workers = trial.workersWithData()
  const all = trial.steps({ showIncompleteSteps: true })
  const listed = Object.values(modes).filter(mode => mode === 'GLOBAL' || saved.includes(mode))
  return Object.fromEntries(
    listed.map((mode): [Mode, StepListing] => {
      const numbers = mode === 'GLOBAL' ? all : trial.steps({ mode, showIncompleteSteps: true })
      const isOfMode = (step: number) => workers.some(worker => modeStepOf(trial, step, mode, worker) !== undefined)
      const complete = trial.steps({ mode })
      let at = 0
      // Both lists ascend.
      const incomplete = numbers.filter(step => {
        if (complete[at] !== step) return true
        at++
        return false
      })
      return [
        mode,
        {
          count: numbers.length,
          first: numbers[0] ?? null,
          last: numbers.at(-1) ?? null,
          incomplete,
          numbers,
          global_numbers: mode === 'GLOBAL' ? numbers : all.filter(isOfMode),
        },
      ]
    }),
  )
}

/** The number of collections whose members are counted in a table. */
const MAX_COLLECTIONS = 100
/** The number of members listed over all collections. A few patterns can match any number of tensors. */
const MAX_MEMBERS = 1_000_000

/** Lists the collections. One with an invalid pattern is a problem; the others are listed. */
function listCollections(trial: Trial, limit: number): { listed: CollectionListing[]; problems: TrialscanError[] } {
  const problems: TrialscanError[] = []
  let members = 0
  const listed = [...trial.collections().values()].map((collection, i): CollectionListing => {
    const { name, includeRegex } = collection
    try {
      if (i >= limit || members >= MAX_MEMBERS) return { name, members: null, include_regex: includeRegex }
      members += collection.members.length
      return { name, members: collection.members, include_regex: includeRegex }
    } catch (error) {
      if (!(error instanceof TrialscanError)) throw error
      problems.push(error)
      return { name, members: [], include_regex: includeRegex }
    }
  })
  return { listed, problems }
}
