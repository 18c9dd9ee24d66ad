/** The commands between trials and TensorBoard: export and import. */

import { type Command, Option } from 'commander'
import { collect, pathText, reductionList } from './arguments.js'
import { completed, MEMORY, READING, type RunCommand, SELECTION, STEPS, TENSOR, THREADS, TRIAL } from './options.js'

/** The grace of export and import, in milliseconds: an interrupted export removes its files. */
const GRACE_MS = 60_000

const CHECK_LEVEL_OF_IMPORT = new Option(
  '--check-level <LEVEL>',
  'which checksums to verify: none, those of the lengths, or all (the default)',
).choices(['none', 'minimal', 'full'])

const RUN = new Option('--worker <RUN>', 'only that run, by its directory; repeatable').argParser(collect)

/** Adds the commands. */
export function addTensorBoardCommands(program: Command, run: RunCommand): void {
  completed(
    program
      .command('export')
      .description('Writes a trial as runs of TensorBoard: scalars and histograms.')
      .argument('<TRIAL>', TRIAL, pathText)
      .requiredOption(
        '--tensorboard <DIR>',
        'the log directory to write to, outside of the trial; or s3://bucket/prefix',
        pathText,
      )
      .option(
        '--reductions <LIST>',
        'also these of each tensor as scalars over the steps, such as mean,l2,nan_count,p99 (as of scan); all is the eighteen',
        reductionList,
      )
      .option('--no-histograms', 'leave out histograms')
      .option('--images', 'tensors whose shapes are those of pictures are images, too'),
    [...SELECTION, ...READING],
    `Examples:
  $ trialscan export ./my-training --tensorboard ./logs/my-training && tensorboard --logdir ./logs
  $ trialscan export ./my-training --tensorboard ./logs --collection gradients --reductions abs_mean,abs_max
  $ trialscan export s3://my-bucket/my-training --tensorboard ./logs --collection losses --no-histograms

There is a run for each mode, DIR/TRAIN and so on, of a trial with several workers DIR/WORKER/TRAIN. Tensors of one element
are scalars, all others histograms of their finite elements, by the tensor's name; reductions are NAME/REDUCTION. Where the job
saved only reductions of a tensor, these are exported. Steps are global steps, and wall times those of the records.

The runs appear when the whole trial has been read; one that is there is never replaced. What can't be read is named on
standard error, and the exit code is 4; everything else is written. docs/tensorboard.md has the whole of it.`,
  ).action((trial: string, options) =>
    run('export', async signal => (await import('../commands/export.js')).runExport(trial, options, signal), GRACE_MS),
  )

  completed(
    program
      .command('import')
      .description('Writes runs of TensorBoard as a trial with an index.')
      .argument('<RUNS>', 'a log directory, or a run in it; or s3://bucket/prefix', pathText)
      .requiredOption('--out <TRIAL>', 'where to write: a directory, or s3://bucket/prefix', pathText)
      .option(
        '--checksums',
        "give every record the true checksum of its payload; smdebug's own reader can't read them",
      ),
    [TENSOR, STEPS, RUN, CHECK_LEVEL_OF_IMPORT, THREADS, MEMORY],
    `Examples:
  $ trialscan import ./logs/my-training --out ./my-training && trialscan check ./my-training
  $ trialscan import ./logs --out ./all --worker train --tensor loss

Each run is a worker, by the name of its directory. Runs that are called WORKER/TRAIN, WORKER/EVAL and so on, as export writes
them, are the modes of one worker. Numbers are tensors of one element. Of a histogram the reductions of its numbers are saved,
by its name, and its buckets as NAME/histogram: rows of left edge, right edge and count. Images and audio are left out.

What can't be read is named on standard error, and the exit code is 4; everything else is written. docs/tensorboard.md has the
whole of it.`,
  ).action((runs: string, options) =>
    run('import', async signal => (await import('../commands/import.js')).runImport(runs, options, signal), GRACE_MS),
  )
}
