/** The listing of `ls`. */

import type { TrialscanError } from '../../base/errors.js'
import type { Mode } from '../../base/types.js'
import * as rowText from '../../scan/job/row.js'
import type { TensorSummary } from '../../trial/summary.js'
import {
  type Colors,
  colorsFor,
  columnLines,
  columns,
  safe,
  safeJson,
  safeName,
  tableWidth,
  wrapped,
} from '../terminal.js'
import type { FormatOf } from './formats.js'
import { csvLine } from './lines.js'
import { bytesText, counted, countText, elementsText, shapeText, shortList } from './number.js'

/**
 * The steps of a mode, and the global steps at which some worker was in that mode. There are more global steps if workers
 * were in different modes at one of them. For GLOBAL, both are the same.
 */
export interface StepListing {
  readonly count: number
  readonly first: number | null
  readonly last: number | null
  readonly incomplete: readonly number[]
  readonly numbers: readonly number[]
  readonly global_numbers: readonly number[]
}

export interface CollectionListing {
  readonly name: string
  /** The members; null if there are too many to list. */
  readonly members: readonly string[] | null
  readonly include_regex: readonly string[]
}

export interface TrialListing {
  readonly name: string
  readonly path: string
  readonly complete: boolean
  readonly bytes: number
  readonly steps: Readonly<Partial<Record<Mode, StepListing>>>
  readonly workers: readonly string[]
  readonly workers_with_data: readonly string[]
  readonly collections: readonly CollectionListing[]
  readonly tensors: readonly TensorSummary[]
  /** The facts about the last checkpoint, if the trial consists of checkpoints. */
  readonly checkpoint?: CheckpointListing
}

/** The facts about the last checkpoint. */
export interface CheckpointListing {
  readonly model: string
  readonly formats: readonly string[]
  readonly steps: string | null
  /** 0 in a dump without weights. */
  readonly parameters: number
  readonly elements: number
  readonly tensors: number
  readonly dtypes: readonly string[]
  readonly files: number
  readonly bytes: number
  readonly metadata: Readonly<Record<string, string>>
  /** Tensors that share all elements with another, by their names. */
  readonly aliases: Readonly<Record<string, string>>
}

/** The listing of trials, with read errors beside it. */
export interface Listed {
  readonly listing: TrialListing
  readonly problems: readonly TrialscanError[]
}

/**
 * The text of trials in pieces, since there may be a million tensors.
 * @param isOnly false: there are several, so that lines begin with the trial, and a table has a line for each
 */
export async function* listingsText(
  trials: AsyncIterable<Listed>,
  isOnly: boolean,
  format: FormatOf<'ls'>,
  onTerminal: boolean,
): AsyncGenerator<string> {
  const colors = colorsFor(onTerminal ? process.stdout : null)
  const rows: string[][] = []
  let isFirst = true
  for await (const { listing, problems } of trials) {
    const { path, tensors } = listing
    switch (format) {
      case 'table':
        if (isOnly) yield* listingTable(listing, colors, tableWidth(onTerminal))
        else rows.push(trialCells(listing))
        break
      case 'json':
        if (!isOnly) yield isFirst ? '{"trials":[' : ','
        yield* listingJson({ listing, problems }, onTerminal)
        break
      case 'jsonl':
        for (const tensor of tensors) {
          yield `${jsonText({ ...(!isOnly && { trial: path }), ...tensorObject(tensor) }, onTerminal)}\n`
        }
        break
      case 'csv':
        if (isFirst) yield csvLine([...(isOnly ? [] : ['trial']), ...TENSOR_COLUMNS], onTerminal)
        for (const tensor of tensors) yield csvLine([...(isOnly ? [] : [path]), ...csvCells(tensor)], onTerminal)
    }
    isFirst = false
  }
  if (format === 'json') yield isOnly ? '\n' : isFirst ? '{"trials":[]}\n' : ']}\n'
  if (format === 'table' && !isOnly) {
    const head = ['trial', 'tensors', 'steps', 'global steps', 'workers', 'bytes', 'job'].map(colors.bold)
    yield* columnLines([head, ...rows], [1, 2, 4, 5], tableWidth(onTerminal))
  }
}

function trialCells({ path, tensors, steps, workers, bytes, complete }: TrialListing): string[] {
  const all = steps.GLOBAL!
  return [
    safe(path),
    countText(tensors.length),
    countText(all.count),
    spanText(all.numbers),
    countText(workers.length),
    bytesText(bytes),
    complete ? 'has ended' : 'may still run',
  ]
}

function jsonText(value: unknown, onTerminal: boolean): string {
  const text = JSON.stringify(value)
  return onTerminal ? safeJson(text) : text
}

function* listingJson({ listing, problems }: Listed, onTerminal: boolean): Generator<string> {
  const { tensors, ...others } = listing
  yield `${jsonText(others, onTerminal).slice(0, -1)},"tensors":[`
  for (const [i, tensor] of tensors.entries()) {
    yield `${i > 0 ? ',' : ''}${jsonText(tensorObject(tensor), onTerminal)}`
  }
  yield '],"problems":['
  for (const [i, problem] of problems.entries()) {
    yield `${i > 0 ? ',' : ''}${jsonText(rowText.errorObject(problem), onTerminal)}`
  }
  yield ']}'
}

function tensorObject(tensor: TensorSummary) {
  const { name, dtype, shape, lastShape, stepCount, firstStep, lastStep, byteLength, savedReductions, error } = tensor
  return {
    name,
    dtype,
    shape,
    last_shape: lastShape,
    steps: stepCount,
    first_step: firstStep,
    last_step: lastStep,
    bytes: byteLength,
    saved_reductions: savedReductions,
    ...(error && { error: rowText.errorObject(error) }),
  }
}

const TENSOR_COLUMNS = [
  ...['name', 'dtype', 'shape', 'last_shape', 'steps', 'first_step', 'last_step', 'bytes', 'saved_reductions'],
  ...['error_code', 'error_message'],
]

function csvCells(tensor: TensorSummary) {
  const { name, dtype, shape, last_shape, saved_reductions, error: _, ...numbers } = tensorObject(tensor)
  const { code, message } = tensor.error ?? {}
  const shapes = [shapeText(shape), shapeText(last_shape)]
  return [name, dtype, ...shapes, ...Object.values(numbers), saved_reductions.join(' '), code, message]
}

function* listingTable(listing: TrialListing, colors: Colors, width: number | null): Generator<string> {
  const { name, complete, bytes, steps, workers, workers_with_data, collections, tensors } = listing
  const title = (text: string, count?: number) =>
    `\n${colors.bold(text)}${count === undefined ? '' : ` (${countText(count)})`}\n`
  const { checkpoint } = listing
  const state = complete ? 'the job has ended' : 'the job may still run'
  yield [
    checkpoint
      ? checkpointLines(checkpoint, colors, width)
      : `${colors.bold(safeName(name))}: ${counted(tensors.length, 'tensor')}, ${bytesText(bytes)}; ${state}\n`,
    title('Steps'),
    stepsTable(steps, width),
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
      width,
    ),
    collections.some(({ members }) => members === null) ? `  … the others: \`--json\`\n` : '',
    title('Tensors', tensors.length),
  ].join('')
  const hasMore = tensors.some(({ savedReductions, error }) => savedReductions.length > 0 || error)
  yield* columnLines(
    {
      *[Symbol.iterator]() {
        yield ['  name', 'dtype', 'shape', 'steps', 'bytes', hasMore ? 'saved' : '']
        for (const tensor of tensors) yield tensorCells(tensor)
      },
    },
    [4],
    width,
  )
}

/** The number of shown entries of metadata. */
const MAX_METADATA = 8
const MAX_VALUE_LENGTH = 60
const MAX_ALIASES = 4

/** `TinyLM: 73,909 parameters in 24 tensors, bfloat16, 2 shards, 148 kB`, and what the files say about themselves. */
function checkpointLines(checkpoint: CheckpointListing, colors: Colors, width: number | null): string {
  const { model, formats, steps, dtypes, files, bytes, metadata, aliases } = checkpoint
  const kinds = dtypes.length > 3 ? `${dtypes.slice(0, 3).join(', ')} and ${dtypes.length - 3} more` : dtypes.join(', ')
  const facts = [
    elementsText(checkpoint),
    ...(kinds === '' ? [] : [kinds]),
    ...(files > 1 ? [counted(files, formats.every(format => format === 'safetensors') ? 'shard' : 'file')] : []),
    bytesText(bytes),
  ]
  const entries = Object.entries(metadata)
  const said = entries.slice(0, MAX_METADATA).map(([key, value]) => {
    const shown = value.length > MAX_VALUE_LENGTH ? `${value.slice(0, MAX_VALUE_LENGTH)}…` : value
    return `${safeName(key)} ${safe(JSON.stringify(shown))}`
  })
  const more = entries.length > MAX_METADATA ? [`${entries.length - MAX_METADATA} more`] : []
  const tied = Object.entries(aliases)
  const shared = tied.slice(0, MAX_ALIASES).map(([name, other]) => `${safeName(name)} with ${safeName(other)}`)
  const rest = tied.length > MAX_ALIASES ? [`${countText(tied.length - MAX_ALIASES)} more`] : []
  const kind = `  ${steps === null ? 'a checkpoint' : `checkpoints ${safe(steps)}`} of ${formats.join(' and ') || 'no format'}`
  const line = (text: string) => `${width === null ? text : wrapped(text, width, '', '    ')}\n`
  return [
    line(`${colors.bold(safeName(model))}: ${facts.join(', ')}`),
    line(`${kind}${said.length > 0 ? `; its files say: ${[...said, ...more].join(', ')}` : ''}`),
    ...(tied.length > 0 ? [line(`  share their elements: ${[...shared, ...rest].join(', ')}`)] : []),
  ].join('')
}

function spanText(numbers: readonly number[]): string {
  return numbers.length === 0 ? '-' : numbers.length === 1 ? `${numbers[0]}` : `${numbers[0]} to ${numbers.at(-1)}`
}

/** A row for each mode, with its mode steps and its global steps; then one for all steps. */
function stepsTable(steps: TrialListing['steps'], width: number | null): string {
  const { GLOBAL: all, ...byMode } = steps
  const incomplete = (listing: StepListing) =>
    listing.incomplete.length > 0 ? `not yet complete: ${shortList(listing.incomplete)}` : ''
  const modes = Object.entries(byMode)
  const row = (name: string, listing: StepListing, numbers: string) => [
    ...[`  ${name}`, countText(listing.count), spanText(listing.global_numbers)],
    ...(modes.length > 0 ? [numbers] : []),
    incomplete(listing),
  ]
  const head = ['  mode', 'steps', 'global steps', ...(modes.length > 0 ? ['mode steps'] : [])]
  return columns(
    [head, ...modes.map(([mode, listing]) => row(mode, listing, spanText(listing.numbers))), row('all', all!, '')],
    [1],
    width,
  )
}

function tensorCells(tensor: TensorSummary): string[] {
  const { name, dtype, shape, lastShape, byteLength, savedReductions, error } = tensor
  const [first, last] = [shapeText(shape), shapeText(lastShape)]
  return [
    `  ${safeName(name)}`,
    dtype ?? (error ? '?' : '-'),
    (first === last ? first : `${first || '?'} → ${last || '?'}`) || '-',
    stepsText(tensor),
    bytesText(byteLength),
    error ? `! ${safe(error.code)}` : savedText(savedReductions),
  ]
}

/** `0`, `0, 10`, `9: 0 to 80`. */
function stepsText({ stepCount, firstStep, lastStep }: TensorSummary): string {
  if (stepCount < 3) return [...new Set([firstStep, lastStep])].join(', ')
  return `${countText(stepCount)}: ${firstStep} to ${lastStep}`
}

/** The number of listed reductions. Of more, only the number is shown; `--json` has the names. */
const MAX_REDUCTIONS = 2

function savedText(names: readonly string[]): string {
  return names.length > MAX_REDUCTIONS ? `${names.length} reductions` : names.join(', ')
}
