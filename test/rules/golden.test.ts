/** The golden answers of rules: the steps at which each fires, alone and with all others in one pass. */

import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closePools, createTrial, type Evaluation, evaluate, makeRules, RuleRegistry, type Trial } from '#dist/index.js'
import { goldenRules, stepsOf } from '../support/golden-rules.js'
import { part } from '../support/part.js'

const registry = new RuleRegistry()

afterAll(closePools)

// Quick: the trials of fixtures/.
describe.each(part(goldenRules, ({ place }) => place !== 'shared'))('$place $name', ({ trials, name, cases }) => {
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

  it('finds the same alone as together, to the last digit', async () => {
    const together = await evaluate(await rules(), { follow: false })
    const alone: Evaluation[] = []
    for (const rule of await rules()) alone.push(await evaluate(rule, { follow: false }))
    cases.forEach((_, i) => {
      expect(together.findings.filter(({ name }) => name === `${i}`)).toEqual(alone[i]!.findings)
    })
  })
})
