/** The golden answers of rules: the steps at which each fires. */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Finding } from '#dist/index.js'
import { ROOT } from './golden.js'

export interface GoldenRule {
  readonly trial: string
  readonly other_trial?: string
  readonly rule: string
  readonly parameters: Readonly<Record<string, string>>
  readonly fires_at: readonly number[]
}

const PLACES = [
  { place: 'shared', trials: join(ROOT, '../shared/trials'), expected: join(ROOT, '../shared/expected/rules.json') },
  { place: 'fixtures', trials: join(ROOT, 'fixtures/trials'), expected: join(ROOT, 'fixtures/rules.json') },
].filter(({ expected }) => existsSync(expected))

/** By trial. */
export const goldenRules = PLACES.flatMap(({ place, trials, expected }) => {
  const golden = JSON.parse(readFileSync(expected, 'utf8')) as GoldenRule[]
  return [...new Set(golden.map(({ trial }) => trial))].map(name => ({
    place,
    trials,
    name,
    cases: golden.filter(({ trial }) => trial === name),
  }))
})

export function stepsOf(findings: readonly Finding[]): number[] {
  return [...new Set(findings.map(({ step }) => step as number))]
}
