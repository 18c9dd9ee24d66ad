/** Numbers and names as people read them. */

import type { ThinnedView } from '../data.js'

/** Control characters, bidirectional and other invisible marks, line separators, and lone surrogates. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** A name with its invisible marks spelled out: they could make two names look alike. */
export function shown(name: string): string {
  return name.replace(UNSAFE, mark => `\\u{${mark.codePointAt(0)!.toString(16)}}`)
}

/** A long name, without its middle. */
export function shortened(name: string, length = 44): string {
  const text = shown(name)
  if (text.length <= length) return text
  const half = (length - 1) / 2
  return `${text.slice(0, Math.ceil(half))}…${text.slice(-Math.floor(half))}`
}

const LETTER = /\p{L}/u

/**
 * Names that tell each other apart in little room. Where one of them has more than `length` letters, all go without what they begin and
 * end with, as long as each keeps a letter, and their first parts become letters: `m.l.0.self_attn.k_proj`.
 */
export function labelsOf(names: readonly string[], length: number): readonly string[] {
  const texts = names.map(shown)
  const [first = ''] = texts
  if (texts.every(text => text.length <= length)) return texts
  const ends = names.length < 2 ? [] : [...first.matchAll(/[/._:]/g)].map(({ index }) => index)
  const from = ends.findLast(end =>
    texts.every(text => LETTER.test(text.slice(end + 1)) && text.startsWith(first.slice(0, end + 1))),
  )
  const cut = texts.map(text => text.slice(from === undefined ? 0 : from + 1))
  const tail = ends
    .filter(end => first[end] !== '_' && end > (from ?? 0))
    .map(end => first.slice(end))
    .find(tail => cut.every(text => text.endsWith(tail) && LETTER.test(text.slice(0, -tail.length))))
  const labels = cut.map(text => abbreviated(text.slice(0, text.length - (tail?.length ?? 0)), length))
  const counts = new Map<string, number>()
  for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1)
  return labels.map((label, i) => (counts.get(label) === 1 ? label : shortened(cut[i]!)))
}

/** A name whose first parts are letters, as many as must be; their numbers stay. */
function abbreviated(name: string, length: number): string {
  const parts = name.split(/(?<=[/.:])/)
  for (let i = 0; i < parts.length - 1 && parts.join('').length > length; i++) {
    parts[i] = parts[i]!.replace(/(?<=.)[^\d/.:]/gsu, '')
  }
  return shortened(parts.join(''), length)
}

/** A number with six significant digits. */
export function short(value: number): string {
  const rounded = Number(value.toPrecision(6))
  const size = Math.abs(rounded)
  const isPlain = !Number.isFinite(size) || size === 0 || (size < 1e6 && size >= 1e-4)
  return withMinus(isPlain ? String(rounded) : rounded.toExponential())
}

/** A number with all of its digits. */
export function exact(value: number): string {
  return withMinus(String(value))
}

/** Minus signs for hyphens, behind which a line would break. */
function withMinus(number: string): string {
  return number.replace('e+', 'e').replaceAll('-', '−')
}

/** A sentence about a trial, with numbers as others of the page are. */
export function told(text: string): string {
  return shown(text)
    .replace(/(?<=\de)\+(?=\d)/g, '')
    .replace(/(?<=\de)-(?=\d)|(?<![^\s(])-(?=\d)/g, '−')
}

/** A message beside the name of its tensor. */
export function toldWithout(name: string, message: string): string {
  return told(message.startsWith(`${name} `) ? message.slice(name.length + 1) : message.replace(` of ${name}`, ''))
}

/** A text with a capital letter and a full stop. */
export function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`
}

export function counted(count: number, singular: string, many = `${singular}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? singular : many}`
}

/** The sentence about hidden steps: "60 of 90 steps are shown: all 9 EVAL, 51 of 81 TRAIN." Null if all are shown. */
export function thinnedText(thinned: readonly ThinnedView[]): string | null {
  if (thinned.length === 0) return null
  const sum = (count: (mode: ThinnedView) => number) => thinned.reduce((total, mode) => total + count(mode), 0)
  const parts = thinned.map(({ mode, kept, of }) => (kept === of ? `all ${of} ${mode}` : `${kept} of ${of} ${mode}`))
  return `${sum(({ kept }) => kept)} of ${counted(
    sum(({ of }) => of),
    'step',
  )} are shown: ${parts.join(', ')}. A report of fewer steps has all.`
}

/** A number with four significant digits, as many as its neighbours have: `0.4100`, `−0.04780`, `1235`. */
export function even(value: number): string {
  const size = Math.abs(Number(value.toPrecision(4)))
  if (!Number.isFinite(size) || size === 0 || (size >= 1000 && size < 1e6)) return short(Number(value.toPrecision(4)))
  const text = size < 1e6 && size >= 1e-4 ? value.toPrecision(4) : value.toExponential(3)
  return withMinus(text)
}

/** A cell of a CSV file. */
export function csvCell(value: string | number): string {
  const text = String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export function csv(rows: readonly (readonly (string | number)[])[]): string {
  return `${rows.map(row => row.map(csvCell).join(',')).join('\n')}\n`
}

const N = 'n is the number of elements.'

/** The meaning of each statistic. */
export const MEANINGS: Readonly<Record<string, string>> = {
  abs_mean: `Mean of the absolute values: Σ|x| / n. ${N}`,
  mean: `Mean: Σx / n. ${N}`,
  std: `Standard deviation of all elements: √(Σ(x − mean)² / n). ${N}`,
  variance: `Σ(x − mean)² / n. ${N}`,
  min: 'The smallest element.',
  max: 'The largest element.',
  sum: 'Σx',
  prod: 'Πx',
  l1: 'L1 norm: Σ|x|',
  l2: 'L2 norm: √Σx²',
  abs_min: 'The smallest absolute value.',
  abs_max: 'The largest absolute value.',
  abs_std: 'Standard deviation of the absolute values.',
  abs_variance: 'Variance of the absolute values.',
  abs_sum: 'Σ|x|',
  abs_prod: 'Π|x|',
  abs_l1: 'L1 norm of the absolute values, which is that of the values.',
  abs_l2: 'L2 norm of the absolute values, which is that of the values.',
  nan_count: 'How many elements are NaN (not a number).',
  inf_count: 'How many elements are infinite.',
  zero_count: 'How many elements are 0.',
  count: 'How many elements there are.',
  difference: 'By how much A differs from B, beside its size: ‖A − B‖ / ‖A‖ of all elements. 0 where all are equal.',
  changed: 'The share of elements that are not the same in A and B.',
  update_ratio: 'By how much a weight W changed since the step W₀ of the same mode before it: ‖W − W₀‖ / ‖W₀‖.',
}

export const KIND_NAMES: Readonly<Record<string, string>> = {
  losses: 'Losses',
  metrics: 'Metrics',
  gradients: 'Gradients',
  weights: 'Weights',
  biases: 'Biases',
  outputs: 'Layer outputs',
  inputs: 'Layer inputs',
  other: 'Others',
}
