/** The commands for other programs: sql and dump. */

import { queryMemory } from './arguments.js'
import { type CommandDefinition, PLACES, READING, SELECTION, TRIAL } from './options.js'

export const TABLE_COMMANDS: readonly CommandDefinition[] = [
  {
    name: 'sql',
    description: 'A query in SQL over trials, or over tables that scan has written. Needs DuckDB.',
    usage: '[options] <TRIAL|TABLE>... <QUERY>',
    arguments: {
      '<ARGUMENTS...>': 'trials, or tables (.parquet, .csv, .jsonl, or a directory of them); then the query',
    },
    options: `
      --check-level --threads
      --memory <MIB>        how many MiB the query may take (default: 1024)
      --timeout <SECONDS>   how long the query may take (default: 600)
      --allow-files         let the query read and write files of this machine
      --fail-fast --format --out ${PLACES}`,
    special: {
      '--memory': option => option.argParser(queryMemory),
    },
    help: `Examples:
  $ trialscan sql ./my-training "select count(*) from scan where abs_mean < 1e-7"
  $ trialscan sql ./run-1 ./run-2 "select trial, step, mean from scan order by all"
  $ trialscan scan ./my-training --out all.parquet && trialscan sql all.parquet "select tensor, max(abs_max) from scan group by all"

DuckDB has to be installed beside trialscan: npm install @duckdb/node-api.

Tables, each with a column trial:
  scan         a row for each tensor, step and worker: the columns of scan --format parquet. A trial is scanned for the
               reductions that the query names: write "p99.9" and other names with a dot in double quotes
  tensors      tensor, dtype, shape, last_shape, steps (how many), first_step, last_step, bytes, saved_reductions
  steps        step, worker, mode, mode_step, complete
  workers      worker, has_data
  collections  collection, tensor
  findings     what check finds: finding (its number), rule, name, step, mode, mode_step, tensor, worker, value, threshold,
               message, cause (the number of the finding that it follows from)
Of a table in a file there is scan alone. The language is DuckDB's.

A query reaches no other files, writes none, loads no extensions and makes no connection. --allow-files gives it the files.

jsonl: an object for each row; NaN and infinities are texts, whole numbers have all their digits. Ten queries that people
need, and the columns: docs/tables.md.`,
    load: async () => (await import('../commands/sql.js')).sql,
  },
  {
    name: 'dump',
    description: 'The values of tensors, for numpy: one .npz of all, or a directory with a .npy for each.',
    arguments: { '<TRIAL>': TRIAL },
    options: `
      !--out <PLACE>         a file .npz, or a directory
      ${SELECTION} ${READING} ${PLACES}`,
    help: `Examples:
  $ trialscan dump ./my-training --tensor 'weight$' --steps last --out weights.npz
  $ python3 -c 'import numpy; print(numpy.load("weights.npz")["100/fc.weight"].shape)'
  $ trialscan dump ./my-training --collection losses --out losses/

.npz: an array for each value, named step/tensor, where the trial has several workers worker/step/tensor. A directory, new or
empty: files of the same names, percent-encoded, and index.jsonl, which comes last: an object for each with file, tensor, step, mode, mode_step,
worker, dtype, shape. bfloat16, which numpy does not have, becomes float32 (nothing is lost), narrower floats their bits as uint8,
strings become unicode strings.

Whatever their size, a few values are in memory at once. What can't be read is named on standard error, and the exit code is 4;
everything else is written.`,
    load: async () => (await import('../commands/dump.js')).dump,
  },
]
