/** The commands that show what was saved: ls, scan, show and top. */

import { commaSeparated, oneStep } from './arguments.js'
import { type CommandDefinition, PLACES, READING, SELECTION, TRIAL, TRIALS } from './options.js'

/** The names of kinds of pictures, repeated from format/view/picture.ts, which is loaded only for a picture. */
const PICTURE_NAMES = ['auto', 'kitty', 'sixel', 'blocks', 'none']

export const TENSOR_COMMANDS: readonly CommandDefinition[] = [
  {
    name: 'ls',
    description: 'What a trial holds: its steps by mode, workers, collections and tensors.',
    arguments: { '<TRIALS...>': TRIALS },
    options: `
      --json                the same as --format json
      --files               the files below the place, with their lengths and when they were written
      --fail-fast --format --out ${PLACES}`,
    help: `Examples:
  $ trialscan ls ./my-training
  $ trialscan ls ./my-training --format json | jq '.tensors[] | select(.dtype == "float16").name'
  $ trialscan ls ./my-training --out tensors.csv
  $ trialscan ls 'runs/*'
  $ trialscan ls --files s3://my-bucket/my-training/debug-output

Global steps count on over all modes; mode steps are counted within each mode.

json: one object with all of it:
  name, path, complete (the job has ended), bytes
  steps        by mode: count, first, last, incomplete (not yet written by all workers), numbers, global_numbers;
               GLOBAL has all global steps; of a mode all but global_numbers are mode steps (more global than mode steps where
               workers are in different modes at one step)
  workers      names; workers_with_data those that have saved something
  collections  name, members, include_regex
  tensors      name, dtype, shape, last_shape, steps (how many), first_step, last_step, bytes, saved_reductions, error?
  problems     what could not be read: code, message, file, offset?
jsonl, csv: the tensors, one a line.
Of several trials: the table has a line for each, json one object with all of them in trials; jsonl and csv begin with trial.`,
    load: async () => (await import('../commands/ls.js')).ls,
  },
  {
    name: 'scan',
    description: 'Reductions (mean, max, …) of many tensors in one pass: a row for each tensor, step and worker.',
    arguments: { '<TRIALS...>': TRIALS },
    options: `
      ${SELECTION}
      --reductions <LIST>   all, or some of min, max, mean, std, variance, sum, prod, l1, l2, separated by commas; abs_ before a name: of the absolute values (default: all; in a table min,max,mean,std,l2). Also count, nan_count, inf_count, zero_count, percentiles (p50, p99.9) histogram (histogram:64, histogram:-1:0:1), and approximately sketch and ~p50; crc32c and sha256 of the elements
      --where ${READING}
      --resume              with --out DIR: go on where a scan into it has ended
      --fail-fast
      --stats               print what the scan cost on standard error
      --format --out ${PLACES}`,
    help: `Examples:
  $ trialscan scan ./my-training --tensor '^gradient/' --mode TRAIN --mode-steps -5:
  $ trialscan scan ./my-training --steps 100:200 --reductions mean,abs_max --out means.csv
  $ trialscan scan ./my-training --where 'nan_count > 0 and step < 1000'
  $ trialscan scan 'runs/*' s3://my-bucket/experiments --out all.parquet
  $ trialscan scan ./runs --out ./tables/ --resume
  $ trialscan scan ./my-training --collection losses | jq -r '[.step, .mean] | @tsv'

Rows come in the order of global steps, workers and tensors, as soon as they are there. The expressions of --where: see
trialscan top --help.

jsonl: one object a line with tensor, step (the global one), mode, mode_step, worker, dtype, shape, then the reductions
by name. NaN and infinities are the strings "NaN", "Infinity", "-Infinity"; min and max of 64-bit integers have all
their digits; mean and sum of complex numbers are {"re":…,"im":…}; a reduction that the dtype does not have is left out.
Reductions that the job itself saved come with "saved":true and dtype null. What can't be read
is a line with error: { code, message, file, offset }; tensor is null where it is the index file of a step.
csv: the same columns, then saved, error_code, error_message; shapes as 3x5 or scalar, complex numbers as 1.5+2j.
parquet, arrow: docs/tables.md.

Several trials: directories, patterns such as 'runs/*', and directories or prefixes in which trials lie. Rows then begin with trial.
A trial that can't be opened is told at the end. --out DIR/ writes DIR/trial=…/part-00000.parquet for each, and DIR/_SUCCESS
when all are there; --resume leaves out those that are there, of the same files and options.`,
    load: async () => (await import('../commands/scan.js')).runScan,
  },
  {
    name: 'show',
    description:
      'One tensor at one step: its values in short, statistics and a histogram. Without a tensor: what a file of torch or a pickle holds.',
    arguments: {
      '<TRIAL>': `${TRIAL}; without a tensor a file: .pt, .pth, .bin, .ckpt, .pkl, .metadata`,
      '[TENSOR]': 'the full name of the tensor; after -- if it begins with a dash',
    },
    options: `
      --step <N>            the global step; -1 or last: the last that has the tensor (the default)
      --mode-step <N>       the step of the mode in place of the global one; -1 or last: its last
      --mode <MODE>         the mode that --mode-step counts in: TRAIN, EVAL or PREDICT; alone: the last step of that mode
      --worker <NAME>       the worker (default: the first that has any data)
      --steps <STEPS>       at these steps, such as 0:100: a histogram a line in place of the values; with --out x.gif those that are drawn
      --picture <HOW>       the values as a heat map or images (default: auto on a terminal, else none)
      --npy <FILE>          also write the values to a .npy file for numpy
      --format --out ${PLACES}`,
    special: {
      '--step': option => option.argParser(oneStep),
      '--mode-step': option => option.argParser(oneStep),
      '--picture': option => option.choices(PICTURE_NAMES),
    },
    help: `Examples:
  $ trialscan show ./my-training fc.weight
  $ trialscan show ./my-training CrossEntropyLoss_output_0 --mode EVAL --mode-step 3
  $ trialscan show ./my-training fc.weight --steps :
  $ trialscan show ./my-training relu_output --out relu.gif
  $ trialscan show ./checkpoint-500/optimizer.pt
  $ trialscan show ./my-training fc.weight --step 100 --out fc.npy && python3 -c 'import numpy; print(numpy.load("fc.npy").shape)'

A file is shown without being loaded: nothing in it is run, and names of what torch.load might be made to call are told.
Pictures are of the last two axes, of tensors of more axes the first images; kitty and sixel are protocols of terminals, which auto
finds by the environment. NaN and infinities are pink, or ! without colours.
json: one object as of scan --format jsonl, with all values as nested arrays in values (null where only reductions were saved).
jsonl, csv: an element a line: {"index":[0,2],"value":1.5}; index_0,index_1,value.
npy: a file for numpy. bfloat16, which numpy does not have, becomes float32 (nothing is lost), narrower floats their bits as uint8,
strings become unicode strings.
--out x.gif, --out x.html: histograms of the tensor, or of those that a pattern matches, one step after the other: an animation,
or a page to go through them.`,
    load: async () => (await import('../commands/show.js')).runShow,
  },
  {
    name: 'top',
    description: 'The rows of a scan that are largest or smallest by a number, or that an expression is true for.',
    arguments: { '<TRIALS...>': TRIALS },
    options: `
      --by <COLUMN>         rank by this number: any that scan --reductions takes, or step, mode_step, rank, size
      --desc                the largest first (the default)
      --asc                 the smallest first
      -n, --limit <N>       how many rows to print (default: 20)
      --where
      --columns <LIST>      what to print after tensor and step, separated by commas (default: mode, mode_step, worker, and what --by and --where name)
      ${SELECTION} ${READING} --fail-fast --format --out ${PLACES}`,
    special: {
      '--desc': option => option.conflicts('asc'),
      '--columns': option => option.argParser(commaSeparated),
    },
    help: `Examples:
  $ trialscan top ./my-training --by abs_max
  $ trialscan top ./my-training --by l2 --asc -n 5 --collection gradients --columns mode,mode_step,mean,std
  $ trialscan top ./my-training --where 'nan_count > 0 or inf_count > 0'
  $ trialscan top 'runs/*' --by abs_max -n 5
  $ trialscan top ./my-training --by p99.9 --where "tensor like 'gradient/%' and abs_max > 100 * abs_mean"

--by and --where can be given together; one of them must be. Without --by, the first rows that match are printed, in the order
of the scan. Equal rows keep that order. Rows of several trials are ranked together, and begin with trial. NaN counts as larger than Infinity: with --by it comes first, and with --asc last.

Expressions:
  columns      tensor, step, mode, mode_step, worker, dtype, shape (as 3x5), rank, size, saved, error_code,
               error_message, and every reduction that is one number: abs_mean, nan_count, p99.9, ~p50, …
  values       1, 1e-7, inf, nan, 'text' or "text", true, false
  operators    = == != <> < <= > >=, between a and b, in (a, b), like 'a%', is null, is nan, not, and, or, + - * /
A column that a row does not have is null, and a comparison with null is not true. No comparison with NaN is true but <>.

jsonl: an object a line with tensor, step and the columns, written as scan writes them; csv: the same with a header.
docs/cli.md has the details.`,
    load: async () => (await import('../commands/top.js')).runTop,
  },
]
