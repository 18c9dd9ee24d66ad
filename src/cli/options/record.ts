/** The commands for trials that programs in other languages write: record and python. */

import { type Command, Option } from 'commander'
import { EXIT_HELP } from '../exit.js'
import { pathText, queryMemory, wholeNumberArgument } from './arguments.js'
import { completed, type RunCommand } from './options.js'

/** The grace of record, in milliseconds: after a signal, earlier steps are still written. */
const GRACE_MS = 60_000

/** Adds the command that saves its input. */
export function addRecordCommand(program: Command, run: RunCommand): void {
  completed(
    program
      .command('record')
      .description('Saves tensors from standard input as a trial, for programs in any language.')
      .requiredOption('--out <TRIAL>', 'where to write: a directory, or s3://bucket/prefix', pathText)
      .option('--config <FILE>', "what to save, as JSON of SageMaker's hook (default: everything that comes)", pathText)
      .addOption(
        new Option('--framework <NAME>', 'which names the collections of --config go by (default: pytorch)').choices([
          'pytorch',
          'tensorflow',
          'mxnet',
          'xgboost',
          'tfjs',
        ]),
      )
      .option('--worker <NAME>', 'whose tensors these are (default: worker_0)')
      .option('--num-workers <N>', 'how many workers write to this trial (default: 1)', wholeNumberArgument)
      .option('--files <DIR>', 'where files with relative paths lie (default: the working directory)', pathText)
      .option('--memory <MIB>', 'how many MiB a line, an array and what waits may take (default: 2048)', queryMemory)
      .option('--checksums', "give every record the true checksum of its payload; smdebug's own reader can't read them")
      .addOption(
        new Option('--fsync <WHEN>', 'bring files to the disk, after each step or at the end').choices(['step', 'end']),
      )
      .option('--fail-fast', 'end at the first tensor that is wrong; otherwise it is left out'),
    [],
    `Examples:
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
  ).action(options =>
    run('record', async signal => (await import('../commands/record.js')).record(options, signal), GRACE_MS),
  )
}

/** Adds the command that prints trialscan.py. */
export function addPythonCommand(program: Command, run: RunCommand): void {
  program
    .command('python')
    .description('Prints trialscan.py, which saves trainings in PyTorch and reads trials from Python.')
    .addHelpText(
      'after',
      `
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
    )
    .action(() => run('python', async () => (await import('../commands/python.js')).python()))
}
