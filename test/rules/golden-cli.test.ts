/** The golden answers of rules, on the command line: from a file, and named one by one. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Finding } from '#dist/index.js'
import { trialscan } from '../cli/run.js'
import { goldenRules, stepsOf } from '../support/golden-rules.js'
import { part } from '../support/part.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('rules')

// Quick: one trial.
describe.each(part(goldenRules, ({ place, name }) => place === 'fixtures' && name === 'mlp-vanishing'))(
  '$place $name',
  ({ place, trials, name, cases }) => {
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

    it('fires where it should, named one by one on the command line', async () => {
      const options: string[] = []
      for (const [i, { rule, parameters, other_trial: other, fires_at }] of cases.entries()) {
        const text = [rule, ...Object.entries(parameters).map(([key, value]) => `${key}=${value}`)].join(',')
        if (other === undefined) options.push('--rule', `${text},name=${i}`)
        else {
          const found = await check(join(trials, name), '--rule', text, '--other-trials', join(trials, other))
          expect(stepsOf(found), text).toEqual(fires_at)
        }
      }
      const found = await check(join(trials, name), ...options)
      for (const [i, { rule, parameters, other_trial: other, fires_at }] of cases.entries()) {
        if (other !== undefined) continue
        const own = found.filter(finding => finding.name === `${i}`)
        expect(stepsOf(own), `${rule} ${JSON.stringify(parameters)}`).toEqual(fires_at)
      }
    })
  },
)

/** The findings that the command line prints; it must say by its exit code whether there are any. */
async function check(...args: string[]): Promise<Finding[]> {
  const { code, stdout } = await trialscan('check', ...args, '--format', 'jsonl')
  const lines = stdout.split('\n').filter(line => line !== '')
  const objects = lines.map(line => JSON.parse(line) as Finding & { partial?: boolean; missing?: string })
  const found = objects.filter(({ missing }) => missing === undefined)
  const isUnjudged = objects.some(({ partial }) => partial === false)
  expect(code).toBe(found.length > 0 ? 1 : isUnjudged ? 5 : 0)
  return found
}
