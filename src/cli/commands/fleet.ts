/** `trialscan fleet`: a scan of many trials on many machines. */

import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { UsageError } from '../../base/errors.js'
import type { CheckLevel } from '../../base/types.js'
import { estimateFleet } from '../../fleet/estimate.js'
import { type FleetStatus, fleetStatus, mergedTable, type ShardStatus } from '../../fleet/merge.js'
import { PlanPlace } from '../../fleet/place.js'
import { type FleetCheck, type FleetFormat, type FleetPlan, planFleet, total } from '../../fleet/plan.js'
import { runShard, type ShardOptions } from '../../fleet/shard.js'
import { RuleRegistry } from '../../rules/registry.js'
import type { Trial } from '../../trial/trial.js'
import { EXIT } from '../exit.js'
import type { FormatOf } from '../format/formats.js'
import { csvLine, jsonLine } from '../format/lines.js'
import { bytesText, counted, countText } from '../format/number.js'
import { noteInput } from '../input-file.js'
import type { RuleText } from '../options/arguments.js'
import { defined, type OutputFlags, readingOptions, settle } from '../options/given.js'
import { expectS3, type S3Flags, s3For, s3OptionsOf, type TrialFlags } from '../options/s3.js'
import { writeTo } from '../output.js'
import { Progress } from '../progress.js'
import { expectOutside, expectReplaceableIn, localTrial } from '../real-path.js'
import { requestedStatistics, type SelectionFlags, selectionOf } from '../scan/selection.js'
import { Losses, opened, trialsAt } from '../scan/trials.js'
import { colorsFor, columnLines, note, safe, tableWidth } from '../terminal.js'
import { VERSION } from '../version.js'

export interface PlanFlags extends Omit<SelectionFlags, 'modeSteps'>, TrialFlags {
  readonly out: string
  readonly shards?: number
  readonly shardBytes?: number
  readonly reductions?: readonly string[]
  readonly checkLevel?: CheckLevel
  readonly format?: FleetFormat
  readonly check?: boolean
  readonly rule?: readonly RuleText[]
  readonly rules?: string
  readonly failFast?: boolean
  readonly estimate?: boolean
  readonly cores?: number
  /** GB/s. */
  readonly net?: number
}

/** @returns the exit code */
export async function fleetPlan(places: readonly string[], flags: PlanFlags, signal: AbortSignal): Promise<number> {
  const { out, shards, shardBytes, format, checkLevel, allowSymlinks, abandonedSteps } = flags
  const { estimate = false, cores, net } = flags
  if ((shards === undefined) === (shardBytes === undefined)) {
    const got = shards === undefined ? 'neither' : 'both'
    throw new UsageError(`expected either --shards or --shard-bytes, got ${got}`)
  }
  if (estimate !== (cores !== undefined)) {
    throw new UsageError(`expected --estimate and --cores together, got only ${estimate ? '--estimate' : '--cores'}`)
  }
  if (net !== undefined && !estimate) throw new UsageError('expected --estimate beside --net')
  const rules = await rulesFor(flags)
  expectS3(flags, [...places, out])
  const paths = await trialsAt(places, flags)
  // A trial may be all that is left of a job: nothing is written into it.
  if (localTrial(out) !== null) for (const path of paths) await expectOutside(path, out, 'a directory')
  const losses = new Losses(paths, flags.failFast)
  const progress = new Progress(false, 'trials')
  let done = 0
  const trials = async function* (): AsyncGenerator<Trial> {
    for await (const { path, trial } of opened(paths, flags, losses)) {
      signal.throwIfAborted()
      yield trial
      losses.add(path, { problems: trial.problems })
      progress.update({ doneRows: ++done, totalRows: paths.length })
    }
  }
  const plan = await planFleet(trials(), {
    version: VERSION,
    ...defined({ format, shards, shardBytes, allowSymlinks, abandonedSteps }),
    onError: (trial, error) => losses.trial(trial.path, error),
    ...(rules === null
      ? {
          scan: {
            ...selectionOf(flags),
            reductions: requestedStatistics(flags.reductions) ?? 'all',
            ...defined({ checkLevel }),
          },
        }
      : { check: rules }),
  })
  progress.stop()
  if (plan.shards.length === 0) {
    note('the options select nothing of any trial: there is nothing to plan')
    return EXIT.query
  }
  const place = await PlanPlace.create(out, plan, s3For(out, flags))
  await place.close()
  const { rows, bytes } = total(plan.shards)
  const size = `${counted(rows, 'row')}, ${bytesText(bytes)} of records`
  const content = `${counted(plan.trials.length, 'trial')}, ${size}, in ${counted(plan.shards.length, 'shard')}`
  process.stdout.write(`${safe(out)}: ${content} (0 to ${plan.shards.length - 1})\n`)
  if (estimate) process.stdout.write(`${estimateText(plan, flags)}\n`)
  return losses.tell()
}

/**
 * The rules of a plan; null for a scan.
 * @throws UsageError for options of a scan beside rules
 */
async function rulesFor(flags: PlanFlags): Promise<FleetCheck | null> {
  const { check, rule, rules, worker } = flags
  if (!check && rule === undefined && rules === undefined) return null
  const ofScan = (['tensor', 'collection', 'steps', 'mode', 'reductions', 'checkLevel'] as const).find(
    name => name in flags,
  )
  if (ofScan !== undefined) {
    const flag = ofScan === 'checkLevel' ? 'check-level' : ofScan
    throw new UsageError(`expected --${flag} for a plan of a scan, got it beside --check, --rule or --rules`)
  }
  const { askedRules } = await import('./check.js')
  const all = check ? { all: true } : {}
  const { configurations, isAll } = await askedRules({ ...flags, ...all }, new RuleRegistry())
  return { rules: configurations, all: isAll, workers: worker ?? null }
}

/** The estimate of a plan in words. */
function estimateText(plan: FleetPlan, { cores, net }: PlanFlags): string {
  const bytesPerSecond = net === undefined ? undefined : Math.round(net * 1e9)
  const { coreSeconds, seconds, boundBy, requests } = estimateFleet(plan, {
    cores: cores!,
    ...defined({ bytesPerSecond }),
  })
  const all = [
    `about ${durationText(seconds)} on ${counted(cores!, 'core')}, bound by the ${boundBy}`,
    `${durationText(coreSeconds)} of a core in all`,
    `on S3 ${counted(requests, 'request')}`,
  ]
  return all.join('; ')
}

function durationText(seconds: number): string {
  if (seconds < 100) return `${seconds.toPrecision(2)} s`
  const minutes = seconds / 60
  return minutes < 100 ? `${minutes.toPrecision(2)} min` : `${countText(Math.round(minutes / 60))} h`
}

export interface WorkFlags extends S3Flags {
  readonly threads?: number
  readonly memory?: number
}

export async function runOptions(plan: FleetPlan, flags: WorkFlags, signal: AbortSignal): Promise<ShardOptions> {
  const check = plan.check && (await import('../fleet/check.js')).judging(flags, signal)
  return {
    version: VERSION,
    ...(check && { check }),
    ...s3OptionsOf(flags),
    ...readingOptions(flags),
    signal,
  }
}

export interface RunFlags extends WorkFlags {
  readonly shard?: number
  readonly all?: boolean
}

/** The environment variables with the index of an array job's task. */
const ARRAY_INDEX = ['AWS_BATCH_JOB_ARRAY_INDEX', 'JOB_COMPLETION_INDEX', 'SLURM_ARRAY_TASK_ID']

/** @returns the exit code */
export async function fleetRun(at: string, flags: RunFlags, signal: AbortSignal): Promise<number> {
  if (flags.all && flags.shard !== undefined) throw new UsageError('expected either --shard or --all, got both')
  const place = await PlanPlace.open(at, s3For(at, flags))
  const progress = new Progress(false)
  try {
    const { plan } = place
    expectS3(flags, [at, ...plan.trials.map(({ path }) => path)])
    const options = await runOptions(plan, flags, signal)
    const runOne = async (shard: number): Promise<void> => {
      const { report, wasDone } = await runShard(place, shard, {
        ...options,
        onProgress: progress.update,
      })
      const { rows, failedRows, seconds } = report
      const failed = failedRows > 0 ? `, of which ${countText(failedRows)} could not be read` : ''
      const state = wasDone ? 'was done' : `${seconds.toFixed(1)} s`
      progress.makeWay()
      process.stdout.write(`shard ${shard} of ${plan.shards.length}: ${counted(rows, 'row')}${failed}; ${state}\n`)
    }
    let first: unknown = null
    for (const shard of flags.all ? plan.shards.keys() : [shardOf(flags)]) {
      try {
        await runOne(shard)
      } catch (error) {
        if (!flags.all || signal.aborted) throw error
        // The others are run all the same. The first error is told at the end.
        if (first === null) first = error
        else note(error instanceof Error ? error.message : String(error))
      }
    }
    progress.stop()
    if (first !== null) throw first
    return EXIT.ok
  } finally {
    await place.close()
  }
}

function shardOf({ shard }: RunFlags): number {
  if (shard !== undefined) return shard
  for (const name of ARRAY_INDEX) {
    const text = process.env[name]
    if (text === undefined || text === '') continue
    if (!/^\d+$/.test(text)) throw new UsageError(`expected ${name} to be the number of a shard, got ${text}`)
    return Number(text)
  }
  throw new UsageError(`expected --shard N, --all, or one of ${ARRAY_INDEX.join(', ')}, got none`)
}

export interface MergeFlags extends S3Flags {
  readonly out: string
}

/** @returns the exit code */
export async function fleetMerge(at: string, flags: MergeFlags, signal: AbortSignal): Promise<number> {
  expectS3(flags, [at])
  const out = flags.out === '-' ? undefined : flags.out
  const place = await PlanPlace.open(at, s3For(at, flags))
  try {
    const { format } = place.plan
    if (out === undefined && format === 'parquet' && process.stdout.isTTY) {
      throw new UsageError('a table of parquet is not for terminals: write to a file with --out, or into a pipe')
    }
    const trials = place.plan.trials.map(({ path }) => path)
    if (out !== undefined) await expectReplaceableIn(trials, out)
    await notePlan(at)
    const status = await fleetStatus(place)
    await writeTo(
      out,
      async output => {
        for await (const bytes of mergedTable(place, status)) {
          signal.throwIfAborted()
          await output.writeBytes(bytes)
        }
      },
      { signal },
    )
    const losses = new Losses([at])
    const reports = status.shards.flatMap(({ report }) => report ?? [])
    losses.add(at, {
      rows: status.rows,
      failedRows: reports.reduce((sum, { failedRows }) => sum + failedRows, 0),
      first: reports.find(({ firstError }) => firstError !== null)?.firstError ?? null,
      problems: [...new Set(reports.flatMap(({ problems }) => problems))],
    })
    if (reports.some(({ findings }) => findings > 0)) losses.outcome(EXIT.findings)
    return losses.tell()
  } finally {
    await place.close()
  }
}

/** Protects the files of a plan on disk from the output. */
async function notePlan(at: string): Promise<void> {
  const directory = localTrial(at)
  if (directory === null) return
  const paths = await readdir(directory, { recursive: true }).catch(() => [])
  for (const path of paths) if (PART_OF_PLAN.test(path)) await noteInput(join(directory, path))
}

const PART_OF_PLAN = /^(?:plan\.json$|(?:shards|failures)[/\\])/

export interface StatusFlags extends S3Flags, OutputFlags<'fleet status'> {}

/** @returns the exit code */
export async function printFleetStatus(at: string, given: StatusFlags): Promise<number> {
  const flags = settle('fleet status', at, given)
  expectS3(flags, [at])
  const place = await PlanPlace.open(at, s3For(at, flags))
  try {
    await notePlan(at)
    const status = await fleetStatus(place)
    await writeTo(flags.out, output => output.writeAll(statusText(at, status, flags.format, flags.onTerminal)))
    return EXIT.ok
  } finally {
    await place.close()
  }
}

const STATUS_COLUMNS = [
  ...['shard', 'state', 'rows', 'bytes', 'trials', 'seconds', 'failed_rows', 'table_bytes', 'failures', 'message'],
] as const

function statusOf({ shard, rows, bytes, trials, report, failure }: ShardStatus) {
  return {
    shard,
    state: stateOf({ report, failure }),
    rows,
    bytes,
    trials: trials.length,
    seconds: report?.seconds ?? null,
    failed_rows: report?.failedRows ?? null,
    table_bytes: report?.bytes ?? null,
    failures: failure?.times ?? 0,
    message: failure?.message ?? report?.firstError ?? null,
  }
}

function stateOf({ report, failure }: Pick<ShardStatus, 'report' | 'failure'>): 'done' | 'failed' | 'waiting' {
  return report !== null ? 'done' : failure !== null ? 'failed' : 'waiting'
}

/** The number of shards that a table lists one by one. */
const MAX_LISTED = 20

function* statusText(
  at: string,
  status: FleetStatus,
  format: FormatOf<'fleet status'>,
  onTerminal: boolean,
): Generator<string> {
  const { shards, done, rows, doneRows, bytes, doneBytes } = status
  const inState = (state: string) => shards.filter(shard => stateOf(shard) === state)
  const [failed, waiting] = [inState('failed'), inState('waiting')]
  if (format === 'csv') {
    yield csvLine(STATUS_COLUMNS, onTerminal)
    for (const shard of shards) yield csvLine(Object.values(statusOf(shard)), onTerminal)
  } else if (format === 'jsonl') {
    for (const shard of shards) yield jsonLine(statusOf(shard), onTerminal)
  } else if (format === 'json') {
    const numbers = (some: readonly ShardStatus[]) => some.map(({ shard }) => shard)
    yield jsonLine(
      {
        shards: shards.length,
        done,
        rows,
        rows_done: doneRows,
        bytes,
        bytes_done: doneBytes,
        waiting: numbers(waiting),
        failed: numbers(failed),
      },
      onTerminal,
    )
  } else {
    const colors = colorsFor(onTerminal ? process.stdout : null)
    const count = `${countText(done)} of ${counted(shards.length, 'shard')}`
    const parts = [
      `${done === shards.length ? colors.green(count) : count} done`,
      ...(failed.length > 0 ? [colors.red(`${countText(failed.length)} failed`)] : []),
      ...(waiting.length > 0 ? [`${countText(waiting.length)} not yet begun or under way`] : []),
    ]
    yield `${colors.bold(safe(at))}: ${parts.join(', ')}\n`
    yield `${countText(doneRows)} of ${counted(rows, 'row')}, ${bytesText(doneBytes)} of ${bytesText(bytes)}\n`
    const listed = [...failed, ...waiting].slice(0, MAX_LISTED)
    if (listed.length === 0) return
    const head = ['shard', 'state', 'rows', 'bytes', 'trials', 'failures', ''].map(colors.bold)
    const rowsOf = listed.map(shard => {
      const { state, rows, bytes, failures, message } = statusOf(shard)
      const trials = shard.trials.length === 1 ? safe(shard.trials[0]!) : counted(shard.trials.length, 'trial')
      const shown = state === 'failed' ? colors.red(state) : state
      return [
        String(shard.shard),
        shown,
        countText(rows),
        bytesText(bytes),
        trials,
        String(failures),
        safe(message ?? ''),
      ]
    })
    yield '\n'
    yield* columnLines([head, ...rowsOf], [0, 2, 3, 5], tableWidth(onTerminal))
    const more = failed.length + waiting.length - listed.length
    if (more > 0) yield `… and ${countText(more)} more: \`--format csv\`\n`
  }
}
