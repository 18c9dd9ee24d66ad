/** The differences of two runs for people. The first line is the answer. */

import type { TrialDiff } from '../../../compare/diff.js'
import type { LowRankChange } from '../../../compare/rank.js'
import type { DifferenceAt } from '../../../compare/records.js'
import { type Colors, columns, safe, safeName, wrapped } from '../../terminal.js'
import { apartNumbers, counted, countText, shortList, shortNumber } from '../number.js'
import { changesBlocks, type Paragraph } from './changes.js'

const MAX_WIDTH = 100
const MIN_WIDTH = 60
const MAX_LINES = 16
const MAX_SUGGESTIONS = 6
const MAX_LACKING = 6
const ORDINALS = ['first', 'second']

export interface DifferenceTableOptions {
  readonly columns: number
  readonly colors: Colors
  /** All differences, not just the first. */
  readonly isFull: boolean
  /** True if later steps were not compared. */
  readonly isFirst: boolean
  /** Rows of the table of two runs of one step each. */
  readonly top: number
  /** Changes of two checkpoints that are of low rank. */
  readonly lowRank: readonly LowRankChange[]
}

/**
 * @param runs the names of the runs; a single one if its workers were compared
 * @param lacking tensors that only one run has
 */
export function differenceTable(
  runs: readonly [string, string?],
  result: TrialDiff,
  lacking: readonly DifferenceAt[],
  { columns: given, colors, isFull, isFirst, top, lowRank }: DifferenceTableOptions,
): string {
  const width = Math.max(MIN_WIDTH, Math.min(MAX_WIDTH, given || MAX_WIDTH))
  const paragraph: Paragraph = (text, indent = '') => `${wrapped(safe(text), width, indent, `${indent}  `)}\n`
  const blocks: string[] = []
  const [a, b] = runs.map(name => safeName(name!))
  const subject = b === undefined ? `The workers of ${a}` : `${a} and ${b}`
  const { divergence, compared, problems } = result
  const tally = tallyOf(result)
  if (divergence === null) {
    const color = problems.length > 0 || compared === 0 ? colors.yellow : colors.green
    blocks.push(color(paragraph(`${subject}: ${sameText(result)}. ${tally}.`)))
  } else if (b !== undefined && result.areCheckpoints) {
    const rows = isFull ? Number.POSITIVE_INFINITY : top
    blocks.push(...changesBlocks([a!, b], result, paragraph, colors, rows, given || null, lowRank))
  } else {
    const later = isFirst ? '; later steps were not compared' : ''
    blocks.push(
      colors.bold(
        colors.red(
          paragraph(`${subject} first differ at ${placeText(divergence, b === undefined)}: ${divergence.message}.`),
        ),
      ) +
        detailText(divergence, paragraph) +
        paragraph(`${untilText(result)}. ${tally}${later}.`, '  '),
    )
    blocks.push(...restBlock(result, isFull, colors, given || null))
  }
  return [
    ...blocks,
    ...wayBlocks(result, paragraph, colors),
    ...lackBlocks([a!, b ?? ''], result, lacking, paragraph),
  ].join('\n')
}

/** The answer in a line. */
export function differenceText([a, b]: readonly [string, string?], result: TrialDiff): string {
  const { divergence } = result
  const subject = b === undefined ? `the workers of ${a}` : `${a} and ${b}`
  return divergence === null
    ? `${subject}: ${sameText(result)}; ${tallyOf(result)}`
    : `${subject} first differ at ${placeText(divergence, b === undefined)}: ${divergence.message}; ${tallyOf(result)}`
}

/** The answer without a difference. It must not be mistaken for a statement about data that was not compared. */
function sameText({ close, noisy, reduced, compared, missing, problems }: TrialDiff): string {
  if (compared === 0) return 'nothing was compared'
  if (problems.length > 0) return 'no difference in what could be read; some could not'
  const beyond = noisy > 0 ? ' beyond noise' : close > 0 ? ' beyond the tolerance' : ''
  return `no difference${beyond}${missing + reduced > 0 ? ' in what was compared' : ''}`
}

function tallyOf({ compared, steps, equal, close, noisy, reduced, missing, bisection }: TrialDiff): string {
  const at = bisection
    ? `${countText(bisection.steps.length)} of ${counted(steps.both, 'step')}`
    : counted(steps.both, 'step')
  const parts = [
    `${countText(equal)} equal`,
    ...(close > 0 ? [`${countText(close)} close`] : []),
    ...(noisy > 0 ? [`${countText(noisy)} within noise`] : []),
    ...(reduced > 0 ? [`${countText(reduced)} by reductions alone, which agree`] : []),
  ]
  return `${counted(compared, 'tensor value')} at ${at} compared: ${parts.join(', ')}${missing > 0 ? `; ${countText(missing)} not compared` : ''}`
}

function untilText({ equalUntil, close, noisy, reduced, missing, problems, bisection }: TrialDiff): string {
  const isPartial = problems.length + missing + reduced > 0 || bisection !== null
  if (equalUntil === null) {
    return isPartial ? 'No step before it was compared in full' : 'Nothing was equal before: it is the first step'
  }
  return `Until step ${equalUntil} all${isPartial ? ' that was compared' : ''} was equal${close > 0 ? ' or close' : ''}${noisy > 0 ? ' or within noise' : ''}`
}

/** The differences after the divergence. */
function restBlock({ differences }: TrialDiff, isFull: boolean, colors: Colors, width: number | null): string[] {
  const rest = differences.slice(1)
  if (rest.length === 0) return []
  const shown = isFull ? rest : rest.slice(0, MAX_LINES)
  const tensors = new Set(rest.map(({ tensor }) => tensor)).size
  const more = rest.length - shown.length
  const hint = more > 0 ? colors.dim(`  and ${countText(more)} more: --all shows each\n`) : ''
  const title = colors.bold(`Then ${counted(rest.length, 'difference')} in ${counted(tensors, 'tensor')}`)
  return [`${title}\n${columns(shown.map(rowOf), [0], width)}${hint}`]
}

/** The growth of differences, and the halving that found them. */
function wayBlocks({ departure, bisection, problems }: TrialDiff, paragraph: Paragraph, colors: Colors): string[] {
  const blocks: string[] = []
  if (departure !== null) {
    const { step, tensor, worker, meanAbsolute, expected } = departure
    const grown = `differences grow as rounding does, until at step ${step} that of ${safeName(tensor)} of ${worker} leaves its trend`
    const growthText = `${shortNumber(meanAbsolute)} on average, where the steps before let expect ${shortNumber(expected)}`
    blocks.push(colors.yellow(paragraph(`Up to there ${grown}: ${growthText}. Something else may begin there.`)))
  }
  if (bisection !== null) {
    const color = bisection.contradiction === null ? colors.dim : colors.yellow
    blocks.push(color(paragraph(halvingText(bisection, problems.length > 0))))
  }
  return blocks
}

/** The assumption of halving, and whether it held. @param isPartial true if something could not be read */
export function halvingText({ contradiction }: NonNullable<TrialDiff['bisection']>, isPartial: boolean): string {
  const read = 'Found by halving, as if what differs once differs from then on'
  return contradiction === null
    ? `${read}; the steps that were looked at agree with that${isPartial ? ', as far as they could be read' : ''}.`
    : `${read}, but step ${contradiction} does not agree with that: an earlier step may differ, too. Leave out --bisect to be sure.`
}

/** The tensors that were not compared, and those that may have other names. */
function lackBlocks(
  [a, b]: readonly [string, string],
  result: TrialDiff,
  lacking: readonly DifferenceAt[],
  paragraph: Paragraph,
): string[] {
  const { missing, steps, suggestions } = result
  const blocks = [...wayNotes(result)].map(text => paragraph(`${text}.`))
  if (missing > 0) {
    const reasons = [...new Set(lacking.map(({ message }) => message))].map(message => {
      const alike = lacking.filter(missing => missing.message === message)
      const names = [...new Set(alike.map(({ tensor }) => safeName(tensor)))]
      return `${message[0]!.toUpperCase()}${message.slice(1)}: ${shortList(names, MAX_LACKING)}`
    })
    const were = missing === 1 ? 'was' : 'were'
    blocks.push(paragraph(`${counted(missing, 'tensor value')} ${were} not compared. ${reasons.join('. ')}.`))
  }
  if (suggestions.length > 0) {
    const shown = suggestions.slice(0, MAX_SUGGESTIONS)
    const more = suggestions.length > shown.length ? `, and ${countText(suggestions.length - shown.length)} more` : ''
    blocks.push(
      paragraph(
        `Perhaps these are the same, by their shapes and neighbours: ${mapText(shown)}${more}. --map takes such names.`,
      ),
    )
  }
  const { onlyA, onlyB } = steps
  if (b !== '' && onlyA.length + onlyB.length > 0) {
    blocks.push(
      paragraph(`Steps of one run alone: ${countText(onlyA.length)} of ${a}, ${countText(onlyB.length)} of ${b}.`),
    )
  }
  return blocks
}

/** Sentences about what was compared with what. They have no full stop, as notes end. */
export function* wayNotes(result: TrialDiff): Generator<string> {
  const { divergence, seemParts, aliases, split, tied, dtypes, stored, logged } = result
  if (seemParts) {
    yield 'Most tensors differ between these workers, as where each has a part of a model and no copy. Parts are put together by diff of two runs with --unify; --tensor norm compares what tensor-parallel ranks have in common'
  }
  if (aliases !== null) yield aliasesText(aliases)
  if (split.length > 0) yield splitText(split)
  for (const pair of tied) yield tiedText(pair)
  for (const pair of dtypes) yield dtypesText(pair)
  if (stored > 0 && divergence !== null) {
    yield `${counted(stored, 'weight')} ${stored === 1 ? 'is' : 'are'} quantised on both sides, and compared as stored, without ${stored === 1 ? 'its' : 'their'} scales`
  }
  if (logged.length > 0) {
    yield `What was logged beside the checkpoints is not compared: ${logged.map(safeName).join(', ')}. --collection scalars compares it by steps`
  }
}

function aliasesText({ names, first, second }: NonNullable<TrialDiff['aliases']>): string {
  const taken = [
    ...first.map(prefix => `${prefix} of the first run`),
    ...second.map(prefix => `${prefix} of the second`),
  ]
  return `${counted(names.size, 'name')} ${names.size === 1 ? 'matches' : 'match'} without ${taken.join(' and ')}`
}

function splitText(split: TrialDiff['split']): string {
  const [{ tensor, of, parts }] = split as [TrialDiff['split'][number]]
  const others =
    split.length === 1 ? '' : `, and so ${split.length === 2 ? 'is' : 'are'} ${countText(split.length - 1)} more`
  return `${safeName(tensor)} of the ${of} run is compared in ${counted(parts.length, 'part')}, as the map says: ${parts.map(safeName).join(', ')}${others}`
}

function tiedText({ tensor, only, tiedTo, count }: TrialDiff['tied'][number]): string {
  return `${safeName(tensor)} is only in the ${only} run: the other leaves it out, as writers do where it is tied to ${safeName(tiedTo)}; in the ${only} run it equals its embeddings (${counted(count, 'tensor value')})`
}

function dtypesText({ dtype, otherDtype, count }: TrialDiff['dtypes'][number]): string {
  const were = count === 1 ? 'is' : 'are'
  return `${counted(count, 'tensor value')} ${were} ${dtype} on one side and ${otherDtype} on the other, and compared as float64`
}

/** The suggested names as a map file has them. */
export function mapText(suggestions: TrialDiff['suggestions']): string {
  return `{ ${suggestions.map(({ tensor, otherTensor }) => `${JSON.stringify(tensor)}: ${JSON.stringify(otherTensor)}`).join(', ')} }`
}

function placeText(
  { step, mode, modeStep, tensor, worker, element, otherTensor, otherWorker }: DifferenceAt,
  isOfWorkers: boolean,
): string {
  const at = `step ${step}${mode === 'GLOBAL' ? '' : ` (${mode} ${modeStep})`}`
  const name = otherTensor === tensor ? tensor : `${tensor} (${otherTensor})`
  const beside = isOfWorkers ? `, beside ${otherWorker}` : ''
  return `${at} in ${name} of ${worker}${beside}${element === null ? '' : `, element [${element.join(', ')}]`}`
}

function detailText({ difference, largest }: DifferenceAt, paragraph: Paragraph): string {
  if (difference === null) return ''
  const { maxAbsolute, maxRelative, meanAbsolute, maxUlps, ulps, cosine, normRatio, relativeNorm, largestPair } =
    difference
  const units = maxUlps === 1 ? '1 unit' : `${countText(maxUlps ?? 0)} units`
  const parts = [
    `largest difference ${shortNumber(maxAbsolute)}${largest === null ? '' : ` at [${largest.join(', ')}]`}${
      largestPair === null
        ? ''
        : ` (${apartNumbers(largestPair)
            .map((text, i) => `${text} in the ${ORDINALS[i]}`)
            .join(', ')})`
    }`,
    ...(relativeNorm === null ? [] : [`‖Δ‖/‖a‖ ${shortNumber(relativeNorm)}`]),
    ...(cosine === null ? [] : [`cosine ${shortNumber(cosine)}`]),
    ...(normRatio === null ? [] : [`ratio of norms ${shortNumber(normRatio)}`]),
    `largest |Δ|/|b| ${shortNumber(maxRelative)}`,
    ...(meanAbsolute === null ? [] : [`mean ${shortNumber(meanAbsolute)}`]),
    ...(maxUlps === null ? [] : [`up to ${units} of the last place (99 % within ${countText(ulps?.p99 ?? maxUlps)})`]),
  ]
  return paragraph(`${parts.join(', ')}.`, '  ')
}

function rowOf({ step, tensor, worker, kind, difference, message }: DifferenceAt): string[] {
  if (difference === null) return [`  ${step}`, safeName(tensor), safe(worker), kind, safe(message)]
  const { unequalCount, count, maxAbsolute } = difference
  return [
    `  ${step}`,
    safeName(tensor),
    safe(worker),
    kind,
    `${countText(unequalCount)} of ${countText(count)}`,
    `up to ${shortNumber(maxAbsolute)}`,
  ]
}
