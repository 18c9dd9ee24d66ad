/** Plans of scans over many trials, cut into shards that machines run independently. */

import { createHash } from 'node:crypto'
import { expectArgument } from '../base/arguments.js'
import { FormatError, QueryError, type TrialscanError, UsageError } from '../base/errors.js'
import { checkOptions, isObject, kinds, optionsOf } from '../base/options.js'
import type { RuleConfiguration } from '../rules/config.js'
import { isStepSelection, type StepSelection } from '../scan/catalog/step-selection.js'
import { trialFingerprint } from '../trial/fingerprint.js'
import type { TrialOptions } from '../trial/open.js'
import { SCAN_OPTIONS, type ScanOptions } from '../trial/scan-selection.js'
import { type StepSize, stepSizes } from '../trial/step-sizes.js'
import type { Trial } from '../trial/trial.js'

/** The options of a planned scan. */
export type FleetScan = Pick<
  ScanOptions,
  'tensors' | 'collection' | 'steps' | 'mode' | 'workers' | 'reductions' | 'checkLevel'
>

/** The rules of a plan that checks trials instead of scanning them. A shard holds whole trials, since a diagnosis needs all steps. */
export interface FleetCheck {
  readonly rules: readonly RuleConfiguration[]
  /** True if every rule that the trial has data for is run as well. */
  readonly all: boolean
  /** The workers to judge; null means all. */
  readonly workers: readonly string[] | null
}

/** The options that the trials were opened with. Shards open them with the same options. */
export type FleetOpen = Pick<TrialOptions, 'allowSymlinks' | 'abandonedSteps'>

/** The format of the shards, and of their merged table. */
export type FleetFormat = 'parquet' | 'csv' | 'jsonl'
export const FLEET_FORMATS: readonly FleetFormat[] = ['parquet', 'csv', 'jsonl']

/** The amount of data that is read. */
export interface PlannedSize {
  /** The number of rows. */
  readonly rows: number
  /** The number of index files. */
  readonly files: number
  /** The number of bytes of records. */
  readonly bytes: number
}

export interface PlannedTrial extends PlannedSize {
  /** The trial's path, as the user wrote it. */
  readonly path: string
  /** The fingerprint of the trial's files. A trial that has changed since is refused. */
  readonly fingerprint: string
}

/** Some steps of a trial. */
export interface Piece extends PlannedSize {
  /** The index of the trial in the plan. */
  readonly trial: number
  /** The steps; null means all that the scan selects. */
  readonly steps: StepSelection | null
}

export interface PlannedShard extends PlannedSize {
  /** The pieces, in the order of the table. */
  readonly pieces: readonly Piece[]
}

/** A plan, as stored in `plan.json`. */
export interface FleetPlan {
  /** A digest of the rest of the plan. */
  readonly id: string
  /** The version of trialscan. Other versions refuse to run the shards. */
  readonly version: string
  readonly format: FleetFormat
  readonly open: FleetOpen
  readonly scan: FleetScan
  /** The rules to run; null for a scan. */
  readonly check: FleetCheck | null
  readonly trials: readonly PlannedTrial[]
  readonly shards: readonly PlannedShard[]
}

export interface FleetPlanOptions {
  /** The largest number of shards. A single step is never split. */
  readonly shards?: number
  /** The approximate size of a shard's records in bytes; an alternative to `shards`. */
  readonly shardBytes?: number
  /** Default: `parquet`. */
  readonly format?: FleetFormat
  /** True if the trials were opened with `allowSymlinks`; shards then open them the same way. */
  readonly allowSymlinks?: boolean
  /** True if the trials were opened with `abandonedSteps`. */
  readonly abandonedSteps?: boolean
  readonly scan?: FleetScan
  /** Rules to run instead of a scan. The format is then `jsonl`, with the lines of `trialscan check`. */
  readonly check?: FleetCheck
  /** The version of trialscan. */
  readonly version: string
  /** Called with an error about what a trial lacks; the trial is left out unless the callback throws. Default: the error is thrown. */
  readonly onError?: (trial: Trial, error: TrialscanError) => void
}

const PLAN_OPTIONS = optionsOf<FleetPlanOptions>(
  {
    shards: kinds.wholeNumber(1, 1_000_000, 'a whole number from 1 to 1,000,000'),
    shardBytes: kinds.wholeNumber(1),
    format: kinds.oneOf<FleetFormat>(FLEET_FORMATS),
    allowSymlinks: kinds.flag,
    abandonedSteps: kinds.flag,
    scan: SCAN_OPTIONS,
    check: kinds.that('{ rules, all, workers }', isCheck),
    version: kinds.text,
    onError: kinds.callback(),
  },
  'version',
)

function isCheck(given: unknown): given is FleetCheck {
  const { rules, all, workers } = (given ?? {}) as Partial<FleetCheck>
  return Array.isArray(rules) && typeof all === 'boolean' && (workers === null || Array.isArray(workers))
}

/**
 * Measured CPU time in seconds (docs/fleet.md): for a byte read and reduced, a row with its text or columns, an index file, and a trial.
 */
export const COSTS = { byte: 0.7e-9, row: 7.5e-6, file: 53e-6, trial: 2.7e-3 } as const

/** The CPU time that part of a plan takes, in seconds. */
export function costOf({ rows, files, bytes }: PlannedSize): number {
  return rows * COSTS.row + files * COSTS.file + bytes * COSTS.byte
}

/**
 * Cuts the scan of trials into shards that take about the same time. The same trials and options give the same plan, byte for byte.
 * @param trials each is read when it is yielded, and can be closed when the next one is requested
 * @throws UsageError; StoreError, QueryError as `trial.scan` does
 */
export async function planFleet(
  trials: AsyncIterable<Trial> | Iterable<Trial>,
  options: FleetPlanOptions,
): Promise<FleetPlan> {
  const {
    shards,
    shardBytes,
    check = null,
    format = check === null ? 'parquet' : 'jsonl',
    scan = {},
    allowSymlinks,
    abandonedSteps,
    version,
  } = checkOptions('planFleet', PLAN_OPTIONS, options)
  if ((shards === undefined) === (shardBytes === undefined)) {
    throw new UsageError(
      `planFleet: expected either shards or shardBytes, got ${shards === undefined ? 'none' : 'both'}`,
    )
  }
  if (check !== null && format !== 'jsonl') throw new UsageError(`planFleet: expected jsonl for rules, got ${format}`)
  if (check !== null && Object.keys(scan).length > 0) {
    throw new UsageError('planFleet: expected either scan or check, got both')
  }
  const planned: PlannedTrial[] = []
  const sizes: (readonly StepSize[])[] = []
  for await (const trial of trials) {
    const steps = sizesOf(trial, scan, options.onError)
    if (steps === null) continue
    // A plan of rules keeps each trial whole. So do trials with steps below 0, which a selection can't name.
    const isCut = check === null && !((steps[0]?.step ?? 0) < 0)
    sizes.push(isCut || steps.length === 0 ? steps : [{ step: steps[0]!.step, ...total(steps) }])
    planned.push({ path: trial.path, fingerprint: await trialFingerprint(trial), ...total(steps) })
  }
  const { bytes } = total(planned)
  const count = shards ?? Math.max(1, Math.ceil(bytes / shardBytes!))
  const open = { ...(allowSymlinks && { allowSymlinks }), ...(abandonedSteps && { abandonedSteps }) }
  const body = { version, format, open, scan, check, trials: planned, shards: shardsOf(sizes, count) }
  return { id: digest(JSON.stringify(body)), ...body }
}

function sizesOf(trial: Trial, scan: FleetScan, onError: FleetPlanOptions['onError']): readonly StepSize[] | null {
  try {
    return stepSizes(trial, scan)
  } catch (error) {
    if (!(error instanceof QueryError) || onError === undefined) throw error
    onError(trial, error)
    return null
  }
}

/** The sum over trials, pieces, shards or steps. */
export function total(parts: readonly PlannedSize[]): PlannedSize {
  let [rows, files, bytes] = [0, 0, 0]
  for (const part of parts) {
    rows += part.rows
    files += part.files
    bytes += part.bytes
  }
  return { rows, files, bytes }
}

/** Assigns each step to the shard in which its middle lies. Shards without steps are dropped. */
function shardsOf(trials: readonly (readonly StepSize[])[], count: number): readonly PlannedShard[] {
  const whole = trials.reduce((sum, steps) => sum + steps.reduce((sum, step) => sum + costOf(step), 0), 0)
  const shards: PlannedShard[] = []
  let pieces: Piece[] = []
  let current = 0
  let done = 0
  const close = (): void => {
    if (pieces.length > 0) shards.push({ pieces, ...total(pieces) })
    pieces = []
  }
  for (const [trial, steps] of trials.entries()) {
    let first = 0
    const cut = (end: number): void => {
      if (end === first) return
      const pieceSteps = steps.slice(first, end)
      pieces.push({
        trial,
        steps: pieceSteps.length === steps.length ? null : selectionOf(pieceSteps),
        ...total(pieceSteps),
      })
      first = end
    }
    for (const [i, step] of steps.entries()) {
      const shard = Math.min(count - 1, Math.floor(((done + costOf(step) / 2) / whole) * count))
      done += costOf(step)
      if (shard === current) continue
      cut(i)
      close()
      current = shard
    }
    cut(steps.length)
  }
  close()
  return shards
}

/** The numbers of the steps; runs of equal distance become slices. */
function selectionOf(sizes: readonly StepSize[]): StepSelection {
  const steps = sizes.map(({ step }) => step)
  const list: (number | { from: number; to: number; stride: number })[] = []
  for (let i = 0; i < steps.length; ) {
    const from = steps[i]!
    const stride = (steps[i + 1] ?? from) - from
    let last = i + 1
    while (last < steps.length && steps[last]! - steps[last - 1]! === stride) last++
    // One or two steps are shorter as they are than as a slice.
    if (last - i > 2) list.push({ from, to: steps[last - 1]! + 1, stride })
    else list.push(...steps.slice(i, last))
    i = last
  }
  return list
}

export function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** The text of `plan.json`. */
export function planText(plan: FleetPlan): string {
  return `${JSON.stringify(plan)}\n`
}

/**
 * Parses the text of `plan.json`.
 * @param url the place of the text, for errors
 * @throws FormatError (`BadPlan`) if the text is not an unchanged plan
 */
export function parsePlan(text: string, url: string): FleetPlan {
  const fail = (got: string, cause?: unknown): never => {
    const expected = 'a plan as trialscan fleet plan has written it'
    throw new FormatError('BadPlan', `${url}: expected ${expected}, got ${got}`, { url, expected, got }, cause)
  }
  let plan: Partial<FleetPlan>
  try {
    plan = JSON.parse(text) as Partial<FleetPlan>
  } catch (error) {
    return fail('no JSON', error)
  }
  if (typeof plan !== 'object' || plan === null || typeof plan.id !== 'string') return fail('other JSON')
  const { id, ...body } = plan as FleetPlan
  if (digest(JSON.stringify(body)) !== id) return fail('one that was changed')
  if (!isPlan(body)) return fail('one of another form')
  return { id, ...body }
}

/** True if a plan has every field that running a shard relies on. The scan validates its own options. */
function isPlan({ version, format, open, scan, check, trials, shards }: Omit<FleetPlan, 'id'>): boolean {
  const isSize = (size: PlannedSize) => [size.rows, size.files, size.bytes].every(Number.isSafeInteger)
  const isTrial = (trial: PlannedTrial) => typeof trial?.path === 'string' && isSize(trial)
  const isPiece = (piece: Piece) =>
    trials[piece?.trial] !== undefined && isSize(piece) && (piece.steps === null || isStepSelection(piece.steps))
  const isShard = (shard: PlannedShard) => Array.isArray(shard?.pieces) && shard.pieces.every(isPiece) && isSize(shard)
  return (
    typeof version === 'string' &&
    FLEET_FORMATS.includes(format) &&
    isObject(open) &&
    isObject(scan) &&
    (check === null || isCheck(check)) &&
    Array.isArray(trials) &&
    trials.every(isTrial) &&
    Array.isArray(shards) &&
    shards.every(isShard)
  )
}

/** The name of a shard's files, without extension. It identifies the plan, the shard and the version. */
export function shardName(plan: FleetPlan, shard: number): string {
  expectArgument('shardName', 'plan', 'a plan', plan, typeof plan?.id === 'string')
  expectArgument('shardName', 'shard', 'the number of a shard', shard, Number.isSafeInteger(shard))
  const { id, version } = plan
  return `shard-${String(shard).padStart(5, '0')}-${digest(`${id}\n${shard}\n${version}`).slice(0, 16)}`
}
