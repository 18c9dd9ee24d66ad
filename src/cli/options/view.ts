/** The commands for people: summary, report and serve. */

import { type CommandDefinition, PLACES, READING, SELECTION, TRIALS } from './options.js'

export const VIEW_COMMANDS: readonly CommandDefinition[] = [
  {
    name: 'summary',
    description: 'A training at a glance: its losses, gradients, weights and updates, and what the rules say.',
    arguments: { '<TRIALS...>': TRIALS },
    options: `
      --follow              show it again as the job completes steps, until it ends
      --all                 all lines of each section, however many layers there are
      ${SELECTION} ${READING} --fail-fast --format --out ${PLACES}`,
    help: `Examples:
  $ trialscan summary ./my-training
  $ trialscan summary ./my-training --follow
  $ trialscan summary ./my-training --mode TRAIN --steps -100:

As wide as the terminal (COLUMNS elsewhere), and 80 columns at least. Each block of a line is one step, or, of more steps than fit,
the mean of several. Gradients, weights and updates each share one logarithmic scale, so that layers can be compared.`,
    load: async () => (await import('../commands/summary.js')).summary,
  },
  {
    name: 'report',
    description: 'A page about a training, or about two that are compared: one file that opens in any browser.',
    arguments: { '<TRIALS...>': 'one trial or two: directories, or s3://bucket/prefix' },
    options: `
      -o, --out <FILE>      the page
      --title <TEXT>        the title of the page (default: the names of the trials)
      --map <FILE>          of two trials: JSON that says which tensor of the first is which of the second
      --embed <NAME>        a tensor whose first axis is that of samples, shown as points of a plane; a part of its name will do
      --labels <NAME>       what colours these points (default: labels by their usual names)
      --images <NAME>       what the model was given, as images beside the points (default: its input)
      --reconstructions <NAME>  what it made of that (default: its output, if that has the same shape)
      --perplexity <N>      of t-SNE: about how many neighbours a point has (default: 30)
      --iterations <N>      of t-SNE (default: 350) and UMAP
      ${SELECTION} ${READING} ${PLACES}`,
    special: {
      '--out': option => option.default('report.html', 'report.html'),
    },
    help: `Examples:
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
    load: async () => (await import('../commands/report.js')).report,
  },
  {
    name: 'serve',
    description: 'Pages about trainings over HTTP, live while they run, and an API for other programs.',
    arguments: { '[TRIALS...]': `${TRIALS}; without one, the app, a page that opens them in the browser` },
    options: `
      --port <N>            where to listen; 0: any that is free (default: 7070)
      --host <ADDRESS>      which address to listen at (default: 127.0.0.1, which only this machine reaches)
      --token <TEXT>        what clients must show, 16 characters or more; required for other addresses
      *--cors <ORIGIN>       an origin whose pages may read the answers; repeatable
      --no-rules            without rules, which read all of each trial that is looked at
      --max-work <N>        scans and reads at once; more wait (default: 4)
      --threads --memory ${PLACES}`,
    special: {
      '--token': option => option.env('TRIALSCAN_TOKEN'),
    },
    help: `Examples:
  $ trialscan serve ./my-training
  $ trialscan serve
  $ trialscan serve './runs/*' --port 8080
  $ trialscan serve s3://my-bucket/my-training --host 0.0.0.0 --token "$(openssl rand -hex 16)"
  $ curl 'http://127.0.0.1:7070/api/trials/my-training/scan?reductions=mean,abs_max&format=csv'

Without trials, a page at /app/ opens those that one picks or drops, on this machine or behind a URL.
A trial is opened when somebody looks at it, and only what is looked at is read. /api/openapi.json describes the API. Ctrl-C ends it.

docs/serve.md has more, with Python.`,
    load: async () => (await import('../commands/serve.js')).serve,
  },
]
