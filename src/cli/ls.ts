/** `trialscan ls`: what a trial holds. */

import { createTrial, type Mode, modes, type TensorSummary, type Trial, TrialscanError } from '../index.js'
import { EXIT } from './exit.js'
import { bytesText, counted, countText } from './format/number.js'
import { errorObject, messageOf, shapeText } from './format/row-format.js'
import { Output } from './output.js'
import { type S3Flags, s3OptionsOf } from './s3.js'
import { colorsFor, columns, note, safe, safeJson, safeName } from './terminal.js'

interface StepListing {
  readonly count: number
  readonly first: number | null
  readonly last: number | null
  readonly incomplete: readonly number[]
  readonly numbers: readonly number[]
}

interface CollectionListing {
  readonly name: string
  readonly members: readonly string[]
  readonly include_regex: readonly string[]
}

interface Listing {
  readonly name: string
  readonly path: string
  readonly complete: boolean
  readonly bytes: number
  readonly steps: Readonly<Partial<Record<Mode, StepListing>>>
  readonly workers: readonly string[]
  readonly workers_with_data: readonly string[]
  readonly collections: readonly CollectionListing[]
  readonly tensors: readonly TensorSummary[]
}

export interface LsFlags extends S3Flags {
  readonly json?: boolean
}

/** @returns the exit code */
export async function ls(path: string, { json = false, ...flags }: LsFlags): Promise<number> {
  const trial = await createTrial(path, { requireCollections: false, refresh: 'manual', ...s3OptionsOf(flags) })
  try {
    const { tensors, byteLength } = await trial.summary()
    const collections = listCollections(trial)
    const listing: Listing = {
      name: trial.name,
      path,
      complete: trial.loadedAllSteps,
      bytes: byteLength,
      steps: listSteps(trial),
      workers: trial.workers(),
      workers_with_data: trial.workersWithData(),
      collections: collections.listed,
      tensors,
    }
    const problems = [...trial.problems, ...collections.problems, ...tensors.flatMap(({ error }) => error ?? [])]
    const output = await Output.open()
    await output.write(json ? jsonText(listing, problems) : listingText(listing))
    await output.end()
    for (const problem of problems) note(messageOf(problem))
    return problems.length > 0 ? EXIT.format : EXIT.ok
  } finally {
    await trial.close()
  }
}

function listSteps(trial: Trial): Listing['steps'] {
  const own = trial.modes()
  const listed = Object.values(modes).filter(mode => mode === 'GLOBAL' || own.includes(mode))
  return Object.fromEntries(
    listed.map((mode): [Mode, StepListing] => {
      const numbers = trial.steps({ mode, showIncompleteSteps: true })
      const complete = new Set(trial.steps({ mode }))
      const incomplete = numbers.filter(step => !complete.has(step))
      return [
        mode,
        { count: numbers.length, first: numbers[0] ?? null, last: numbers.at(-1) ?? null, incomplete, numbers },
      ]
    }),
  )
}

/** A pattern of a collection can be one that is refused; the others are listed all the same. */
function listCollections(trial: Trial): { listed: CollectionListing[]; problems: TrialscanError[] } {
  const problems: TrialscanError[] = []
  const listed = [...trial.collections().values()].map((collection): CollectionListing => {
    const { name, includeRegex } = collection
    try {
      return { name, members: collection.members, include_regex: includeRegex }
    } catch (error) {
      if (!(error instanceof TrialscanError)) throw error
      problems.push(error)
      return { name, members: [], include_regex: includeRegex }
    }
  })
  return { listed, problems }
}

function jsonText(listing: Listing, problems: readonly TrialscanError[]): string {
  const tensors = listing.tensors.map(
    ({ name, dtype, shape, lastShape, stepCount, byteLength, savedReductions, error }) => ({
      name,
      dtype,
      shape,
      last_shape: lastShape,
      steps: stepCount,
      bytes: byteLength,
      saved_reductions: savedReductions,
      ...(error && { error: errorObject(error) }),
    }),
  )
  const json = JSON.stringify({ ...listing, tensors, problems: problems.map(errorObject) })
  return `${process.stdout.isTTY ? safeJson(json) : json}\n`
}

function listingText({
  name,
  complete,
  bytes,
  steps,
  workers,
  workers_with_data,
  collections,
  tensors,
}: Listing): string {
  const colors = colorsFor(process.stdout)
  const title = (text: string, count?: number) =>
    `\n${colors.bold(text)}${count === undefined ? '' : ` (${countText(count)})`}\n`
  const state = complete ? 'the job has ended' : 'the job may still run'
  return [
    `${colors.bold(safeName(name))}: ${counted(tensors.length, 'tensor')}, ${bytesText(bytes)}; ${state}\n`,
    title('Steps'),
    columns(
      Object.entries(steps).map(([mode, { count, first, last, incomplete }]) => [
        `  ${mode === 'GLOBAL' ? 'all' : mode}`,
        countText(count),
        count === 0 ? '' : `${first} to ${last}`,
        incomplete.length > 0 ? `not yet complete: ${briefly(incomplete.map(String))}` : '',
      ]),
      [1],
    ),
    title('Workers', workers.length),
    ...workers.map(worker => `  ${safeName(worker)}${workers_with_data.includes(worker) ? '' : '  (nothing saved)'}\n`),
    title('Collections', collections.length),
    columns(
      collections.map(({ name, members }) => [`  ${safeName(name)}`, counted(members.length, 'tensor')]),
      [1],
    ),
    title('Tensors', tensors.length),
    columns([['  name', 'dtype', 'shape', 'steps', 'bytes', 'saved reductions'], ...tensors.map(tensorCells)], [3, 4]),
  ].join('')
}

function tensorCells(tensor: TensorSummary): string[] {
  const { name, dtype, shape, lastShape, stepCount, byteLength, savedReductions, error } = tensor
  const [first, last] = [shapeText(shape), shapeText(lastShape)]
  return [
    `  ${safeName(name)}`,
    dtype ?? (error ? '?' : '-'),
    (first === last ? first : `${first || '?'} → ${last || '?'}`) || '-',
    countText(stepCount),
    bytesText(byteLength),
    error ? `! ${safe(error.code)}` : savedReductions.join(','),
  ]
}

function briefly(texts: readonly string[]): string {
  return texts.length > 8 ? `${texts.slice(0, 8).join(', ')} and ${texts.length - 8} more` : texts.join(', ')
}
