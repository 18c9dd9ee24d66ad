/** Rules over trials, in the shards of a plan. */

import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { QueryError } from '../../base/errors.js'
import { problemLines } from '../../base/problem-lines.js'
import type { FleetCheck } from '../../fleet/plan.js'
import type { FleetJudging } from '../../fleet/shard.js'
import { RuleRegistry } from '../../rules/registry.js'
import type { Trial } from '../../trial/trial.js'
import { rulesOf } from '../commands/check.js'
import { expectWorkers, judge, Trials } from '../commands/judge.js'
import { findingJsonl } from '../format/finding/lines.js'
import { defined } from '../options/given.js'
import type { S3Flags } from '../options/s3.js'

export interface JudgingFlags extends S3Flags {
  readonly threads?: number
}

/** The number of bytes that may wait for the reader. */
const WAITING_BYTES = 1 << 20

/** Judges a trial as `trialscan check --format jsonl` does among several. */
export function judging(flags: JudgingFlags, signal: AbortSignal) {
  return (trial: Trial, path: string, check: FleetCheck): FleetJudging => {
    // Lines from the rules to the shard's table, at the pace of the table.
    const pipe = new PassThrough({ encoding: 'utf8', highWaterMark: WAITING_BYTES })
    const output = {
      write: (text: string) => (pipe.write(text) ? undefined : once(pipe, 'drain').then(() => {})),
      flush: async () => {},
    }
    let outcome = { findings: 0, problems: [] as readonly string[] }
    const work = async (): Promise<void> => {
      const others = new Trials(flags)
      try {
        const workers = check.workers ?? undefined
        expectWorkers(trial, workers ?? [])
        const request = { configurations: check.rules, isAll: check.all }
        const trialRules = await rulesOf(request, { workers }, trial, [], others, new RuleRegistry())
        const format = findingJsonl(false, false, path)
        let findings = 0
        const { judged } = await judge({
          trial,
          ...trialRules,
          ...defined({ worker: workers, threads: flags.threads }),
          format: {
            ...format,
            line: finding => {
              findings++
              return format.line(finding)
            },
          },
          output,
          failOnFinding: false,
          isOneOfSeveral: true,
          signal,
        })
        outcome = { findings, problems: problemLines(judged.problems.map(({ error }) => error)) }
      } catch (error) {
        // An error of this trial alone, such as a worker that it does not have: the other trials are judged.
        if (!(error instanceof QueryError)) throw error
        outcome = { findings: 0, problems: [`${path}: ${error.message}`] }
      } finally {
        await others.close()
      }
    }
    work().then(
      () => pipe.end(),
      error => pipe.destroy(error),
    )
    return { lines: pipe, outcome: () => outcome }
  }
}
