/** Checks of the rows of one scan over all tensors: of their values, and of their digests. */

import { DIGESTS, type StatisticName } from '../../base/types.js'
import { DigestCheck, type DigestDifference } from '../../compare/digests/digests.js'
import type { DigestListSource } from '../../compare/digests/list.js'
import { rowFormat, type ScanRow } from '../../scan/job/row.js'
import type { Trial } from '../../trial/trial.js'
import type { Findings } from './findings.js'
import type { VerifyCode } from './problem.js'
import { ValueCheck } from './tensor-values.js'

/** A check of rows. */
export interface RowCheck {
  readonly reductions: readonly StatisticName[]
  check(row: ScanRow): void
}

export interface RowOptions {
  readonly values?: boolean
  readonly digests?: DigestListSource
  readonly onDigest?: (line: string) => void
}

/** The number of tensors of a digest list that are as it says. */
export interface DigestCounts {
  readonly equal: number
  readonly of: number
}

/** True if anything is asked of rows. */
export function asksRows({ values, digests, onDigest }: RowOptions): boolean {
  return values === true || digests !== undefined || onDigest !== undefined
}

/** The checks that are asked for, of the rows of one scan. */
export class RowChecks implements RowCheck {
  readonly reductions: readonly StatisticName[]
  readonly #values: ValueCheck | null
  readonly #digests: DigestCheck | null
  readonly #checks: readonly RowCheck[]

  private constructor(
    values: ValueCheck | null,
    digests: DigestCheck | null,
    onDigest: ((line: string) => void) | undefined,
  ) {
    this.#values = values
    this.#digests = digests
    const listed = digests && { reductions: digests.digests, check: (row: ScanRow) => digests.check(row) }
    this.#checks = [values, listed, onDigest ? recordOf(onDigest) : null].filter(check => check !== null)
    this.reductions = [...new Set(this.#checks.flatMap(({ reductions }) => reductions))]
  }

  /** Reads the list of digests, if there is one, and tells what is wrong with it. */
  static async open(
    trial: Trial,
    findings: Findings,
    { values = false, digests, onDigest }: RowOptions,
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
      for (const found of notes) {
        findings.note({ code: 'OtherDigestList', file: '', expected: 'a list of the same steps and workers', found })
      }
    }
    return new RowChecks(values ? new ValueCheck(findings) : null, held, onDigest)
  }

  check(row: ScanRow): void {
    for (const check of this.#checks) check.check(row)
  }

  /** Tells what there was no row of. */
  finish(): void {
    this.#digests?.finish()
  }

  get counts() {
    const of = this.#digests?.result
    const digests: DigestCounts | null = of ? { equal: of.equal, of: of.compared + (of.counts.missing ?? 0) } : null
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
  // What can't be read is a problem of its own.
  if (kind === 'unreadable') return
  const what = kind === 'missing' || kind === 'unlisted' ? '' : `${kind} `
  findings.tell('problem', CODES[kind], '', () => ({
    tensor,
    step,
    expected: `${what}${kind === 'unlisted' ? 'a line of the digest list' : expected}${line === null ? '' : `, as line ${line} of the digest list has it`}`,
    found: kind === 'unlisted' ? 'none' : kind === 'missing' ? 'no such tensor' : got,
  }))
}

/** The lines of a digest list, of all that was read. */
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
