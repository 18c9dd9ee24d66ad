/** Problems of a trial's files as cases: one for each code. */

import type { VerifyCode } from '../../../integrity/verify/problem.js'
import type { Verification } from '../../../integrity/verify/verify.js'
import { EXIT } from '../../exit.js'
import { counted, countText } from '../number.js'
import { problemFields, sum, type VerifyFormat } from '../verify-lines.js'
import { type Case, type Result, type Verdict, verdictFields } from './report.js'
import { Answers, type ProgramFormat } from './text.js'

/** The codes that count for the exit code. Undefined: all of problems. */
export type FailOn = ReadonlySet<string> | undefined

export function verdictOfFiles({ problemCounts, noteCounts, problems, stats }: Verification, failOn: FailOn): Verdict {
  const codes = Object.entries(problemCounts)
  const fails = codes.some(([code]) => failOn?.has(code) ?? true)
  const files = new Set(problems.map(({ file }) => file)).size
  const kinds = codes.map(([code, count]) => `${code} ${countText(count)}`).join(', ')
  const isPartial = (noteCounts.NotRead ?? 0) > 0
  const text = [
    codes.length > 0
      ? `${counted(sum(problemCounts), 'problem')} in ${counted(files, 'file')}: ${kinds}`
      : isPartial && stats.tensors === 0
        ? 'nothing was read'
        : `nothing is wrong${isPartial ? ' in what was read' : ''}`,
    ...(failOn === undefined ? [] : [`only ${[...failOn].join(', ')} counts`]),
    `${counted(stats.tensors, 'tensor')} checked`,
  ].join('; ')
  if (fails) return { word: 'failed', exitCode: EXIT.format, text }
  // All was left out.
  if (isPartial && stats.tensors === 0) return { word: 'unjudged', exitCode: EXIT.query, text }
  return { word: 'passed', exitCode: EXIT.ok, text }
}

/** @param isOnly true if there is one trial */
export function verifyAnswers(format: ProgramFormat, isOnly: boolean, failOn: FailOn): VerifyFormat {
  const answers = new Answers(format, 'verify')
  return {
    head: '',
    line: () => '',
    end(trial, verification, verdict) {
      const { problems, notes, problemCounts, noteCounts } = verification
      const json = () =>
        JSON.stringify({
          trial,
          ...verdictFields(verdict),
          ...{ problem_counts: problemCounts, note_counts: noteCounts },
          ...{ problems: problems.map(problemFields), notes: notes.map(problemFields) },
        })
      answers.add({ trial, verdict, cases: () => casesOf(verification, failOn), json })
      return ''
    },
    tail: (verdict, lost) => (isOnly ? answers.text() : answers.text(verdict, lost)),
  }
}

function casesOf({ problems, notes, problemCounts, noteCounts }: Verification, failOn: FailOn): readonly Case[] {
  const cases = Object.entries(problemCounts).map(([code, count]): Case => {
    const ofCode = problems.filter(problem => problem.code === (code as VerifyCode))
    const results = ofCode.map(
      ({ message, file, offset, tensor, step }): Result => ({ message, file, offset, tensor, step }),
    )
    const state = (failOn?.has(code) ?? true) ? 'failed' : 'noted'
    const first = ofCode[0]
    return {
      name: code,
      state,
      message: `${counted(count, 'problem')}, the first: ${first?.message ?? ''}`,
      ...(first && { help: first.advice }),
      results,
    }
  })
  if (cases.length === 0) cases.push({ name: 'files', state: 'passed', message: '', results: [] })
  const unread = noteCounts.NotRead ?? 0
  if (unread > 0) {
    const first = notes.find(({ code }) => code === 'NotRead')
    const message = `${counted(unread, 'file or tensor')} left out: ${first?.message ?? ''}`
    cases.push({ name: 'NotRead', state: 'unjudged', message, results: [] })
  }
  return cases
}
