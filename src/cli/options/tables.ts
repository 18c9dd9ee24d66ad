/** The commands that answer with tables: sql. */

import { type Command, Option } from 'commander'
import { completed, formatOption, OUT, type RunCommand, THREADS } from './options.js'

/** Adds them to the command line. */
export function addTableCommands(program: Command, run: RunCommand): void {
  completed(
    program
      .command('sql')
      .description('A query in SQL over trials, or over tables that scan has written. Needs DuckDB.')
      .usage('[options] <TRIAL|TABLE>... <QUERY>')
      .argument('<ARGUMENTS...>', 'trials, or tables (.parquet, .csv, .jsonl, or a directory of them); then the query')
      .addOption(
        new Option(
          '--check-level <LEVEL>',
          'which checksums a scan verifies: none, minimal (the default), or full',
        ).choices(['none', 'minimal', 'full']),
      )
      .addOption(THREADS)
      .option('--fail-fast', "end at the first trial that can't be opened")
      .addOption(formatOption('sql'))
      .addOption(OUT),
    `Examples:
  $ npm install @duckdb/node-api
  $ trialscan sql ./my-training "select count(*) from scan where tensor like 'gradient/%' and abs_mean < 1e-7"
  $ trialscan sql ./run-1 ./run-2 "select trial, step, mean from scan where tensor = 'loss' order by all"
  $ trialscan scan ./my-training --out all.parquet && trialscan sql all.parquet "select tensor, max(abs_max) from scan group by all"

Tables, each with a column trial:
  scan         a row for each tensor, step and worker: the columns of scan --format parquet. A trial is scanned for the
               reductions that the query names: write "p99.9" and other names with a dot in double quotes
  tensors      tensor, dtype, shape, last_shape, steps (how many), bytes, saved_reductions
  steps        step, worker, mode, mode_step, complete
  workers      worker, has_data
  collections  collection, tensor
  findings     what check finds: finding (its number), rule, name, step, mode, mode_step, tensor, worker, value, threshold,
               message, cause (the number of the finding that it follows from)
Of a table in a file there is scan alone. The language is DuckDB's.

jsonl: an object for each row; NaN and infinities are texts, whole numbers have all their digits. Ten queries that people
need, and the columns: docs/tables.md.`,
  ).action((given: string[], options) =>
    run('sql', async signal => (await import('../commands/sql.js')).sql(given, options, signal)),
  )
}
