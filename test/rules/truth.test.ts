/** What `check` says of trainings of which the truth is known, where nobody names a rule. */

import { afterAll, describe, expect, it } from 'vitest'
import { closePools, createTrial, evaluate, type Finding, RuleRegistry } from '#dist/index.js'
import { TRUTHS, truths } from '../support/truth.js'

afterAll(closePools)

async function findingsOf(directory: string): Promise<readonly Finding[]> {
  const trial = await createTrial(directory, { requireCollections: false })
  const { findings, problems } = await evaluate(new RuleRegistry().all(trial).rules, { follow: false, threads: 0 })
  expect(problems).toEqual([])
  return findings
}

const rulesOf = (findings: readonly Finding[]): string[] => [...new Set(findings.map(({ rule }) => rule))].sort()

describe.each(truths)('$name', ({ directory, rules }) => {
  it('fires what is true, and nothing else', async () => {
    expect(rulesOf(await findingsOf(directory))).toEqual(rules)
  })
})

it('argues for every trial', () => {
  for (const { trial, because, rules } of TRUTHS) {
    expect(because, trial).toMatch(/^[A-Z].*\.$/)
    expect(rules).toEqual([...rules].sort())
  }
})
