/** The commands whose answers people look at: report. */

import { type Command, Option } from 'commander'
import { paths } from './arguments.js'
import {
  CHECK_LEVEL,
  COLLECTION,
  completed,
  MEMORY,
  MODE,
  MODE_STEPS,
  type RunCommand,
  STEPS,
  STEPS_HELP,
  TENSOR,
  THREADS,
  WORKER,
} from './options.js'

/** Adds them to the command line. */
export function addViewCommands(program: Command, run: RunCommand): void {
  completed(
    program
      .command('report')
      .description('A page about a training, or about two that are compared: one file that opens in any browser.')
      .argument('<TRIALS...>', 'one trial or two: directories, or s3://bucket/prefix', paths)
      .addOption(new Option('-o, --out <FILE>', 'the page (default: report.html)').default('report.html'))
      .option('--title <TEXT>', 'the title of the page (default: the names of the trials)')
      .addOption(TENSOR)
      .addOption(COLLECTION)
      .addOption(STEPS)
      .addOption(MODE_STEPS)
      .addOption(MODE)
      .addOption(WORKER)
      .addOption(CHECK_LEVEL)
      .addOption(THREADS)
      .addOption(MEMORY),
    `Examples:
  $ trialscan report ./my-training
  $ trialscan report ./run-1 ./run-2 --out compared.html
  $ trialscan report s3://my-bucket/my-training --collection gradients --steps 0:1000:10

The page has what trialscan check finds, with its causes; losses and metrics by mode; a heat map of layers × steps for every
reduction; and of each tensor its reductions and its distribution over the steps. Of two trials, all of it side by side
on one scale, and the largest differences first. It needs no network, and holds at most about 5 MB: of very many tensors and
steps, numbers are rounded to three digits, and of most reductions every few steps are kept.
${STEPS_HELP}

docs/report.md explains the views.`,
  ).action((trials: string[], options) =>
    run('report', async signal => (await import('../commands/report.js')).report(trials, options, signal)),
  )
}
