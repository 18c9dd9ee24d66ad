/** The files of a plan: the plan itself, and the table, the report or the failure of each shard. */

import { expectArgument } from '../base/arguments.js'
import { FormatError, StoreError } from '../base/errors.js'
import { checkOptions, isObject, optionsOf } from '../base/options.js'
import { Destination } from '../storage/destination.js'
import { S3_OPTIONS } from '../storage/s3/options.js'
import type { S3Options } from '../storage/s3/spec.js'
import { type FleetPlan, parsePlan, planText, shardName } from './plan.js'

const PLAN = 'plan.json'
const SHARDS = 'shards'
const FAILURES = 'failures'
/** The largest plan that is read, in bytes. A plan of ten thousand trials has a few MB. */
const MAX_PLAN_BYTES = 512 << 20
const MAX_REPORT_BYTES = 64 << 20

/** The report of a shard. It is written after the shard's table. */
export interface ShardReport {
  readonly shard: number
  readonly rows: number
  readonly failedRows: number
  /** The size of the table in bytes. */
  readonly bytes: number
  readonly sha256: string
  readonly firstError: string | null
  /** Problems of trials that no row of the table shows. */
  readonly problems: readonly string[]
  /** The number of findings, for a plan of rules; 0 for a scan. */
  readonly findings: number
  readonly seconds: number
}

/** The last failure of a shard. */
export interface ShardFailure {
  readonly shard: number
  readonly times: number
  readonly message: string
}

export interface PlaceOptions {
  /** Region, endpoint and credentials for S3. */
  readonly s3?: S3Options | undefined
}

const PLACE_OPTIONS = optionsOf<PlaceOptions>({ s3: S3_OPTIONS })

/** A plan and its results, in a directory or at a prefix of S3. */
export class PlanPlace {
  readonly destination: Destination
  readonly plan: FleetPlan

  private constructor(destination: Destination, plan: FleetPlan) {
    this.destination = destination
    this.plan = plan
  }

  /** Reads a plan. @throws StoreError, FormatError (`BadPlan`) */
  static async open(place: string, options?: PlaceOptions): Promise<PlanPlace> {
    const { s3 } = checkOptions('PlanPlace.open', PLACE_OPTIONS, options)
    const destination = Destination.at(place, s3)
    try {
      const { store } = destination
      const bytes = await store.read(PLAN, { maxByteLength: MAX_PLAN_BYTES })
      return new PlanPlace(destination, parsePlan(Buffer.from(bytes).toString(), store.url(PLAN)))
    } catch (error) {
      await destination.close()
      throw error
    }
  }

  /** Writes a plan. An equal plan at the same place is accepted. @throws StoreError (`Unavailable`) if there is another plan */
  static async create(place: string, plan: FleetPlan, options?: PlaceOptions): Promise<PlanPlace> {
    const { s3 } = checkOptions('PlanPlace.create', PLACE_OPTIONS, options)
    expectArgument('PlanPlace.create', 'plan', 'a plan', plan, typeof plan?.id === 'string')
    const destination = Destination.at(place, s3)
    const { store } = destination
    const text = planText(plan)
    if (!(await store.exists(PLAN))) await destination.create(PLAN, [text])
    const existing = Buffer.from(
      await (await destination.look()).read(PLAN, { maxByteLength: MAX_PLAN_BYTES }),
    ).toString()
    if (existing === text) return new PlanPlace(destination, plan)
    const url = store.url(PLAN)
    await destination.close()
    const message = `${url}: expected no plan, or the same, got another: plan into another directory`
    throw new StoreError('Unavailable', message, { url })
  }

  tablePath(shard: number): string {
    return `${SHARDS}/${shardName(this.plan, shard)}.${this.plan.format}`
  }

  /** The report of a shard; null if the shard is not done. */
  async report(shard: number): Promise<ShardReport | null> {
    const store = await this.destination.look()
    const path = this.#reportPath(shard)
    return (await store.exists(path)) ? this.#read(path, isReport) : null
  }

  /** The reports of all shards that are done, by number. */
  async reports(): Promise<ReadonlyMap<number, ShardReport>> {
    const store = await this.destination.look()
    const reportNames = new Set(await store.list(SHARDS))
    const reports = new Map<number, ShardReport>()
    for (const shard of this.plan.shards.keys()) {
      const path = this.#reportPath(shard)
      if (!reportNames.has(path)) continue
      if (!reportNames.has(this.tablePath(shard))) {
        const [url, expected, got] = [store.url(path), 'its table beside it', 'none']
        throw new FormatError('BadPlan', `${url}: expected ${expected}, got ${got}`, { url, expected, got })
      }
      reports.set(shard, await this.#read(path, isReport))
    }
    return reports
  }

  /** Writes the report of a shard whose table is in place; this marks the shard as done. */
  async finish(report: ShardReport): Promise<void> {
    await this.destination.create(this.#reportPath(report.shard), [`${JSON.stringify(report)}\n`])
  }

  /** Records the failure of a shard. */
  async fail(shard: number, message: string): Promise<void> {
    const path = this.#failurePath(shard)
    const before = await this.failure(shard).catch(() => null)
    const failure: ShardFailure = { shard, times: (before?.times ?? 0) + 1, message }
    await this.destination.replace(path, `${JSON.stringify(failure)}\n`)
  }

  /** The failure of a shard; null if it has not failed. */
  async failure(shard: number): Promise<ShardFailure | null> {
    const path = this.#failurePath(shard)
    return (await this.destination.store.exists(path)) ? this.#read(path, isFailure) : null
  }

  /** The failures of shards that are not done. */
  async failures(done: ReadonlyMap<number, unknown>): Promise<ReadonlyMap<number, ShardFailure>> {
    const { store } = this.destination
    const failureNames = new Set(await store.list(FAILURES))
    const failures = new Map<number, ShardFailure>()
    for (const shard of this.plan.shards.keys()) {
      const path = this.#failurePath(shard)
      if (!done.has(shard) && failureNames.has(path)) failures.set(shard, await this.#read(path, isFailure))
    }
    return failures
  }

  close(): Promise<void> {
    return this.destination.close()
  }

  #reportPath(shard: number): string {
    return `${SHARDS}/${shardName(this.plan, shard)}.json`
  }

  #failurePath(shard: number): string {
    return `${FAILURES}/${shardName(this.plan, shard)}.json`
  }

  async #read<T>(path: string, is: (value: T) => boolean): Promise<T> {
    const { store } = this.destination
    const text = Buffer.from(await store.read(path, { maxByteLength: MAX_REPORT_BYTES })).toString()
    let value: T | null = null
    try {
      value = JSON.parse(text) as T | null
    } catch {
      // The error below covers this case.
    }
    if (isObject(value) && is(value as T)) return value as T
    const [url, expected, got] = [store.url(path), 'what trialscan has written', 'something else']
    throw new FormatError('BadPlan', `${url}: expected ${expected}, got ${got}`, { url, expected, got })
  }
}

function isReport({ rows, failedRows, bytes, sha256, findings, seconds, problems }: ShardReport): boolean {
  const counts = [rows, failedRows, bytes, findings]
  const isText = typeof sha256 === 'string'
  return counts.every(Number.isSafeInteger) && isText && typeof seconds === 'number' && Array.isArray(problems)
}

function isFailure({ times, message }: ShardFailure): boolean {
  return Number.isSafeInteger(times) && typeof message === 'string'
}
