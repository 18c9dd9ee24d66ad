/** The commands for people: summary, report and serve. */

import { type Command, Option } from 'commander'
import { collect, paths, pathText, wholeNumberArgument } from './arguments.js'
import {
  completed,
  FAIL_FAST,
  formatOption,
  MEMORY,
  OUT,
  READING,
  type RunCommand,
  SELECTION,
  THREADS,
  TRIALS,
} from './options.js'

/** Adds the commands. */
export function addViewCommands(program: Command, run: RunCommand): void {
  completed(
    program
      .command('summary')
      .description('A training at a glance: its losses, gradients, weights and updates, and what the rules say.')
      .argument('<TRIALS...>', TRIALS, paths)
      .option('--follow', 'show it again as the job completes steps, until it ends')
      .option('--all', `all lines of each section, however many layers there are`),
    [...SELECTION, ...READING, FAIL_FAST, formatOption('summary'), OUT],
    `Examples:
  $ trialscan summary ./my-training
  $ trialscan summary ./my-training --follow
  $ trialscan summary ./my-training --mode TRAIN --steps -100:

As wide as the terminal (COLUMNS elsewhere), and 80 columns at least. Each block of a line is one step, or, of more steps than fit,
the mean of several. Gradients, weights and updates each share one logarithmic scale, so that layers can be compared.`,
  ).action((trials: string[], options) =>
    run('summary', async signal => (await import('../commands/summary.js')).summary(trials, options, signal)),
  )
  completed(
    program
      .command('report')
      .description('A page about a training, or about two that are compared: one file that opens in any browser.')
      .argument('<TRIALS...>', 'one trial or two: directories, or s3://bucket/prefix', paths)
      .addOption(new Option('-o, --out <FILE>', 'the page').default('report.html', 'report.html'))
      .option('--title <TEXT>', 'the title of the page (default: the names of the trials)')
      .addOption(
        new Option(
          '--map <FILE>',
          'of two trials: JSON that says which tensor of the first is which of the second',
        ).argParser(pathText),
      )
      .option(
        '--embed <NAME>',
        'a tensor whose first axis is that of samples, shown as points of a plane; a part of its name will do',
      )
      .option('--labels <NAME>', 'what colours these points (default: labels by their usual names)')
      .option('--images <NAME>', 'what the model was given, as images beside the points (default: its input)')
      .option('--reconstructions <NAME>', 'what it made of that (default: its output, if that has the same shape)')
      .option('--perplexity <N>', 'of t-SNE: about how many neighbours a point has (default: 30)', wholeNumberArgument)
      .option('--iterations <N>', 'of t-SNE (default: 350) and UMAP', wholeNumberArgument),
    [...SELECTION, ...READING],
    `Examples:
  $ trialscan report ./my-training
  $ trialscan report ./run-1 ./run-2 --out compared.html
  $ trialscan report ./autoencoder --embed bottleneck_output
  $ trialscan report s3://my-bucket/my-training --collection gradients --steps 0:1000:10

The page has what trialscan check finds, with its causes; losses and metrics by mode; a heat map of layers × steps for every
reduction; of each tensor its reductions, its distribution over the steps and, of small ones, its elements; how labels were
predicted; and what XGBoost's trees have learned. Of two trials, all of it side by side on one scale, and the largest differences first. It needs no network, and holds at most about 5 MB: of very many tensors and
steps, numbers are rounded to three digits, and of most reductions every few steps are kept.

A map holds names or patterns of whole names, each with the name in the second trial: { "module\\.(.*)": "$1" }.

docs/report.md explains the views.`,
  ).action((trials: string[], options) =>
    run('report', async signal => (await import('../commands/report.js')).report(trials, options, signal)),
  )
  completed(
    program
      .command('serve')
      .description('Pages about trainings over HTTP, live while they run, and an API for other programs.')
      .argument('[TRIALS...]', `${TRIALS}; without one, the app, a page that opens them in the browser`, paths)
      .addOption(
        new Option('--port <N>', 'where to listen; 0: any that is free (default: 7070)').argParser(wholeNumberArgument),
      )
      .option('--host <ADDRESS>', 'which address to listen at (default: 127.0.0.1, which only this machine reaches)')
      .addOption(
        new Option('--token <TEXT>', 'what clients must show, 16 characters or more; required for other addresses').env(
          'TRIALSCAN_TOKEN',
        ),
      )
      .option('--cors <ORIGIN>', 'an origin whose pages may read the answers; repeatable', collect)
      .option('--no-rules', 'without rules, which read all of each trial that is looked at')
      .addOption(
        new Option('--max-work <N>', 'scans and reads at once; more wait (default: 4)').argParser(wholeNumberArgument),
      ),
    [THREADS, MEMORY],
    `Examples:
  $ trialscan serve ./my-training
  $ trialscan serve
  $ trialscan serve './runs/*' --port 8080
  $ trialscan serve s3://my-bucket/my-training --host 0.0.0.0 --token "$(openssl rand -hex 16)"
  $ curl 'http://127.0.0.1:7070/api/trials/my-training/scan?reductions=mean,abs_max&format=csv'

Without trials, a page at /app/ opens those that one picks or drops, on this machine or behind a URL.
A trial is opened when somebody looks at it, and only what is looked at is read. /api/openapi.json describes the API. Ctrl-C ends it.

docs/serve.md has more, with Python.`,
  ).action((trials: string[], options) =>
    run('serve', async signal => (await import('../commands/serve.js')).serve(trials, options, signal)),
  )
}
