/** The golden answers of rules: the steps at which each fires, alone and with all others in one pass. */

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  closePools,
  createTrial,
  type Evaluation,
  evaluate,
  type Finding,
  makeRules,
  RuleRegistry,
  type Trial,
} from '#dist/index.js'
import { trialscan } from '../cli/run.js'
import { ROOT } from '../support/golden.js'

interface GoldenRule {
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

const registry = new RuleRegistry()

const scratch = mkdtempSync(join(tmpdir(), 'trialscan-rules-'))

afterAll(async () => {
  await closePools()
  rmSync(scratch, { recursive: true })
})

for (const { place, trials, expected } of PLACES) {
  const golden = JSON.parse(readFileSync(expected, 'utf8')) as GoldenRule[]

  describe.each([...new Set(golden.map(({ trial }) => trial))])(`${place} %s`, name => {
    const cases = golden.filter(({ trial }) => trial === name)
    const options = { requireCollections: false }
    let trial: Trial

    /** Each case as a configuration of its own, named by its number. */
    const rules = () =>
      makeRules(
        cases.map(({ rule, parameters, other_trial: other }, i) => ({
          name: `${i}`,
          rule,
          parameters,
          otherTrials: other === undefined ? [] : [join(trials, other)],
        })),
        { baseTrial: trial, registry, openTrial: path => createTrial(path, options) },
      )

    beforeAll(async () => {
      trial = await createTrial(join(trials, name), options)
    })

    it('fires where it should, each rule alone', async () => {
      for (const [i, rule] of (await rules()).entries()) {
        const { rule: ruleName, parameters, fires_at } = cases[i]!
        const { findings, problems } = await evaluate(rule, { follow: false, threads: 0 })
        expect(stepsOf(findings), `${ruleName} ${JSON.stringify(parameters)}`).toEqual(fires_at)
        expect(problems).toEqual([])
      }
    })

    it.each([0, 1, 2])('fires where it should, all rules in one pass, %i threads', async threads => {
      const { findings } = await evaluate(await rules(), { follow: false, threads })
      cases.forEach(({ rule, parameters, fires_at }, i) => {
        const own = findings.filter(finding => finding.name === `${i}`)
        expect(stepsOf(own), `${rule} ${JSON.stringify(parameters)}`).toEqual(fires_at)
      })
    })

    it('fires where it should, all rules in one run of the command line', async () => {
      const file = join(scratch, `${place}-${name}.json`)
      const configurations = cases.map(({ rule, parameters, other_trial: other }, i) => ({
        RuleConfigurationName: `${i}`,
        RuleParameters: { rule_to_invoke: rule, ...parameters, ...(other && { other_trial_0: join(trials, other) }) },
      }))
      writeFileSync(file, JSON.stringify({ DebugRuleConfigurations: configurations }))
      const found = await check(join(trials, name), '--rules', file)
      cases.forEach(({ rule, parameters, fires_at }, i) => {
        const own = found.filter(finding => finding.name === `${i}`)
        expect(stepsOf(own), `${rule} ${JSON.stringify(parameters)}`).toEqual(fires_at)
        for (const { rule: ruleName } of own) expect(ruleName).toBe(rule)
      })
    })

    it('fires where it should, each rule in a run of its own', { timeout: 120_000 }, async () => {
      for (const { rule, parameters, other_trial: other, fires_at } of cases) {
        const text = [rule, ...Object.entries(parameters).map(([key, value]) => `${key}=${value}`)].join(',')
        const others = other === undefined ? [] : ['--other-trials', join(trials, other)]
        const found = await check(join(trials, name), '--rule', text, ...others)
        expect(stepsOf(found), text).toEqual(fires_at)
      }
    })

    it('finds the same alone as together, to the last digit', async () => {
      const together = await evaluate(await rules(), { follow: false })
      const alone: Evaluation[] = []
      for (const rule of await rules()) alone.push(await evaluate(rule, { follow: false }))
      cases.forEach((_, i) => {
        expect(together.findings.filter(({ name }) => name === `${i}`)).toEqual(alone[i]!.findings)
      })
    })
  })
}

/** The findings that the command line prints; it must say by its exit code whether there are any. */
async function check(...args: string[]): Promise<Finding[]> {
  const { code, stdout } = await trialscan('check', ...args, '--format', 'jsonl')
  const lines = stdout.split('\n').filter(line => line !== '')
  const objects = lines.map(line => JSON.parse(line) as Finding & { missing?: string })
  const found = objects.filter(({ missing }) => missing === undefined)
  expect(code).toBe(found.length > 0 ? 1 : 0)
  return found
}

function stepsOf(findings: readonly Finding[]): number[] {
  return [...new Set(findings.map(({ step }) => step as number))]
}
