/** Findings as cases: one for each rule, and one for what could not be read. */

import { problemLines } from '../../../base/problem-lines.js'
import type { DiagnosedFinding } from '../../../rules/diagnosis.js'
import { type Case, type Result, type Verdict, verdictFields } from '../ci/report.js'
import type { Answers } from '../ci/text.js'
import { counted } from '../number.js'
import { AT_END, distinct, type FindingFormat, isFindingOf, type JudgingReport, type JudgingRule } from './format.js'
import { findingJson, missingJson, problemJson, rateJson } from './lines.js'
import { titleOf, whenAndWhere, worstText } from './table.js'

/** @param answers those of all trials @param isOnly true if there is one trial, whose text is then written at once */
export function findingAnswer(trial: string, answers: Answers, isOnly: boolean): FindingFormat {
  return {
    ...AT_END,
    end(judged, verdict) {
      const json = () => findingObject(trial, judged, verdict)
      answers.add({ trial, verdict, cases: () => casesOf(judged), json })
      return isOnly ? answers.text() : ''
    },
  }
}

/** One JSON object: the verdict, the findings, and the data that was not judged, with reasons. */
function findingObject(trial: string, judged: JudgingReport, verdict: Verdict): string {
  const { selection, state, steps, findings, missing, problems, toSave, learningRates = [] } = judged
  const fields = { trial, ...verdictFields(verdict), selection, state, steps }
  const lists = [
    ['findings', findings.map(findingJson)],
    ['learning_rates', learningRates.map(rateJson)],
    ['not_judged', missing.map(missingJson)],
    ['to_save', toSave.map(collection => JSON.stringify(collection))],
    ['problems', problems.map(problemJson)],
  ] as const
  const members = lists.map(([name, items]) => `"${name}":[${items.join(',')}]`)
  return `${JSON.stringify(fields).slice(0, -1)},${members.join(',')}}`
}

function casesOf(judged: JudgingReport): readonly Case[] {
  const { rules, findings, missing, problems } = judged
  const all = distinct(rules)
  const cases = all.map((rule): Case => {
    const ruleFindings = findings.filter(isFindingOf(rule))
    const lacks = missing.filter(lack => !lack.partial && isFindingOf(rule)(lack))
    if (ruleFindings.length > 0) return firedCase(rule, ruleFindings, judged)
    const state = lacks.length > 0 ? 'unjudged' : 'passed'
    return { name: titleOf(rule), state, message: lacks.map(neededText).join('; '), results: [] }
  })
  const leftOut = missing.filter(lack => !all.some(rule => isFindingOf(rule)(lack)))
  cases.push(
    ...leftOut.map((lack): Case => {
      const name = titleOf({ ruleName: lack.rule, name: lack.name })
      return { name, state: 'unjudged', message: neededText(lack), results: [] }
    }),
  )
  if (problems.length > 0) {
    const lines = problemLines(problems.map(({ error }) => error))
    const results = problems.map(({ step, tensor, error }): Result => ({ message: error.message, step, tensor }))
    cases.push({ name: 'read', state: 'unread', message: lines.join('; '), results })
  }
  return cases
}

function neededText({ missing }: { readonly missing: string }): string {
  return `needs ${missing}`
}

function firedCase(rule: JudgingRule, ruleFindings: readonly DiagnosedFinding[], judged: JudgingReport): Case {
  const { meaning, advice, counts } = rule
  const help = [...(meaning ? [meaning] : []), ...(advice ? [`What to do: ${advice}`] : [])].join(' ')
  const byPlace = new Map<string, { first: DiagnosedFinding; count: number }>()
  for (const finding of ruleFindings) {
    const key = JSON.stringify([finding.tensor, finding.worker])
    const known = byPlace.get(key)
    if (known) known.count++
    else byPlace.set(key, { first: finding, count: 1 })
  }
  const results = [...byPlace.values()].map(({ first, count }): Result => {
    const { step, tensor, worker, message } = first
    const more = count > 1 ? ` (and at ${counted(count - 1, 'more step')})` : ''
    return { message: `step ${step}: ${message}${more}`, step, tensor, worker, count }
  })
  return {
    name: titleOf(rule),
    state: counts ? 'failed' : 'noted',
    message: `fired ${whenAndWhere(ruleFindings, judged)}; worst ${worstText(ruleFindings, judged)}`,
    help,
    results,
  }
}
