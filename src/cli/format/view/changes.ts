/** The changes between two runs of one step each, such as two checkpoints: the largest relative changes first. */

import type { TrialDiff } from '../../../compare/diff.js'
import type { LowRankChange } from '../../../compare/rank.js'
import type { DifferenceAt } from '../../../compare/records.js'
import { decibels } from '../../../compare/wording.js'
import { isOptimizerState } from '../../../format/checkpoint/names.js'
import { type Colors, columns, narrowed, safe, safeName } from '../../terminal.js'
import { apartNumbers, counted, countText, shortList, shortNumber } from '../number.js'

const MAX_NAMES = 3
/** The number of layers from which a table of layers is shown. */
const MIN_LAYERS = 2
const MAX_LAYERS = 200

export type Paragraph = (text: string, indent?: string) => string

/**
 * @param top rows of the table; Infinity: all
 * @param width of the tables; null for no limit
 */
export function changesBlocks(
  [a, b]: readonly [string, string],
  { differences, compared, equal, close, noisy, reduced, missing, equalTensors, problems, stored }: TrialDiff,
  paragraph: Paragraph,
  colors: Colors,
  top: number,
  width: number | null,
  lowRank: readonly LowRankChange[],
): string[] {
  const quantised = differences.filter(difference => difference.quantised !== null)
  const sorted = mostChanged(differences)
  const [states, model] = [true, false].map(is => sorted.filter(({ tensor }) => isOptimizerState(tensor) === is)) as [
    DifferenceAt[],
    DifferenceAt[],
  ]
  const finite = (model.length > 0 ? model : states).filter(({ difference }) =>
    Number.isFinite(difference?.relativeNorm ?? Number.NaN),
  )
  const broken = sorted.filter(({ difference }) => difference !== null && difference.notFinite !== 'neither')
  const sentences = [
    `${a} and ${b}: ${[
      ...(quantised.length > 0 ? [`${countText(quantised.length)} of ${counted(compared, 'tensor')} quantised`] : []),
      ...(sorted.length > 0 || quantised.length === 0
        ? [
            `${countText(sorted.length)}${quantised.length > 0 ? '' : ` of ${counted(compared, 'tensor')}`} changed${stateText(states.length, sorted.length)}`,
          ]
        : []),
    ].join(', ')}`,
    ...(equal > 0 ? [equalText(equal, equalTensors)] : []),
    ...(close > 0 ? [`${countText(close)} ${close === 1 ? 'is' : 'are'} within the tolerance`] : []),
    ...(noisy > 0 ? [`${countText(noisy)} ${noisy === 1 ? 'is' : 'are'} within noise`] : []),
    ...(reduced > 0 ? [`of ${countText(reduced)} only reductions were compared, which agree`] : []),
    ...(missing > 0 ? [`${countText(missing)} more ${missing === 1 ? 'was' : 'were'} not compared`] : []),
  ]
  const [most] = finite
  const lead = [
    `${sentences.join('; ')}.`,
    ...(quantised.length > 0 ? [worstText(quantised)] : []),
    ...(broken.length > 0 ? [notFiniteText(broken)] : []),
    ...(most === undefined
      ? []
      : [
          `Largest relative change ‖Δ‖/‖a‖ ${percentText(most.difference!.relativeNorm!)} in ${safeName(most.tensor)}${stored > 0 ? ', as stored: scales are compared on their own' : ''}.`,
        ]),
    ...(problems.length > 0 ? ['Some could not be read.'] : []),
  ]
  const shown = sorted.slice(0, top)
  const rest = sorted.length - shown.length
  const rows = shown.map(difference => rowOf(difference, width === null))
  const table =
    shown.length === 0 ? '' : narrowed([HEAD, ...rows], { right: [1, 2, 3, 6], spare: [6, 4, 3], long: 5 }, width)
  // Sentences do not fit into a column.
  const withSentence = width === null ? [] : shown.filter(({ difference }) => difference === null)
  const reasons = withSentence
    .map(({ tensor, message }) => paragraph(`${safeName(tensor)}: ${message}.`, '  '))
    .join('')
  return [
    colors.bold(colors.red(paragraph(lead.join(' ')))),
    ...quantisedBlock(quantised, colors, top, width),
    ...(table === '' ? [] : [`${table}${reasons}${moreText(rest, colors)}`]),
    ...lowRankBlock(lowRank, paragraph),
    ...layerBlock(finite, colors),
  ]
}

/** The differences in the order of the table: tensors of the model before states of the optimizer. */
export function mostChanged(differences: readonly DifferenceAt[]): readonly DifferenceAt[] {
  const bySize = differences.filter(difference => difference.quantised === null).sort((x, y) => sizeOf(y) - sizeOf(x))
  return [false, true].flatMap(is => bySize.filter(({ tensor }) => isOptimizerState(tensor) === is))
}

/** A sentence on changes of low rank; none if there are none. */
function lowRankBlock(lowRank: readonly LowRankChange[], paragraph: Paragraph): string[] {
  const [first] = lowRank
  if (first === undefined) return []
  const most = (key: 'rank' | 'rows' | 'columns') => Math.max(...lowRank.map(change => change[key]))
  const rank = most('rank')
  const others = lowRank.length - 1
  const which = `${safeName(first.tensor)}${others > 0 ? ` and ${others} more` : ''}`
  const directions = rank === 1 ? 'one direction holds' : `at most ${rank} directions hold`
  const sample = `${others > 0 ? 'samples of up to' : 'a sample of'} ${counted(most('rows'), 'row')} and ${counted(most('columns'), 'column')}`
  const among = lowRank.some(({ isSample }) => isSample) ? `the rows and columns of ${sample}` : 'all rows and columns'
  return [
    paragraph(
      `Low rank: in ${which}, ${directions} 95 % of ‖Δ‖² in 95 % of ${among}. A merged LoRA adapter is one possible cause.`,
    ),
  ]
}

function stateText(states: number, all: number): string {
  if (states === 0) return ''
  return `, ${states === all ? 'all' : countText(states)} of them of the optimizer`
}

function moreText(rest: number, colors: Colors): string {
  return rest > 0 ? colors.dim(`  and ${countText(rest)} more: --top N shows more, --all each\n`) : ''
}

const HEAD = ['  tensor', '‖Δ‖/‖a‖', 'changed', 'max |Δ|', '', 'a → b there', 'cosine']

/** The sort key of the table. Differences without a finite relative norm come first, among them those of shape. */
function sizeOf({ difference }: DifferenceAt): number {
  return difference?.relativeNorm ?? Number.POSITIVE_INFINITY
}

/** A row of the table. @param hasMessage true to say in the row why there are no numbers */
function rowOf({ tensor, kind, difference, largest, message }: DifferenceAt, hasMessage: boolean): string[] {
  if (difference === null) return [`  ${safeName(tensor)}`, kind, '', '', '', hasMessage ? safe(message) : '']
  const { relativeNorm, unequalCount, count, maxAbsolute, largestPair, cosine } = difference
  return [
    `  ${safeName(tensor)}`,
    relativeNorm === null ? 'NaN' : percentText(relativeNorm),
    shareText(unequalCount, count),
    shortNumber(maxAbsolute),
    largest === null ? '' : `[${largest.join(', ')}]`,
    largestPair === null ? '' : apartNumbers(largestPair).join(' → '),
    cosine === null ? '' : cosine.toFixed(6),
  ]
}

function equalText(equal: number, names: readonly string[]): string {
  const shown = names.slice(0, MAX_NAMES).map(safeName)
  const more = equal - shown.length
  const list =
    more > 0
      ? `${shown.join(', ')} and ${countText(more)} more`
      : shown.length > 1
        ? `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`
        : shown.join('')
  return `${list} ${equal === 1 ? 'is' : 'are'} equal bit for bit`
}

function notFiniteText(broken: readonly DifferenceAt[]): string {
  const sides = new Set(broken.map(({ difference }) => difference!.notFinite))
  const side =
    sides.size > 1 || sides.has('both') ? 'one or both' : sides.has('a') ? 'the first alone' : 'the second alone'
  const names = broken.map(({ tensor }) => safeName(tensor))
  return `NaN or infinities are in ${side} of ${counted(names.length, 'tensor')}: ${shortList(names, MAX_NAMES)}.`
}

/** A ratio with three significant digits, such as 0.031 or 1.2e-7. */
function percentText(value: number): string {
  return Number.isFinite(value) ? shortNumber(Number(value.toPrecision(3))) : 'Inf'
}

function shareText(part: number, whole: number): string {
  if (part === whole) return 'all'
  const share = (100 * part) / whole
  if (share < 0.1) return `${countText(part)} of ${countText(whole)}`
  return share > 99.9 ? '> 99.9 %' : `${share.toFixed(1)} %`
}

// ------------------------------------------------------------------------------------------------------ Quantised

function worstText(quantised: readonly DifferenceAt[]): string {
  const [worst] = worstFirst(quantised)
  const { sqnr, normalisedError } = worst!.quantised!
  return `Worst: ${decibels(sqnr)} dB (normalised squared error ${percentText(normalisedError)}) in ${safeName(worst!.tensor)}.`
}

function worstFirst(quantised: readonly DifferenceAt[]): readonly DifferenceAt[] {
  return [...quantised].sort((x, y) => y.quantised!.normalisedError - x.quantised!.normalisedError)
}

/** The errors of quantisation, the worst first; a scheme that all share is named once. */
function quantisedBlock(
  quantised: readonly DifferenceAt[],
  colors: Colors,
  top: number,
  width: number | null,
): string[] {
  if (quantised.length === 0) return []
  const rows = worstFirst(quantised)
    .slice(0, top)
    .map(({ tensor, quantised: error }) => {
      const { sqnr, normalisedError, cosine, maxAbsolute, worstBlock, saturated, scheme } = error!
      return [
        `  ${safeName(tensor)}`,
        decibels(sqnr),
        percentText(normalisedError),
        cosine.toFixed(6),
        shortNumber(maxAbsolute),
        `${percentText(worstBlock.normalisedError)} at [${worstBlock.index.join(', ')}]`,
        `${(100 * saturated).toFixed(2)} %`,
        scheme,
      ]
    })
  const head = ['  quantised', 'SQNR dB', 'NMSE', 'cosine', 'max |Δ|', 'worst block', 'at ±max', 'as']
  const table = narrowed([head, ...rows], { right: [1, 2, 3, 4, 6], spare: [3, 4, 5, 2], long: 7 }, width)
  return [`${table}${moreText(quantised.length - rows.length, colors)}`]
}

// ---------------------------------------------------------------------------------------------------------- Layers

/** The parts of a layer, by names of tensors. */
const KINDS: readonly (readonly [string, RegExp])[] = [
  ['norm', /norm|\bln_|layer_norm/i],
  ['attention', /attn|attention|\.[qkv]_proj|query|key|value/i],
  ['mlp', /mlp|ffn|feed_forward|expert|\bfc\d|intermediate/i],
]
const OTHER = 'other'

/** A table of layers and kinds: the largest relative change of each. */
function layerBlock(finite: readonly DifferenceAt[], colors: Colors): string[] {
  const layers = new Map<number, Map<string, number>>()
  for (const { tensor, difference } of finite) {
    const layer = /(?:^|\.)(?:layers?|blocks?|h)\.(\d+)\./.exec(tensor)?.[1]
    if (layer === undefined) continue
    const kind = KINDS.find(([, pattern]) => pattern.test(tensor))?.[0] ?? OTHER
    const ofLayer = layers.get(Number(layer)) ?? new Map<string, number>()
    layers.set(Number(layer), ofLayer)
    ofLayer.set(kind, Math.max(ofLayer.get(kind) ?? 0, difference!.relativeNorm!))
  }
  if (layers.size < MIN_LAYERS) return []
  const kinds = [...KINDS.map(([kind]) => kind), OTHER].filter(kind =>
    [...layers.values()].some(layer => layer.has(kind)),
  )
  const numbers = [...layers.keys()].sort((x, y) => x - y).slice(0, MAX_LAYERS)
  const rows = numbers.map(layer => [
    `  ${layer}`,
    ...kinds.map(kind => {
      const change = layers.get(layer)!.get(kind)
      return change === undefined ? '' : percentText(change)
    }),
  ])
  const title = colors.bold('By layer: the largest ‖Δ‖/‖a‖ of its tensors')
  return [
    `${title}\n${columns(
      [['  layer', ...kinds], ...rows],
      kinds.map((_, i) => i + 1),
    )}`,
  ]
}
