/** A training at a glance, as text: as wide as the terminal, and 80 columns at least. */

import { lacksTensors } from '../../../rules/finding.js'
import type { OverviewLine, TrialOverview } from '../../../view/overview/overview.js'
import { enumeration, notFiniteText, numberText, remarks } from '../../../view/overview/remarks.js'
import { type Colors, columns, padEnd, safe, safeName, widthOf, wrapped } from '../../terminal.js'
import { sparkline, spread } from '../bars.js'
import { bytesText, counted, countText, elementsText } from '../number.js'

const MIN_WIDTH = 80
/** The largest share of the width for a name. */
const NAME_SHARE = 0.4
/** The largest share for a name in a line of one value, without a sparkline. */
const SINGLE_NAME_SHARE = 0.75
const MIN_SPARKS = 10
const MAX_CAUSES = 5
const MAX_PROBLEMS = 5

export interface OverviewOptions {
  readonly width: number | undefined
  readonly colors: Colors
  /** The number of lines in a section. */
  readonly maxLines: number
}

export function overviewText(overview: TrialOverview, options: OverviewOptions): string {
  const { colors, maxLines } = options
  const width = Math.max(MIN_WIDTH, options.width ?? MIN_WIDTH)
  const title = (text: string) => `\n${colors.bold(text)}\n`
  const paragraph = (text: string) => `${wrapped(safe(text), width, '  ', '    ')}\n`
  const section = (name: string, lines: readonly OverviewLine[], isLog: boolean) => {
    if (lines.length === 0) return ''
    const shown = spread(lines, maxLines)
    const rest =
      shown.length < lines.length
        ? colors.dim(`  (${shown.length} of ${countText(lines.length)}, evenly chosen; --all shows each)\n`)
        : ''
    return title(name) + linesText(shown, width, isLog ? scaleOf(lines) : null) + rest
  }
  const { losses, metrics, gradients, weights, updates } = overview
  const { first, last } = span(overview)
  const marks = [...losses, ...metrics, ...gradients, ...weights, ...updates].flatMap(({ values }) => values)
  const legend = [
    ...([...gradients, ...weights, ...updates].some(({ values }) => values.includes(0)) ? ['· is exactly zero'] : []),
    ...(marks.every(Number.isFinite) ? [] : ['! is not finite']),
  ]
  return [
    headText(overview, width, colors),
    title('What the rules say'),
    ...rulesText(overview, colors, paragraph),
    section(`Losses, step ${first} to ${last}`, losses, false),
    section('Metrics', metrics, false),
    section('Mean |gradient| of each layer, all on one logarithmic scale', gradients, true),
    section('Mean |weight| of each layer', weights, true),
    section('Updates: ‖Δ‖ / ‖W‖ of each weight from step to step', updates, true),
    legend.length > 0 ? colors.dim(`  (${legend.join(', ')})\n`) : '',
    ...notFiniteSection(overview, title, paragraph),
    ...remarks(overview).map((text, i) => (i === 0 ? title('What this says') : '') + paragraph(text)),
    ...problemsText(overview, title, paragraph),
    tookText(overview, colors),
  ].join('')
}

function span({ steps }: TrialOverview) {
  return { first: steps[0] ?? 0, last: steps.at(-1) ?? 0 }
}

function headText(overview: TrialOverview, width: number, colors: Colors): string {
  const { name, steps, modes, workers, collections, unread, values, problems } = overview
  const { first, last } = span(overview)
  const byMode = modes.map(({ mode, steps }) => `${mode} ${steps}`).join(', ')
  const facts: readonly (readonly [string, string])[] = [
    ...(isOneCheckpoint(overview)
      ? []
      : [
          [
            'steps',
            steps.length === 0 ? 'none' : `${countText(steps.length)} (${byMode}), ${first} to ${last}`,
          ] as const,
        ]),
    ['workers', enumeration(workers.map(safeName))],
    ['collections', collections.map(({ name, size }) => `${safeName(name)} ${size}`).join(', ') || 'none'],
  ]
  const read =
    unread === 0
      ? 'not everything'
      : `${values === 0 ? 'none' : countText(values)} of ${counted(values + unread, 'tensor value')}`
  const unreadText = problems.length === 0 ? '' : `; ${colors.red(`${read} could be read`)}`
  return [
    `${wrapped(`${contentText(overview)}${unreadText}`, width, `${colors.bold(safeName(name))}: `, '  ')}\n`,
    ...facts.map(([term, text]) => `${wrapped(text, width, `  ${padEnd(term, 13)}`, ' '.repeat(15))}\n`),
  ].join('')
}

/** The number of tensors, and whether more may come; for checkpoints, what they are. */
function contentText({ tensors, isEnded, checkpoint }: TrialOverview): string {
  if (checkpoint === null)
    return `${counted(tensors, 'tensor')}, ${isEnded ? 'the training has ended' : 'the training may still run'}`
  const { dtypes, family, formats } = checkpoint
  const kind = family === null ? 'one checkpoint' : `checkpoints ${safe(family)}`
  const others = tensors - checkpoint.tensors
  return [
    elementsText(checkpoint),
    ...(others > 0 ? [counted(others, 'other tensor')] : []),
    ...dtypes.slice(0, 3),
    `${kind} of ${formats.join(' and ')}`,
  ].join(', ')
}

function isOneCheckpoint({ checkpoint, steps }: TrialOverview): boolean {
  return checkpoint !== null && checkpoint.family === null && steps.length === 1
}

/** The causes, the earliest first. */
function rulesText(
  { findings, rules, learningRates, notJudged, judgedSteps, values, unread, problems }: TrialOverview,
  colors: Colors,
  paragraph: (text: string) => string,
): readonly string[] {
  const causes = findings.filter(({ cause }) => cause === null)
  const reasons = [...new Set(notJudged.filter(lack => !lacksTensors(lack)).map(({ missing }) => missing))]
  const unjudged = reasons.map(reason => {
    const rules = notJudged.filter(({ missing }) => missing === reason).map(({ rule }) => rule)
    return colors.dim(
      paragraph(`not judged by ${rules.join(', ')}, which ${rules.length === 1 ? 'needs' : 'need'} ${reason}`),
    )
  })
  const byRule = new Map<string, (typeof causes)[number][]>()
  for (const cause of causes) byRule.set(cause.name, [...(byRule.get(cause.name) ?? []), cause])
  if (byRule.size === 0) {
    const judged = `${counted(rules.length, 'rule')} judged ${counted(judgedSteps, 'step')}`
    if (rules.length === 0) return [paragraph('no rule had anything to judge'), ...unjudged]
    if (values === 0 && unread > 0) return [paragraph('nothing was judged: nothing could be read')]
    return problems.length > 0
      ? [paragraph(`${judged}: nothing was found in what could be read`), ...unjudged]
      : [colors.green(paragraph(`${judged}: nothing was found`)), ...unjudged]
  }
  const shown = [...byRule].slice(0, MAX_CAUSES)
  const lines = shown.map(([name, causes]) => {
    const first = causes[0]!
    const mode = first.mode === 'GLOBAL' ? '' : ` (${first.mode} ${first.modeStep})`
    const text = paragraph(`${name} from step ${first.step}${mode}: ${first.message}`)
    return text.replace(safe(name), colors.bold(colors.red(safe(name))))
  })
  const hidden = byRule.size - shown.length
  const follow = findings.length - causes.length
  const rest = [
    ...(hidden > 0 ? [`${counted(hidden, 'more rule')} fired`] : []),
    ...(follow > 0 ? [`${counted(follow, 'finding')} ${follow === 1 ? 'follows' : 'follow'} from these`] : []),
  ]
  lines.push(...learningRates.map(({ message }) => paragraph(`beside that, ${message}`)))
  return [...lines, ...unjudged, colors.dim(`  ${[...rest, 'trialscan check tells all'].join('; ')}\n`)]
}

/**
 * Lines with their first and last values and a sparkline.
 * @param scale the logarithms of the lowest and the highest block; null for a scale per line
 */
function linesText(lines: readonly OverviewLine[], width: number, scale: readonly [number, number] | null): string {
  const hasModes = new Set(lines.map(({ mode }) => mode)).size > 1
  const longest = lines.reduce((longest, { tensor }) => Math.max(longest, widthOf(safe(tensor))), 0)
  const isSingle = lines.every(({ values }) => values.length === 1)
  const nameWidth = Math.min(longest, Math.floor(width * (isSingle ? SINGLE_NAME_SHARE : NAME_SHARE)))
  const cells = lines.map(({ tensor, mode, values }) => [
    `  ${fitted(safe(tensor), nameWidth)}`,
    ...(hasModes ? [mode] : []),
    numberText(values[0]!),
    ...(isSingle ? [] : ['→', numberText(values.at(-1)!)]),
  ])
  const widths = cells[0]!.map((_, i) => cells.reduce((widest, row) => Math.max(widest, widthOf(row[i]!)), 0))
  const taken = widths.reduce((sum, widest) => sum + 2 + widest, 0)
  const sparks = Math.max(MIN_SPARKS, width - taken)
  return columns(
    cells.map((row, i) => {
      const values = resampled(lines[i]!.values, sparks)
      if (scale === null) return [...row, sparkline(values)]
      // Zero has no logarithm. It is shown as a dot, not as the `!` of values that are not finite.
      return [
        ...row,
        sparkline(
          values.map(value => (value === 0 ? undefined : Math.log10(value))),
          scale,
        ),
      ]
    }),
  )
}

function scaleOf(lines: readonly OverviewLine[]): readonly [number, number] {
  const logs = lines.flatMap(({ values }) => values.map(Math.log10)).filter(Number.isFinite)
  return [
    logs.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY),
    logs.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY),
  ]
}

/** A series reduced to a number of values: means of neighbours, which are not finite where one of them isn't. */
function resampled(values: readonly number[], most: number): readonly number[] {
  if (values.length <= most) return values
  return Array.from({ length: most }, (_, i) => {
    const part = values.slice(Math.floor((i * values.length) / most), Math.floor(((i + 1) * values.length) / most))
    return part.reduce((sum, value) => sum + value, 0) / part.length
  })
}

/** A name that fits a width, cut in its middle, since names differ at their ends. */
function fitted(name: string, width: number): string {
  const characters = [...name]
  if (widthOf(name) <= width) return name
  const head = Math.ceil((width - 1) / 2)
  return `${characters.slice(0, head).join('')}…${characters.slice(characters.length - (width - 1 - head)).join('')}`
}

function notFiniteSection(
  { notFinite }: TrialOverview,
  title: (text: string) => string,
  paragraph: (text: string) => string,
): readonly string[] {
  const sentence = notFiniteText(notFinite)
  return sentence === null ? [] : [title('NaN and infinities'), paragraph(sentence)]
}

function problemsText(
  { problems }: TrialOverview,
  title: (text: string) => string,
  paragraph: (text: string) => string,
): readonly string[] {
  if (problems.length === 0) return []
  const rest = problems.length - MAX_PROBLEMS
  return [
    title('Could not be read'),
    ...problems.slice(0, MAX_PROBLEMS).map(paragraph),
    ...(rest > 0 ? [paragraph(`and ${counted(rest, 'problem')} more`)] : []),
  ]
}

function tookText({ values, readBytes, elapsedMs }: TrialOverview, colors: Colors): string {
  return colors.dim(
    `\n${counted(values, 'tensor value')}, ${bytesText(readBytes)}, looked through in ${elapsedMs.toFixed(0)} ms\n`,
  )
}
