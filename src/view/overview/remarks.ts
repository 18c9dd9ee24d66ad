/** Plain sentences about the numbers of a training. */

import { counted, countText, shortNumber } from '../../base/number-text.js'
import type { NotFinite, TrialOverview } from './overview.js'

/** The numbers that sentences are about. */
export type RemarkedLines = Pick<TrialOverview, 'losses' | 'gradients' | 'updates' | 'fromZero'>

type OverviewLine = RemarkedLines['losses'][number]

/** A loss that changes by less than this fraction hardly changes. */
const STANDSTILL = 0.01
const MAX_NAMES = 4
const MAX_NAME_LENGTH = 500

/** Plain sentences, each with its figures. */
export function remarks({ losses, gradients, updates, fromZero }: RemarkedLines): readonly string[] {
  const zero = gradients.filter(({ values }) => values.some(value => value === 0))
  const always = zero.filter(({ values }) => values.every(value => value === 0))
  const broken = gradients.filter(({ values }) => !values.every(Number.isFinite))
  const still = updates.filter(({ values }) => values.length > 0 && values.every(value => value === 0))
  const sentences = [
    ...losses.flatMap(lossRemarks),
    ...zeroRemarks(always, zero.length - always.length, gradients.length),
    ...(broken.length > 0
      ? [
          `${counted(broken.length, 'gradient')} of ${countText(gradients.length)} ${broken.length === 1 ? 'is' : 'are'} not finite at some step.`,
        ]
      : []),
    ...(still.length > 0
      ? [
          `${counted(still.length, 'weight')} of ${countText(updates.length)} never ${still.length === 1 ? 'changes' : 'change'}: ${enumeration(still.map(({ tensor }) => tensor))}.`,
        ]
      : []),
  ]
  if (fromZero.length > 0) {
    const [first] = fromZero
    const rest = fromZero.length > 1 ? ` and ${counted(fromZero.length - 1, 'more weight')}` : ''
    sentences.push(
      `${first}${rest} ${fromZero.length > 1 ? 'start' : 'starts'} at zero: the first update has no ratio.`,
    )
  }
  // Only gradients that are finite and nonzero throughout can be compared.
  const alive = gradients
    .filter(({ values }) => values.every(value => Number.isFinite(value) && value !== 0))
    .map(({ tensor, values }) => ({ tensor, mean: meanOf(values) }))
    .sort((a, b) => a.mean - b.mean)
  const [least, most] = [alive[0], alive.at(-1)]
  if (least && most && least !== most && broken.length === 0) {
    const times = countText(Number((most.mean / least.mean).toPrecision(2)))
    sentences.push(`${most.tensor} gets ${times} times the gradient that ${least.tensor} gets.`)
  }
  return sentences
}

function zeroRemarks(always: readonly OverviewLine[], sometimes: number, all: number): readonly string[] {
  const rest = sometimes > 0 ? `, and ${countText(sometimes)} at some steps` : ''
  if (always.length > 0) {
    const names = enumeration(always.map(({ tensor }) => tensor))
    const are = always.length === 1 ? 'is' : 'are'
    return [
      `${counted(always.length, 'gradient')} of ${countText(all)} ${are} exactly zero at every step${rest}: ${names}.`,
    ]
  }
  if (sometimes === 0) return []
  return [
    `${counted(sometimes, 'gradient')} of ${countText(all)} ${sometimes === 1 ? 'is' : 'are'} exactly zero at some steps.`,
  ]
}

/** The smallest change, in usual changes from value to value, that counts as a trend. */
const TREND = 2
/** The smallest rise above the lowest value that is reported, as a fraction of it. */
const PASSED = 0.1

function lossRemarks({ tensor, mode, steps, values }: OverviewLine): readonly string[] {
  const name = mode === 'GLOBAL' ? tensor : `${tensor} of ${mode}`
  const broken = values.findIndex(value => !Number.isFinite(value))
  if (broken >= 0) {
    const count = values.filter(value => !Number.isFinite(value)).length
    return count === values.length - broken
      ? [`${name} is NaN or infinite from step ${steps[broken]} on.`]
      : [
          `${name} is NaN or infinite at ${countText(count)} of ${counted(values.length, 'step')}, first at ${steps[broken]}.`,
        ]
  }
  const [first, last] = [values[0]!, values.at(-1)!]
  if (values.length < 2 || first === 0) return []
  const ends = `from ${numberText(first)} to ${numberText(last)}`
  if (values.every(value => value === first)) return [`${name} stands still at ${numberText(first)}.`]
  const change = last - first
  const wobble = meanOf(values.slice(1).map((value, i) => Math.abs(value - values[i]!)))
  const lowest = values.reduce((least, value) => Math.min(least, value))
  const highest = values.reduce((most, value) => Math.max(most, value))
  if (values.length > 2 && Math.abs(change) < TREND * wobble) {
    return [
      `${name} goes up and down between ${numberText(lowest)} and ${numberText(highest)}, ${ends}: no trend beside that.`,
    ]
  }
  const at = values.indexOf(lowest)
  const hasPassed = at > 0 && at < values.length - 2 && last - lowest > PASSED * Math.abs(lowest)
  if (hasPassed && values.at(-2)! - lowest > PASSED * Math.abs(lowest)) {
    const since = changeText(lowest, last)
    return [
      `${name} was lowest at step ${steps[at]}, ${numberText(lowest)}; since then it ${since}, to ${numberText(last)}.`,
    ]
  }
  if (Math.abs(change) < STANDSTILL * Math.abs(first))
    return [`${name} hardly changes: it ${changeText(first, last)}, ${ends}.`]
  return [`${name} ${changeText(first, last)}, ${ends}.`]
}

/** A change in percent; from a factor of ten on, as a factor. */
function changeText(before: number, now: number): string {
  if (before > 0 && now / before >= 10) return `rose to ${numberText(now / before)} times that`
  return `${now < before ? 'fell' : 'rose'} by ${((100 * Math.abs(now - before)) / Math.abs(before)).toFixed(1)} %`
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** A sentence about the first NaN or infinity, and the later ones. Null: there are none. */
export function notFiniteText(notFinite: readonly NotFinite[]): string | null {
  const [first] = notFinite
  if (first === undefined) return null
  const { tensor, step, worker, nan, infinite } = first
  const counts = [
    ...(nan > 0 ? [`${countText(nan)} NaN`] : []),
    ...(infinite > 0 ? [`${countText(infinite)} infinite`] : []),
  ]
  const rest = notFinite.length - 1
  const more =
    rest > 0
      ? `, then ${counted(rest, 'more tensor')} (${enumeration(notFinite.slice(1).map(place => place.tensor))})`
      : ''
  return `first in ${tensor} at step ${step} of ${worker}: ${counts.join(', ')} among its elements${more}`
}

/** The first names, and the number of the others. */
export function enumeration(names: readonly string[]): string {
  const rest = names.length - MAX_NAMES
  const texts = (rest > 1 ? names.slice(0, MAX_NAMES) : names).map(name =>
    name.length > MAX_NAME_LENGTH ? `${name.slice(0, MAX_NAME_LENGTH)}…` : name,
  )
  return `${texts.join(', ') || 'none'}${rest > 1 ? ` and ${countText(rest)} more` : ''}`
}

/** A number with four significant digits. */
export function numberText(value: number): string {
  return shortNumber(Number.isFinite(value) ? Number(value.toPrecision(4)) : value)
}
