/** Checks of the rows of one scan over all tensors: values and digests. */

import { DIGESTS, type StatisticName } from '../../base/types.js'
import { DigestCheck, type DigestDifference } from '../../compare/digests/digests.js'
import type { DigestListSource } from '../../compare/digests/list.js'
import { rowFormat, type ScanRow } from '../../scan/job/row.js'
import type { Trial } from '../../trial/trial.js'
import type { Findings } from './findings.js'
import type { VerifyCode } from './problem.js'
import { ValueCheck } from './tensor-values.js'

/** A check that sees every row. */
export interface RowCheck {
  readonly reductions: readonly StatisticName[]
  check(row: ScanRow): void
}

export interface RowOptions {
  readonly values?: boolean
  readonly digests?: DigestListSource
  readonly onDigest?: (line: string) => void
}

/** The number of listed tensors whose digest matches. */
export interface DigestCounts {
  readonly equal: number
  readonly of: number
}

/** True if a check of rows is requested. */
export function asksRows({ values, digests, onDigest }: RowOptions): boolean {
  return values === true || digests !== undefined || onDigest !== undefined
}

/** The requested checks, on the rows of one scan. */
export class RowChecks implements RowCheck {
  readonly reductions: readonly StatisticName[]
  readonly #values: ValueCheck | null
  readonly #digests: DigestCheck | null
  readonly #checks: readonly RowCheck[]

  private constructor(
    values: ValueCheck | null,
    digests: DigestCheck | null,
    onDigest: ((line: string) => void) | undefined,
    others: readonly RowCheck[],
  ) {
    this.#values = values
    this.#digests = digests
    const listed = digests && { reductions: digests.digests, check: (row: ScanRow) => digests.check(row) }
    const all = [values, listed, onDigest ? recordOf(onDigest) : null, ...others]
    this.#checks = all.filter(check => check !== null)
    this.reductions = [...new Set(this.#checks.flatMap(({ reductions }) => reductions))]
  }

  /** Reads the digest list, if there is one, and reports its problems. */
  static async open(
    trial: Trial,
    findings: Findings,
    { values = false, digests, onDigest }: RowOptions,
    others: readonly RowCheck[] = [],
  ): Promise<RowChecks> {
    let held: DigestCheck | null = null
    if (digests !== undefined) {
      held = await DigestCheck.open(trial, digests, {}, difference => tell(findings, difference))
      const { faults, faultCount, notes } = held.result
      for (const { line, expected, got } of faults) {
        findings.problem({
          code: 'BadDigestList',
          file: '',
          expected: `${expected}, in line ${line} of the digest list`,
          found: got,
        })
      }
      findings.count('problem', 'BadDigestList', faultCount - faults.length)
      for (const noteText of notes) {
        findings.note({
          code: 'OtherDigestList',
          file: '',
          expected: 'a list of the same steps and workers',
          found: noteText,
        })
      }
    }
    return new RowChecks(values ? new ValueCheck(findings) : null, held, onDigest, others)
  }

  check(row: ScanRow): void {
    for (const check of this.#checks) check.check(row)
  }

  /** Reports list entries without a row. */
  finish(): void {
    this.#digests?.finish()
  }

  get counts() {
    const result = this.#digests?.result
    const digests: DigestCounts | null = result
      ? { equal: result.equal, of: result.compared + (result.counts.missing ?? 0) }
      : null
    return { values: this.#values?.counts ?? null, digests }
  }
}

const CODES = {
  crc32c: 'DigestMismatch',
  sha256: 'DigestMismatch',
  dtype: 'DigestMismatch',
  shape: 'DigestMismatch',
  missing: 'NotInTrial',
  unlisted: 'NotInList',
} as const satisfies Readonly<Partial<Record<DigestDifference['kind'], VerifyCode>>>

function tell(findings: Findings, { kind, tensor, step, line, expected, got }: DigestDifference): void {
  // Unreadable tensors are reported separately.
  if (kind === 'unreadable') return
  const what = kind === 'missing' || kind === 'unlisted' ? '' : `${kind} `
  findings.tell('problem', CODES[kind], '', () => ({
    tensor,
    step,
    expected: `${what}${kind === 'unlisted' ? 'a line of the digest list' : expected}${line === null ? '' : `, as line ${line} of the digest list has it`}`,
    found: kind === 'unlisted' ? 'none' : kind === 'missing' ? 'no such tensor' : got,
  }))
}

/** A check that passes on each row as a line of a digest list. */
function recordOf(onDigest: (line: string) => void): RowCheck {
  const format = rowFormat('jsonl', DIGESTS)
  return {
    reductions: DIGESTS,
    check(row) {
      if (row.error === undefined && DIGESTS.every(name => row.reductions[name] !== undefined)) {
        onDigest(format.line(row))
      }
    },
  }
}
