/** Rules over trials, in the shards of a plan. */

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
import type { LineSink } from '../output.js'

export interface JudgingFlags extends S3Flags {
  readonly threads?: number
}

/** Judges a trial as `trialscan check --format jsonl` does among several. */
export function judging(flags: JudgingFlags, signal: AbortSignal) {
  return (trial: Trial, path: string, check: FleetCheck): FleetJudging => {
    const pipe = new Pipe()
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
          output: pipe,
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
    return { lines: pipe.lines(work), outcome: () => outcome }
  }
}

/** The number of characters that may wait for the reader. */
const WAITING_LENGTH = 1 << 20

/** Lines from a writer to a reader, at the reader's pace. */
class Pipe implements LineSink {
  #text = ''
  #onRead: () => void = () => {}
  #onWritten: () => void = () => {}

  write(lines: string): Promise<void> | undefined {
    this.#text += lines
    this.#onWritten()
    if (this.#text.length < WAITING_LENGTH) return undefined
    return new Promise(resolve => {
      this.#onRead = resolve
    })
  }

  async flush(): Promise<void> {}

  /**
   * The lines that some work writes.
   * @throws the error of the work
   */
  async *lines(work: () => Promise<void>): AsyncGenerator<string> {
    let isDone = false
    const done = work().finally(() => {
      isDone = true
      this.#onWritten()
    })
    // The error is thrown below.
    done.catch(() => {})
    for (;;) {
      const written = new Promise<void>(resolve => {
        this.#onWritten = resolve
      })
      const text = this.#text
      this.#text = ''
      this.#onRead()
      if (text !== '') yield text
      else if (isDone) break
      else await written
    }
    await done
  }
}
