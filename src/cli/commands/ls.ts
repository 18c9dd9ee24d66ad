/** `trialscan ls`: what a trial holds. */

import { createTrial, type Mode, modes, rowText, type TensorSummary, type Trial, TrialscanError } from '../../index.js'
import { EXIT } from '../exit.js'
import type { FormatOf } from '../format/formats.js'
import { csvLine } from '../format/lines.js'
import { bytesText, counted, countText, shapeText, shortList } from '../format/number.js'
import { settle } from '../options/given.js'
import { type S3Flags, s3OptionsFor } from '../options/s3.js'
import { writeTo } from '../output.js'
import { expectReplaceable } from '../real-path.js'
import { modeStepOf } from '../step-texts.js'
import { type Colors, colorsFor, columnLines, columns, note, safe, safeJson, safeName } from '../terminal.js'

/**
 * The steps of a mode, and the global steps at which some worker was in that mode. There are more global steps if workers
 * were in different modes at one of them. For GLOBAL, both are the same.
 */
interface StepListing {
  readonly count: number
  readonly first: number | null
  readonly last: number | null
  readonly incomplete: readonly number[]
  readonly numbers: readonly number[]
  readonly global_numbers: readonly number[]
}

interface CollectionListing {
  readonly name: string
  /** Null: too many to be listed. */
  readonly members: readonly string[] | null
  readonly include_regex: readonly string[]
}

interface TrialListing {
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
  readonly format?: FormatOf<'ls'>
  readonly out?: string
}

/** @returns the exit code */
export async function ls(path: string, given: LsFlags): Promise<number> {
  const flags = settle('ls', path, given)
  const { format, onTerminal, out } = flags
  if (out !== undefined) await expectReplaceable(path, out)
  const trial = await createTrial(path, { requireCollections: false, refresh: 'manual', ...s3OptionsFor(path, flags) })
  try {
    const { tensors, byteLength } = await trial.summary()
    const collections = listCollections(trial, format === 'table' ? MAX_COLLECTIONS : Number.POSITIVE_INFINITY)
    const listing: TrialListing = {
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
    await writeTo(out, output => output.writeAll(listingText(listing, problems, format, onTerminal)))
    for (const problem of problems.slice(0, MAX_NOTES)) note(problem.message)
    if (problems.length > MAX_NOTES) note(`and ${countText(problems.length - MAX_NOTES)} problems more`)
    return problems.length > 0 ? EXIT.format : EXIT.ok
  } finally {
    await trial.close()
  }
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
      // Both ascend.
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

/** Problems that are named on standard error. */
const MAX_NOTES = 100
/** Collections whose members are counted in a table. */
const MAX_COLLECTIONS = 100
/** Members that are listed, over all collections. A few patterns can match any number of tensors. */
const MAX_MEMBERS = 1_000_000

/** A collection with an invalid pattern is a problem. The others are listed all the same. */
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

/** The text in pieces, since there may be a million tensors. */
function* listingText(
  listing: TrialListing,
  problems: readonly TrialscanError[],
  format: FormatOf<'ls'>,
  onTerminal: boolean,
): Generator<string> {
  const json = (value: unknown) => {
    const text = JSON.stringify(value)
    return onTerminal ? safeJson(text) : text
  }
  switch (format) {
    case 'table':
      yield* listingTable(listing, colorsFor(onTerminal ? process.stdout : null))
      break
    case 'json': {
      const { tensors, ...others } = listing
      yield `${json(others).slice(0, -1)},"tensors":[`
      for (const [i, tensor] of tensors.entries()) yield `${i > 0 ? ',' : ''}${json(tensorObject(tensor))}`
      yield '],"problems":['
      for (const [i, problem] of problems.entries()) yield `${i > 0 ? ',' : ''}${json(rowText.errorObject(problem))}`
      yield ']}\n'
      break
    }
    case 'jsonl':
      for (const tensor of listing.tensors) yield `${json(tensorObject(tensor))}\n`
      break
    case 'csv':
      yield csvLine(TENSOR_COLUMNS, onTerminal)
      for (const tensor of listing.tensors) yield csvLine(csvCells(tensor), onTerminal)
  }
}

function tensorObject(tensor: TensorSummary) {
  const { name, dtype, shape, lastShape, stepCount, byteLength, savedReductions, error } = tensor
  return {
    name,
    dtype,
    shape,
    last_shape: lastShape,
    steps: stepCount,
    bytes: byteLength,
    saved_reductions: savedReductions,
    ...(error && { error: rowText.errorObject(error) }),
  }
}

const TENSOR_COLUMNS = [
  ...['name', 'dtype', 'shape', 'last_shape', 'steps', 'bytes', 'saved_reductions', 'error_code', 'error_message'],
]

function csvCells(tensor: TensorSummary) {
  const { name, dtype, shape, lastShape, stepCount, byteLength, savedReductions, error } = tensor
  const shapes = [shapeText(shape), shapeText(lastShape)]
  return [name, dtype, ...shapes, stepCount, byteLength, savedReductions.join(' '), error?.code, error?.message]
}

function* listingTable(listing: TrialListing, colors: Colors): Generator<string> {
  const { name, complete, bytes, steps, workers, workers_with_data, collections, tensors } = listing
  const title = (text: string, count?: number) =>
    `\n${colors.bold(text)}${count === undefined ? '' : ` (${countText(count)})`}\n`
  const state = complete ? 'the job has ended' : 'the job may still run'
  yield [
    `${colors.bold(safeName(name))}: ${counted(tensors.length, 'tensor')}, ${bytesText(bytes)}; ${state}\n`,
    title('Steps'),
    stepsTable(steps),
    title('Workers', workers.length),
    ...workers.map(worker => `  ${safeName(worker)}${workers_with_data.includes(worker) ? '' : '  (nothing saved)'}\n`),
    title('Collections', collections.length),
    columns(
      collections.flatMap(({ name, members }) =>
        members
          ? [[`  ${safeName(name)}`, countText(members.length), members.length === 1 ? 'tensor' : 'tensors']]
          : [],
      ),
      [1],
    ),
    collections.some(({ members }) => members === null) ? `  … the others: \`--json\`\n` : '',
    title('Tensors', tensors.length),
  ].join('')
  yield* columnLines(
    {
      *[Symbol.iterator]() {
        yield ['  name', 'dtype', 'shape', 'steps', 'bytes', 'saved reductions']
        for (const tensor of tensors) yield tensorCells(tensor)
      },
    },
    [3, 4],
  )
}

/** A row for each mode, with its mode steps and its global steps; then one for all steps. */
function stepsTable(steps: TrialListing['steps']): string {
  const { GLOBAL: all, ...byMode } = steps
  const span = (numbers: readonly number[]): string =>
    numbers.length === 0 ? '-' : numbers.length === 1 ? `${numbers[0]}` : `${numbers[0]} to ${numbers.at(-1)}`
  const incomplete = (listing: StepListing) =>
    listing.incomplete.length > 0 ? `not yet complete: ${shortList(listing.incomplete)}` : ''
  const modes = Object.entries(byMode)
  const row = (name: string, listing: StepListing, numbers: string) => [
    ...[`  ${name}`, countText(listing.count), span(listing.global_numbers)],
    ...(modes.length > 0 ? [numbers] : []),
    incomplete(listing),
  ]
  const head = ['  mode', 'steps', 'global steps', ...(modes.length > 0 ? ['mode steps'] : [])]
  return columns(
    [head, ...modes.map(([mode, listing]) => row(mode, listing, span(listing.numbers))), row('all', all!, '')],
    [1],
  )
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
