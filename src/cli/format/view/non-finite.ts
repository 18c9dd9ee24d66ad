/** The origin of NaN and infinities, for people. */

import type { LoggedAround, NonFiniteCheckpoint } from '../../../compare/non-finite/at-checkpoint.js'
import type { NonFiniteOrigin, NonFiniteTrace } from '../../../compare/non-finite/trace.js'
import type { NonFiniteRecord, PassedOverflow, RecordPlaceInTime } from '../../../compare/records.js'
import { type Colors, columns, safe, safeName, wrapped } from '../../terminal.js'
import { counted, countText, shortList, shortNumber } from '../number.js'

const MAX_WIDTH = 100
const MIN_WIDTH = 60
const MAX_LATER = 12
const MAX_CHAIN = 8

export interface NonFiniteTableOptions {
  readonly columns: number
  readonly colors: Colors
  /** All later records, not just the first. */
  readonly isFull: boolean
}

export function nonFiniteTable(
  trial: string,
  trace: NonFiniteTrace,
  { columns: given, colors, isFull }: NonFiniteTableOptions,
): string {
  const width = Math.max(MIN_WIDTH, Math.min(MAX_WIDTH, given || MAX_WIDTH))
  const { origin, warning, later, chain, passed, isUncertain, leftOut, problems, checkpoint } = trace
  const paragraph = (text: string, indent = '') => `${wrapped(safe(text), width, indent, `${indent}  `)}\n`
  const blocks: string[] = []
  const head = `${safeName(trial)}: `
  if (origin === null) {
    const text = paragraph(`${head}${nonFiniteText(trace)}`)
    blocks.push(problems.length > 0 ? colors.yellow(text) : colors.green(text))
  } else {
    const text = paragraph(`${head}${nonFiniteText(trace)}`)
    blocks.push(colors.bold(colors.red(text)) + elementText(origin, paragraph))
  }
  if (checkpoint !== null) {
    blocks.push(paragraph(checkpointText(checkpoint)))
    if (checkpoint.logged.length > 0) {
      blocks.push(`${colors.bold('Logged around it')}\n${columns(loggedRows(checkpoint.logged), [1, 2, 3, 4, 5])}`)
    }
  }
  if (passed.length > 0) blocks.push(paragraph(passedText(passed)))
  if (warning !== null) {
    const { tensor, absMax, limit } = warning
    blocks.push(
      colors.yellow(
        paragraph(
          `Before that, ${tensor} was near to overflow ${placeText(warning)}: its largest magnitude was ${shortNumber(absMax)}, above ${shortNumber(limit)}.`,
        ),
      ),
    )
  }
  if (chain.length > 1) {
    blocks.push(
      `${colors.bold('From there to the loss')}\n${chainLines(chain, isFull)
        .map((line, i) => paragraph(`${i === 0 ? '' : '→ '}${line}`, '  '))
        .join('')}`,
    )
  }
  if (later.length > 0) {
    const shown = isFull ? later : later.slice(0, MAX_LATER)
    const rest = later.length - shown.length
    const more = rest > 0 ? colors.dim(`  and ${countText(rest)} more: --all shows each\n`) : ''
    blocks.push(
      `${colors.bold(`Then in ${counted(later.length, 'more tensor')}`)}\n${columns(shown.map(rowOf), [], given || null)}${more}`,
    )
  }
  if (leftOut > 0) {
    const text = `${counted(leftOut, 'value')} of ${leftOut === 1 ? 'a tree has' : 'trees have'} NaN for what a leaf lacks. Left out; --tensor '^trees/' looks at them.`
    blocks.push(paragraph(text))
  }
  if (isUncertain)
    blocks.push(paragraph('Of some tensors only reductions were saved: which elements, and how many, is not known.'))
  return blocks.join('\n')
}

/** The answer in a line. */
export function nonFiniteText(trace: NonFiniteTrace): string {
  const { origin, problems } = trace
  if (origin === null) return finiteText(trace)
  const rest = problems.length > 0 ? `; ${readText(trace)}` : ''
  return `${whatText(origin)} first in ${origin.tensor}, ${placeText(origin)}${rest}`
}

/** The first checkpoint with NaN or infinities, and its tensors that have none. */
function checkpointText({ step, tensor, element, wholeStep, affected, whole }: NonFiniteCheckpoint): string {
  const before =
    wholeStep === null
      ? 'No checkpoint before it was read.'
      : `Everything read of the checkpoints up to step ${wholeStep} is finite.`
  if (step === null)
    return `Only what was logged has any. ${wholeStep === null ? 'No checkpoint was looked at.' : before}`
  const all = affected + whole.length
  const rest = whole.length === 0 ? '' : ` Finite there: ${shortList(whole)}.`
  const place = element === null ? '' : ` at [${element.join(', ')}]`
  const first = tensor === null ? '' : `, first in ${tensor}${place}`
  return `The first checkpoint with any is that of step ${step}: ${countText(affected)} of its ${counted(all, 'tensor')}${first}. ${before}${rest}`
}

function loggedRows(logged: readonly LoggedAround[]): string[][] {
  const steps = [...new Set(logged.flatMap(({ values }) => values.map(({ step }) => step)))].sort((a, b) => a - b)
  const rows = logged.map(({ name, values }) => {
    const byStep = new Map(values.map(({ step, value }) => [step, shortNumber(value)]))
    return [`  ${safeName(name)}`, ...steps.map(step => byStep.get(step) ?? '')]
  })
  return [['  step', ...steps.map(String)], ...rows]
}

/** Overflows that were passed over. */
function passedText(passed: readonly PassedOverflow[]): string {
  const [first] = passed as [PassedOverflow]
  const { worker, step, lastStep, tensors } = first
  const steps = lastStep > step ? `from step ${step} to ${lastStep}` : `at step ${step}`
  const more = tensors.length > 1 ? ` and ${counted(tensors.length - 1, 'more gradient')}` : ''
  const rest = passed.length > 1 ? ` So it went ${counted(passed.length - 1, 'more time')}.` : ''
  return `An overflow that passed: ${tensors[0]}${more} ${tensors.length > 1 ? 'were' : 'was'} not finite ${steps} of ${worker}, and finite again after that; nothing else was affected. Where the loss is scaled, as in mixed precision, such steps are skipped.${rest}`
}

/** The chain, without its middle if it is long. */
function chainLines(chain: readonly RecordPlaceInTime[], isFull: boolean): string[] {
  const lines = chain.map(place => `${place.tensor}, ${placeText(place)}`)
  if (isFull || lines.length <= MAX_CHAIN) return lines
  const [begin, end] = [lines.slice(0, MAX_CHAIN / 2), lines.slice(-MAX_CHAIN / 2)]
  return [...begin, `${countText(lines.length - begin.length - end.length)} more: --all shows each`, ...end]
}

/** The tensors that were found to be finite, and out of how many. */
function finiteText(trace: NonFiniteTrace): string {
  const { records, unread, problems, passed } = trace
  const other = passed.length > 0 ? ' but for an overflow that passed' : ''
  if (problems.length === 0) return `no NaN and no infinity in ${counted(records, 'tensor value')}${other}`
  if (records === 0) return `nothing was looked at: ${readText(trace)}`
  return unread === 0
    ? `no NaN and no infinity in ${counted(records, 'tensor value')}; not everything could be read`
    : `no NaN and no infinity in the ${countText(records)} of ${counted(records + unread, 'tensor value')} that could be read`
}

function readText({ records, unread }: NonFiniteTrace): string {
  if (unread === 0) return 'not everything could be read'
  return `${records === 0 ? 'none' : countText(records)} of ${counted(records + unread, 'tensor value')} could be read`
}

function whatText({ kind }: NonFiniteOrigin): string {
  return kind === 'nan' ? 'NaN' : kind === 'inf' ? '+∞' : '−∞'
}

function placeText({ step, mode, modeStep, worker }: RecordPlaceInTime): string {
  return `at step ${step}${mode === 'GLOBAL' ? '' : ` (${mode} ${modeStep})`} of ${worker}`
}

/** The affected elements, and a reading of their pattern. */
function elementText(
  { element, nan, infinite, slices, shape, workers, class: originClass, reason }: NonFiniteOrigin,
  paragraph: (text: string, indent?: string) => string,
): string {
  const lines: string[] = []
  if (nan !== null && infinite !== null) {
    const counts = [
      ...(nan > 0 ? [`${countText(nan)} NaN`] : []),
      ...(infinite > 0 ? [`${countText(infinite)} infinite`] : []),
    ]
    const size = shape?.reduce((product, length) => product * length, 1)
    const first = element === null ? '' : `, the first at [${element.join(', ')}]`
    lines.push(`${counts.join(' and ')}${size === undefined ? '' : ` of ${counted(size, 'element')}`}${first}.`)
  }
  for (const { axis, length, indices, count, isWhole } of slices) {
    const some = count <= 8 ? indices.join(', ') : `${indices.slice(0, 8).join(', ')} and ${countText(count - 8)} more`
    lines.push(
      `Axis ${axis}: ${isWhole ? 'all of' : 'within'} ${count === 1 ? 'index' : 'indices'} ${some} of ${countText(length)}.`,
    )
  }
  if (workers.length > 1)
    lines.push(`At that step it is so in ${counted(workers.length, 'worker')}: ${workers.join(', ')}.`)
  lines.push(reason === null ? CLASSES[originClass] : `It arose here or before: ${reason}.`)
  return lines.map(line => paragraph(line, '  ')).join('')
}

const CLASSES = {
  producer: 'What it was computed from was finite, as far as it was saved: it arose here.',
  propagator: 'What it was computed from was not finite.',
  unknown: 'What it was computed from was not saved: it arose here or just before.',
} as const

function rowOf(record: NonFiniteRecord): string[] {
  const { tensor, step, worker, class: recordClass, from, fromWorker, reason, nan, infinite } = record
  const counts = nan === null ? 'by its reductions' : counted(nan + (infinite ?? 0), 'element')
  return [
    `  ${safeName(tensor)}`,
    `step ${step}`,
    safe(worker),
    recordClass,
    counts,
    from === null
      ? safe(reason ?? '')
      : `from ${safeName(from)}${fromWorker === worker ? '' : ` of ${safe(fromWorker!)}`}`,
  ]
}
