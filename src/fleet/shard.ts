/** Runs a shard of a plan, and writes its rows once. */

import { createHash } from 'node:crypto'
import { QueryError, UsageError } from '../base/errors.js'
import { checkOptions, kinds, optionsOf } from '../base/options.js'
import type { StepSlice } from '../scan/catalog/step-selection.js'
import type { Scan } from '../scan/rows/scan.js'
import { WORK_OPTIONS } from '../scan/runner/access.js'
import { S3_OPTIONS } from '../storage/s3/options.js'
import type { S3Options } from '../storage/s3/spec.js'
import { type TableSource, tableBytes } from '../table/table.js'
import { trialFingerprint } from '../trial/fingerprint.js'
import { createTrial } from '../trial/open.js'
import { damageAmong } from '../trial/scan-selection.js'
import type { Trial } from '../trial/trial.js'
import type { PlanPlace, ShardReport } from './place.js'
import type { FleetCheck, FleetPlan, Piece } from './plan.js'

export interface ShardOptions {
  /** Region, endpoint and credentials for trials on S3. */
  readonly s3?: S3Options | undefined
  readonly threads?: number
  readonly memory?: number
  readonly signal?: AbortSignal
  /** Called with the number of rows so far. */
  readonly onProgress?: (progress: { readonly doneRows: number; readonly totalRows: number }) => void
  /** Runs the rules on a trial, for a plan of rules. */
  readonly check?: (trial: Trial, path: string, check: FleetCheck) => FleetJudging
  /** The version of trialscan. */
  readonly version: string
}

/** The check of a trial, in progress. */
export interface FleetJudging {
  /** The rules' report, in whole lines. */
  readonly lines: AsyncIterable<string>
  /** The number of findings and the problems, available once all lines are read. */
  readonly outcome: () => { readonly findings: number; readonly problems: readonly string[] }
}

const SHARD_OPTIONS = optionsOf<ShardOptions>(
  {
    ...WORK_OPTIONS,
    s3: S3_OPTIONS,
    signal: kinds.signal,
    onProgress: kinds.callback(),
    check: kinds.callback(),
    version: kinds.text,
  },
  'version',
)

/**
 * Scans a shard, unless it is done. The table appears when it is complete, the report after it. A failure is recorded beside the plan.
 * @returns the report, and true if it existed before
 * @throws UsageError for an unknown shard or another version; QueryError (`TrialChanged`); what a scan throws
 */
export async function runShard(
  place: PlanPlace,
  shard: number,
  given: ShardOptions,
): Promise<{ readonly report: ShardReport; readonly wasDone: boolean }> {
  const options = checkOptions('runShard', SHARD_OPTIONS, given)
  const { plan } = place
  if (!Number.isInteger(shard) || shard < 0 || shard >= plan.shards.length) {
    const expected = `a shard from 0 to ${plan.shards.length - 1}`
    throw new UsageError(`expected ${expected}, got ${shard}`, { shard })
  }
  if (plan.version !== options.version) {
    const message = `expected trialscan ${plan.version}, which has made the plan, got ${options.version}`
    throw new UsageError(message, { version: options.version })
  }
  const done = await place.report(shard)
  if (done !== null) return { report: done, wasDone: true }
  try {
    const report = await new ShardRun(place, shard, options).run()
    await place.finish(report)
    return { report, wasDone: false }
  } catch (error) {
    options.signal?.throwIfAborted()
    const message = error instanceof Error ? error.message : String(error)
    // The original error is thrown even if the failure can't be recorded.
    await place.fail(shard, message).catch(() => {})
    throw error
  }
}

class ShardRun {
  readonly #place: PlanPlace
  readonly #plan: FleetPlan
  readonly #shard: number
  readonly #options: ShardOptions
  #rows = 0
  #failedRows = 0
  #findings = 0
  #firstError: string | null = null
  readonly #problems = new Set<string>()

  constructor(place: PlanPlace, shard: number, options: ShardOptions) {
    this.#place = place
    this.#plan = place.plan
    this.#shard = shard
    this.#options = options
  }

  async run(): Promise<ShardReport> {
    const startedAt = performance.now()
    const { format, check } = this.#plan
    const chunks = check !== null ? this.#judge(check) : format === 'parquet' ? this.#parquet() : this.#lines(format)
    const hash = createHash('sha256')
    const hashed = async function* () {
      for await (const chunk of chunks) {
        hash.update(chunk)
        yield chunk
      }
    }
    const bytes = await this.#place.destination.create(this.#place.tablePath(this.#shard), hashed())
    const table = bytes === null ? await this.#tableOnStore() : { bytes, sha256: hash.digest('hex') }
    return {
      shard: this.#shard,
      rows: this.#rows,
      failedRows: this.#failedRows,
      ...table,
      firstError: this.#firstError,
      problems: [...this.#problems],
      findings: this.#findings,
      seconds: Math.round(performance.now() - startedAt) / 1000,
    }
  }

  /**
   * The size and digest of a table whose worker has not written its report. The rows are the same as here; pages of
   * Parquet may be cut elsewhere.
   */
  async #tableOnStore(): Promise<Pick<ShardReport, 'bytes' | 'sha256'>> {
    const store = await this.#place.destination.look()
    const path = this.#place.tablePath(this.#shard)
    const hash = createHash('sha256')
    // A table is kept only on stores that make requests; these have `stream`.
    const bytes = await store.stream!(path, 0, await store.byteLength(path), chunk => hash.update(chunk))
    return { bytes, sha256: hash.digest('hex') }
  }

  #parquet(): AsyncGenerator<Uint8Array> {
    const { version, id, scan } = this.#plan
    const metadata = {
      'trialscan.version': version,
      'trialscan.plan': id,
      'trialscan.shard': String(this.#shard),
      'trialscan.check_level': scan.checkLevel ?? 'minimal',
    }
    return tableBytes(this.#scans(), 'parquet', { metadata })
  }

  async *#lines(format: 'csv' | 'jsonl'): AsyncGenerator<Uint8Array> {
    let isFirst = true
    for await (const { trial, scan } of this.#scans()) {
      let isHead = format === 'csv'
      for await (const lines of scan.lines(format, trial)) {
        if (isFirst || !isHead) yield lines
        isHead = false
      }
      isFirst = false
    }
  }

  async *#judge(check: FleetCheck): AsyncGenerator<string> {
    const { check: judge, signal, onProgress } = this.#options
    if (judge === undefined) throw new UsageError('expected a way to check trials, since the plan is one of rules')
    const { pieces, rows: totalRows } = this.#plan.shards[this.#shard]!
    for (const piece of pieces) {
      signal?.throwIfAborted()
      const trial = await this.#open(piece)
      try {
        const { lines, outcome } = judge(trial, this.#plan.trials[piece.trial]!.path, check)
        yield* lines
        signal?.throwIfAborted()
        const { findings, problems } = outcome()
        this.#findings += findings
        for (const problem of problems) this.#problems.add(problem)
        this.#rows += piece.rows
        onProgress?.({ doneRows: this.#rows, totalRows })
      } finally {
        await trial.close()
      }
    }
  }

  async *#scans(): AsyncGenerator<TableSource> {
    const { pieces, rows } = this.#plan.shards[this.#shard]!
    for (const piece of pieces) {
      this.#options.signal?.throwIfAborted()
      const trial = await this.#open(piece)
      try {
        const scan = this.#scan(trial, piece)
        yield { trial: this.#plan.trials[piece.trial]!.path, scan }
        this.#add(scan)
      } finally {
        await trial.close()
      }
    }
    // Checked before the table is completed.
    this.#options.signal?.throwIfAborted()
    if (this.#rows !== rows) {
      throw new QueryError('TrialChanged', `expected ${rows} rows in shard ${this.#shard}, got ${this.#rows}`, { rows })
    }
  }

  async #open({ trial: place, steps }: Piece): Promise<Trial> {
    const { path, fingerprint } = this.#plan.trials[place]!
    const { s3, threads } = this.#options
    const { allowSymlinks, abandonedSteps } = this.#plan.open
    const isOnS3 = /^\s*s3:/i.test(path)
    const list = Array.isArray(steps) ? (steps as readonly (number | StepSlice)[]) : null
    const first = list?.[0]
    const last = list?.at(-1)
    const begin = typeof first === 'number' ? first : (first?.from ?? null)
    const end = typeof last === 'number' ? last + 1 : (last?.to ?? null)
    const trial = await createTrial(path, {
      requireCollections: false,
      refresh: 'manual',
      // Index files that belong to other shards are not read.
      ...(list !== null && { rangeSteps: [begin, end] }),
      ...(threads !== undefined && { threads }),
      ...(isOnS3 ? s3 && { s3 } : allowSymlinks && { allowSymlinks }),
      ...(abandonedSteps && { abandonedSteps }),
    })
    if ((await trialFingerprint(trial)) === fingerprint) return trial
    await trial.close()
    const message = `${path}: expected the trial as it was when the plan was made, got one with other files: make a new plan`
    throw new QueryError('TrialChanged', message, { path })
  }

  #scan(trial: Trial, { steps }: Piece): Scan {
    const { threads, memory, signal, onProgress } = this.#options
    const before = this.#rows
    const { rows: totalRows } = this.#plan.shards[this.#shard]!
    return trial.scan({
      ...this.#plan.scan,
      ...(steps !== null && { steps }),
      ...(threads !== undefined && { threads }),
      ...(memory !== undefined && { memory }),
      ...(signal && { signal }),
      ...(onProgress && {
        onProgress: ({ doneRows }: { readonly doneRows: number }) =>
          onProgress({ doneRows: before + doneRows, totalRows }),
      }),
    })
  }

  #add({ stats, firstError, problems }: Scan): void {
    this.#rows += stats.rows
    this.#failedRows += stats.failedRows
    this.#firstError ??= firstError?.message ?? null
    for (const { message } of damageAmong(problems)) this.#problems.add(message)
  }
}
