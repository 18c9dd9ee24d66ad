/** The commands for many machines: fleet plan, run, merge, submit, work and status. */

import { helpText } from '../help-text.js'
import { type CommandDefinition, PLACES, TRIALS } from './options.js'

const PLAN = 'the directory of a plan, or s3://bucket/prefix'

/** The grace of a shard, in milliseconds: a stopped machine records what it has not done. */
const RUN_GRACE_MS = 20_000

export const FLEET_COMMANDS: readonly CommandDefinition[] = [
  {
    name: 'fleet',
    description: 'A scan of many trials on many machines: plan, run each shard anywhere, merge.',
    help: helpText(`
Examples:
  $ trialscan fleet plan 's3://my-bucket/runs/*' --out s3://my-bucket/plans/one --shards 64
  $ trialscan fleet run s3://my-bucket/plans/one --shard 7  # of 0 to 63
  $ trialscan fleet merge s3://my-bucket/plans/one --out all.parquet

docs/fleet.md has recipes for AWS Batch, Step Functions, Kubernetes, Slurm and GNU parallel.`),
  },
  {
    name: 'fleet plan',
    description: 'Cuts a scan of trials into shards that take about the same time.',
    arguments: { '<TRIALS...>': TRIALS },
    options: `
      !--out <PLAN>          where the plan is written, and what its shards give: a directory, or s3://bucket/prefix
      --shards <N>          how many shards, at most: a step is not cut
      --shard-bytes <BYTES>  about how many bytes of records a shard has
      --tensor --collection --steps --mode --worker
      --reductions <LIST>   as of scan (default: all)
      --check-level
      --check               rules in place of a scan: all that the saved data allow
      *--rule <NAME[,k=v…]>  a rule, as of check; repeatable
      --rules <FILE>        rules from a JSON file, as of check
      --format <FORMAT>     of the table, and of the shards (default: parquet)
      --estimate            also say how long it takes
      --cores <N>           with --estimate: of all machines together
      --net <GB/S>          with --estimate: how fast bytes come, to all machines together
      --fail-fast ${PLACES}`,
    special: {
      '--format': option => option.choices(['parquet', 'csv', 'jsonl']),
    },
    help: `Examples:
  $ trialscan fleet plan ./runs --out ./plan --shards 8
  $ trialscan fleet plan 's3://my-bucket/runs/*' --out s3://my-bucket/plans/one --shard-bytes 50000000000 --reductions mean,abs_max
  $ trialscan fleet plan ./runs --out ./plan --shards 8 --check
  $ trialscan fleet plan ./runs --out ./plan --shards 64 --estimate --cores 32 --net 2.5

Writes PLAN/plan.json: trials, steps, and what is scanned of them. Only index files are read. The same trials and options give the same
plan, byte for byte. The directory may be one that has it already. With --check, --rule or --rules shards judge whole trials, and the table has the
lines of check --format jsonl.`,
    load: async () => (await import('../commands/fleet.js')).fleetPlan,
  },
  {
    name: 'fleet run',
    description: 'Scans a shard of a plan, unless it is done.',
    arguments: { '<PLAN>': PLAN },
    options: `
      --shard <N>           its number, from 0 (default: that of the array job that this process is a part of)
      --all                 all shards that are not done, one after the other
      --threads --memory`,
    help: `Examples:
  $ trialscan fleet run ./plan --shard 0
  $ trialscan fleet run s3://my-bucket/plans/one      # in an array job of AWS Batch, Kubernetes or Slurm
  $ seq 0 63 | parallel -j 2 trialscan fleet run ./plan --shard {}

Without --shard the number is that of AWS_BATCH_JOB_ARRAY_INDEX, JOB_COMPLETION_INDEX (Kubernetes) or SLURM_ARRAY_TASK_ID.
A shard can be run any number of times, at once, too: its table appears when it is whole, under a name that tells the plan, the shard
and the version, and stays. Rows that can't be read are rows with an error, as in every scan: the exit code is 0, and fleet merge tells of them.
Trials have to be as they were when the plan was made.`,
    graceMs: RUN_GRACE_MS,
    load: async () => (await import('../commands/fleet.js')).fleetRun,
  },
  {
    name: 'fleet merge',
    description: 'The tables of all shards as one.',
    arguments: { '<PLAN>': PLAN },
    options: `
      !--out <FILE>          the table, which appears when it is whole; - is standard output`,
    help: `Examples:
  $ trialscan fleet merge ./plan --out all.parquet
  $ trialscan fleet merge s3://my-bucket/plans/one --out - | gzip > all.csv.gz

Each shard has to be there; otherwise those that are missing are named, with the reasons why they failed, and nothing is written (exit code
5). Rows come in the order of the trials and steps, as in a single scan. The exit code is 4 if some rows could not be read.`,
    load: async () => (await import('../commands/fleet.js')).fleetMerge,
  },
  {
    name: 'fleet submit',
    description: 'Puts the shards of a plan that are not done into a queue, for trialscan fleet work.',
    arguments: { '<PLAN>': PLAN },
    options: `
      --redis --queue
      --attempts <N>        how often a shard is tried (default: 5)`,
    help: `Examples:
  $ trialscan fleet submit s3://my-bucket/plans/one --redis redis://queue.example.com:6379
  $ trialscan fleet submit /shared/plan --redis rediss://:password@queue.example.com:6380/1 --attempts 3

Shards that are in the queue already stay there once; those that were given up are tried again. A job carries the place of the plan and
a number, so the plan has to be where all workers can read it. Needs the packages bullmq and ioredis.`,
    load: async () => (await import('../fleet/work.js')).fleetSubmit,
  },
  {
    name: 'fleet work',
    description: 'Takes shards from a queue and scans them, until it is stopped.',
    options: `
      --redis --queue
      --concurrency <N>     shards at once (default: 1)
      --drain               end when nothing is left in the queue
      --threads --memory`,
    help: `Examples:
  $ trialscan fleet work --redis redis://queue.example.com:6379
  $ trialscan fleet work --redis redis://localhost --concurrency 2 --threads 1 --drain

A shard whose worker is gone is given to another after half a minute. One that fails is tried again later, up to five times; one of a trial that
has changed is not. On SIGTERM a worker gives back what it has begun and ends. Needs the packages bullmq and ioredis.`,
    graceMs: RUN_GRACE_MS,
    load: async () => (await import('../fleet/work.js')).fleetWork,
  },
  {
    name: 'fleet status',
    description: 'How far a plan has come.',
    arguments: { '<PLAN>': PLAN },
    options: `
      --format --out`,
    help: `Examples:
  $ trialscan fleet status ./plan
  $ trialscan fleet status ./plan --format jsonl | jq 'select(.state == "failed")'

jsonl, csv: a line for each shard with shard, state (done, failed or waiting), rows, bytes (of records), trials (how many), seconds, failed_rows,
table_bytes, failures (how often it has failed), message. json: one object with shards, done, rows, rows_done, bytes, bytes_done and waiting, failed (their numbers).`,
    load: async () => (await import('../commands/fleet.js')).printFleetStatus,
  },
]
