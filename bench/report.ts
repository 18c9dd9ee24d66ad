/** Results as a person reads them. */

import type { Measured } from '#dist/cli/bench/measure.js'
import type { Case } from './definition.js'
import { NAME } from './engines/ours.js'

/** The measurements of a case. */
export interface Result extends Omit<Case, 'contenders' | 'rounds'> {
  readonly definition: string
  readonly engines: readonly Measured[]
}

/** One case: an engine a line. */
export function caseTable({ definition, size, unit, byteLength, records, engines }: Result): string {
  const head = [
    `${definition} ${size}`,
    'median',
    ...(byteLength === undefined ? [] : ['GB/s']),
    ...(records === undefined ? [] : ['M records/s']),
    '÷ ours',
  ]
  const lines = engines.map(({ engine, median, ratio }) => [
    engine,
    unit === undefined ? duration(median) : `${digits(median)} ${unit}`,
    ...(byteLength === undefined ? [] : [digits(byteLength / median / 1e6)]),
    ...(records === undefined ? [] : [digits(records / median / 1e3)]),
    digits(ratio),
  ])
  return align([head, ...lines])
}

/** All ratios, a case a line. */
export function summary(results: readonly Result[]): string {
  const lines = results.flatMap(({ definition, size, engines }) => {
    const base = engines[0]
    const others = engines.filter(({ engine }) => !engine.startsWith(NAME))
    const ratios = others.map(({ engine, ratio }) => `${engine} ${digits(ratio)}`)
    return others.length === 0 ? [] : [[`${definition} ${size}`, `${ratios.join(' · ')}  (1 = ${base!.engine})`]]
  })
  return lines.length === 0 ? '' : `Of the others, where ours is 1:\n${align(lines, 'left')}`
}

function align(lines: readonly (readonly string[])[], rest: 'left' | 'right' = 'right'): string {
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map(line => line[column]!.length))) ?? []
  return lines
    .map(line =>
      line
        .map((cell, column) =>
          column === 0 || rest === 'left' ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Three digits that count. */
export function digits(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

export function duration(ms: number): string {
  if (ms >= 1000) return `${digits(ms / 1000)} s`
  if (ms >= 1) return `${digits(ms)} ms`
  return ms >= 1e-3 ? `${digits(ms * 1e3)} µs` : `${digits(ms * 1e6)} ns`
}
