/** The commands for many machines: fleet plan, run, merge, submit, work and status. */

import { type Command, Option } from 'commander'
import { helpText } from '../help-text.js'
import { paths, pathText, rate, reductionList, ruleTexts, wholeNumberArgument } from './arguments.js'
import {
  CHECK_LEVEL,
  COLLECTION,
  completed,
  FAIL_FAST,
  formatOption,
  MEMORY,
  MODE,
  OUT,
  type RunCommand,
  STEPS,
  TENSOR,
  THREADS,
  TRIALS,
  WORKER,
} from './options.js'

const redisOption = () =>
  new Option(
    '--redis <URL>',
    'the server: redis://[:password@]host[:port][/database], with TLS rediss://',
  ).makeOptionMandatory()
const queueOption = () => new Option('--queue <NAME>', 'the queue (default: trialscan- and the version)')

const PLAN = 'the directory of a plan, or s3://bucket/prefix'

/** The grace of a shard, in milliseconds: a stopped machine records what it has not done. */
const RUN_GRACE_MS = 20_000

/** Adds the commands. */
export function addFleetCommands(program: Command, run: RunCommand): void {
  const fleet = program
    .command('fleet')
    .description('A scan of many trials on many machines: plan, run each shard anywhere, merge.')
    .addHelpText(
      'after',
      helpText(`
Examples:
  $ trialscan fleet plan 's3://my-bucket/runs/*' --out s3://my-bucket/plans/one --shards 64
  $ trialscan fleet run s3://my-bucket/plans/one --shard 7  # of 0 to 63
  $ trialscan fleet merge s3://my-bucket/plans/one --out all.parquet

docs/fleet.md has recipes for AWS Batch, Step Functions, Kubernetes, Slurm and GNU parallel.`),
    )

  completed(
    fleet
      .command('plan')
      .description('Cuts a scan of trials into shards that take about the same time.')
      .argument('<TRIALS...>', TRIALS, paths)
      .requiredOption(
        '--out <PLAN>',
        'where the plan is written, and what its shards give: a directory, or s3://bucket/prefix',
        pathText,
      )
      .option('--shards <N>', 'how many shards, at most: a step is not cut', wholeNumberArgument)
      .option('--shard-bytes <BYTES>', 'about how many bytes of records a shard has', wholeNumberArgument)
      .addOption(TENSOR)
      .addOption(COLLECTION)
      .addOption(STEPS)
      .addOption(MODE)
      .addOption(WORKER)
      .option('--reductions <LIST>', 'as of scan (default: all)', reductionList)
      .addOption(CHECK_LEVEL)
      .option('--check', 'rules in place of a scan: all that the saved data allow')
      .option('--rule <NAME[,k=v…]>', 'a rule, as of check; repeatable', ruleTexts)
      .option('--rules <FILE>', 'rules from a JSON file, as of check', pathText)
      .addOption(
        new Option('--format <FORMAT>', 'of the table, and of the shards (default: parquet)').choices([
          'parquet',
          'csv',
          'jsonl',
        ]),
      )
      .option('--estimate', 'also say how long it takes')
      .option('--cores <N>', 'with --estimate: of all machines together', wholeNumberArgument)
      .option('--net <GB/S>', 'with --estimate: how fast bytes come, to all machines together', rate),
    [FAIL_FAST],
    `Examples:
  $ trialscan fleet plan ./runs --out ./plan --shards 8
  $ trialscan fleet plan 's3://my-bucket/runs/*' --out s3://my-bucket/plans/one --shard-bytes 50000000000 --reductions mean,abs_max
  $ trialscan fleet plan ./runs --out ./plan --shards 8 --check
  $ trialscan fleet plan ./runs --out ./plan --shards 64 --estimate --cores 32 --net 2.5

Writes PLAN/plan.json: trials, steps, and what is scanned of them. Only index files are read. The same trials and options give the same
plan, byte for byte. The directory may be one that has it already. With --check, --rule or --rules shards judge whole trials, and the table has the
lines of check --format jsonl.`,
  ).action((trials: string[], options) =>
    run('fleet plan', async signal => (await import('../commands/fleet.js')).fleetPlan(trials, options, signal)),
  )

  completed(
    fleet
      .command('run')
      .description('Scans a shard of a plan, unless it is done.')
      .argument('<PLAN>', PLAN, pathText)
      .option(
        '--shard <N>',
        'its number, from 0 (default: that of the array job that this process is a part of)',
        wholeNumberArgument,
      )
      .option('--all', 'all shards that are not done, one after the other'),
    [THREADS, MEMORY],
    `Examples:
  $ trialscan fleet run ./plan --shard 0
  $ trialscan fleet run s3://my-bucket/plans/one      # in an array job of AWS Batch, Kubernetes or Slurm
  $ seq 0 63 | parallel -j 2 trialscan fleet run ./plan --shard {}

Without --shard the number is that of AWS_BATCH_JOB_ARRAY_INDEX, JOB_COMPLETION_INDEX (Kubernetes) or SLURM_ARRAY_TASK_ID.
A shard can be run any number of times, at once, too: its table appears when it is whole, under a name that tells the plan, the shard
and the version, and stays. Rows that can't be read are rows with an error, as in every scan: the exit code is 0, and fleet merge tells of them.
Trials have to be as they were when the plan was made.`,
  ).action((plan: string, options) =>
    run(
      'fleet run',
      async signal => (await import('../commands/fleet.js')).fleetRun(plan, options, signal),
      RUN_GRACE_MS,
    ),
  )

  completed(
    fleet
      .command('merge')
      .description('The tables of all shards as one.')
      .argument('<PLAN>', PLAN, pathText)
      .requiredOption('--out <FILE>', 'the table, which appears when it is whole; - is standard output', pathText),
    [],
    `Examples:
  $ trialscan fleet merge ./plan --out all.parquet
  $ trialscan fleet merge s3://my-bucket/plans/one --out - | gzip > all.csv.gz

Each shard has to be there; otherwise those that are missing are named, with the reasons why they failed, and nothing is written (exit code
5). Rows come in the order of the trials and steps, as in a single scan. The exit code is 4 if some rows could not be read.`,
  ).action((plan: string, options) =>
    run('fleet merge', async signal => (await import('../commands/fleet.js')).fleetMerge(plan, options, signal)),
  )

  completed(
    fleet
      .command('submit')
      .description('Puts the shards of a plan that are not done into a queue, for trialscan fleet work.')
      .argument('<PLAN>', PLAN, pathText)
      .addOption(redisOption())
      .addOption(queueOption())
      .option('--attempts <N>', 'how often a shard is tried (default: 5)', wholeNumberArgument),
    [],
    `Examples:
  $ trialscan fleet submit s3://my-bucket/plans/one --redis redis://queue.example.com:6379
  $ trialscan fleet submit /shared/plan --redis rediss://:password@queue.example.com:6380/1 --attempts 3

Shards that are in the queue already stay there once; those that were given up are tried again. A job carries the place of the plan and
a number, so the plan has to be where all workers can read it. Needs the packages bullmq and ioredis.`,
  ).action((plan: string, options) =>
    run('fleet submit', async () => (await import('../fleet/work.js')).fleetSubmit(plan, options)),
  )

  completed(
    fleet
      .command('work')
      .description('Takes shards from a queue and scans them, until it is stopped.')
      .addOption(redisOption())
      .addOption(queueOption())
      .option('--concurrency <N>', 'shards at once (default: 1)', wholeNumberArgument)
      .option('--drain', 'end when nothing is left in the queue'),
    [THREADS, MEMORY],
    `Examples:
  $ trialscan fleet work --redis redis://queue.example.com:6379
  $ trialscan fleet work --redis redis://localhost --concurrency 2 --threads 1 --drain

A shard whose worker is gone is given to another after half a minute. One that fails is tried again later, up to five times; one of a trial that
has changed is not. On SIGTERM a worker gives back what it has begun and ends. Needs the packages bullmq and ioredis.`,
  ).action(options =>
    run('fleet work', async signal => (await import('../fleet/work.js')).fleetWork(options, signal), RUN_GRACE_MS),
  )

  completed(
    fleet.command('status').description('How far a plan has come.').argument('<PLAN>', PLAN, pathText),
    [formatOption('fleet status'), OUT],
    `Examples:
  $ trialscan fleet status ./plan
  $ trialscan fleet status ./plan --format jsonl | jq 'select(.state == "failed")'

jsonl, csv: a line for each shard with shard, state (done, failed or waiting), rows, bytes (of records), trials (how many), seconds, failed_rows,
table_bytes, failures (how often it has failed), message. json: one object with shards, done, rows, rows_done, bytes, bytes_done and waiting, failed (their numbers).`,
  ).action((plan: string, options) =>
    run('fleet status', async () => (await import('../commands/fleet.js')).printFleetStatus(plan, options)),
  )
}
