/** The commands between trials and other programs: record, python, export and import. */

import { EXIT_HELP } from '../exit.js'
import { queryMemory } from './arguments.js'
import { type CommandDefinition, PLACES, READING, SELECTION, TRIAL } from './options.js'

/** The grace, in milliseconds: after a signal, record still writes earlier steps, and export removes its files. */
const GRACE_MS = 60_000

export const EXCHANGE_COMMANDS: readonly CommandDefinition[] = [
  {
    name: 'record',
    description: 'Saves tensors from standard input as a trial, for programs in any language.',
    options: `
      !--out <TRIAL>         where to write: a directory, or s3://bucket/prefix
      --config <FILE>       what to save, as JSON of SageMaker's hook (default: everything that comes)
      --framework <NAME>    which names the collections of --config go by (default: pytorch)
      --worker <NAME>       whose tensors these are (default: worker_0)
      --num-workers <N>     how many workers write to this trial (default: 1)
      --files <DIR>         where files with relative paths lie (default: the working directory)
      --memory <MIB>        how many MiB a line, an array and what waits may take (default: 2048)
      --checksums
      --fsync <WHEN>        bring files to the disk, after each step or at the end
      --fail-fast           end at the first tensor that is wrong; otherwise it is left out`,
    special: {
      '--framework': option => option.choices(['pytorch', 'tensorflow', 'mxnet', 'xgboost', 'tfjs']),
      '--memory': option => option.argParser(queryMemory),
      '--fsync': option => option.choices(['step', 'end']),
    },
    help: `Examples:
  $ python3 train.py | trialscan record --out ./my-training
  $ seq 0 99 | jq -c '{step: ., name: "loss", value: (1 / (. + 1))}' | trialscan record --out ./my-training
  $ trialscan record --out s3://my-bucket/run-7 --config debughookconfig.json < tensors.jsonl

Each line of the input is a JSON object. A line begins a step, has a tensor, or both:
  {"step": 0, "mode": "TRAIN"}
  {"name": "loss", "value": 0.25}
  {"name": "fc.bias", "value": [0.5, NaN], "collection": "biases"}
  {"step": 1, "tensors": {"loss": 0.125, "fc.weight": {"file": "weight.npy"}}}
  {"file": "step-1.npz"}                       every array in it; so do .safetensors, and "prefix" leads the names
  {"name": "x", "dtype": "float32", "shape": [2, 3], "base64": "…"}
  {"name": "x", "dtype": "float32", "shape": [2, 3], "bytes": 24}; 24 bytes follow
  {"bytes": 1234}                              a file follows: .npy (with a name), .npz or .safetensors

A step is written when the next one begins, or the input ends. A tensor that is wrong is left out and told, with the
number of its line. After Ctrl-C the trial ends with the last whole step. docs/record.md has the whole of it.

Exit code 0: everything was saved. 4: something was left out; the trial is there all the same.`,
    graceMs: GRACE_MS,
    load: async () => (await import('../commands/record.js')).record,
  },
  {
    name: 'python',
    description: 'Prints trialscan.py, which saves trainings in PyTorch and reads trials from Python.',
    help: `
Examples:
  $ trialscan python > trialscan.py

It is one file, to lie beside your program:
  from trialscan import capture
  with capture(model, "run", every=100) as c:
      for x, y in data:
          …
          c.step(loss=loss)

  import trialscan
  trialscan.check("run")        findings of rules, as a DataFrame of pandas

docs/pytorch.md and docs/python.md have the rest.
${EXIT_HELP}`,
    load: async () => (await import('../commands/python.js')).python,
  },
  {
    name: 'export',
    description: 'Writes a trial as runs of TensorBoard: scalars and histograms.',
    arguments: { '<TRIAL>': TRIAL },
    options: `
      !--tensorboard <DIR>   the log directory to write to, outside of the trial; or s3://bucket/prefix
      --reductions <LIST>   also these of each tensor as scalars over the steps, such as mean,l2,nan_count,p99 (as of scan); all is the eighteen
      --no-histograms       leave out histograms
      --images              tensors whose shapes are those of pictures are images, too
      ${SELECTION} ${READING} ${PLACES}`,
    help: `Examples:
  $ trialscan export ./my-training --tensorboard ./logs/my-training && tensorboard --logdir ./logs
  $ trialscan export ./my-training --tensorboard ./logs --collection gradients --reductions abs_mean,abs_max
  $ trialscan export s3://my-bucket/my-training --tensorboard ./logs --collection losses --no-histograms

There is a run for each mode, DIR/TRAIN and so on, of a trial with several workers DIR/WORKER/TRAIN. Tensors of one element
are scalars, all others histograms of their finite elements, by the tensor's name; reductions are NAME/REDUCTION. Where the job
saved only reductions of a tensor, these are exported. Steps are global steps, and wall times those of the records.

The runs appear when the whole trial has been read; one that is there is never replaced. What can't be read is named on
standard error, and the exit code is 4; everything else is written. docs/tensorboard.md has the whole of it.`,
    graceMs: GRACE_MS,
    load: async () => (await import('../commands/export.js')).runExport,
  },
  {
    name: 'import',
    description: 'Writes runs of TensorBoard as a trial with an index.',
    arguments: { '<RUNS>': 'a log directory, or a run in it; or s3://bucket/prefix' },
    options: `
      !--out <TRIAL>         where to write: a directory, or s3://bucket/prefix
      --checksums --tensor --steps
      *--worker <RUN>        only that run, by its directory; repeatable
      --check-level <LEVEL>  which checksums to verify: none, those of the lengths, or all (the default)
      --threads --memory ${PLACES}`,
    special: {
      '--check-level': option => option.choices(['none', 'minimal', 'full']),
    },
    help: `Examples:
  $ trialscan import ./logs/my-training --out ./my-training && trialscan check ./my-training
  $ trialscan import ./logs --out ./all --worker train --tensor loss

Each run is a worker, by the name of its directory. Runs that are called WORKER/TRAIN, WORKER/EVAL and so on, as export writes
them, are the modes of one worker. Numbers are tensors of one element. Of a histogram the reductions of its numbers are saved,
by its name, and its buckets as NAME/histogram: rows of left edge, right edge and count. Images and audio are left out.

What can't be read is named on standard error, and the exit code is 4; everything else is written. docs/tensorboard.md has the
whole of it.`,
    graceMs: GRACE_MS,
    load: async () => (await import('../commands/import.js')).runImport,
  },
]
