/** The command that ranks and filters: top. */

import { type Command, Option } from 'commander'
import { commaSeparated, paths, wholeNumberArgument } from './arguments.js'
import {
  completed,
  FAIL_FAST,
  formatOption,
  OUT,
  READING,
  type RunCommand,
  SELECTION,
  TRIALS,
  WHERE,
} from './options.js'

/** Adds it to the command line. */
export function addTopCommand(program: Command, run: RunCommand): void {
  completed(
    program
      .command('top')
      .description('The rows of a scan that are largest or smallest by a number, or that an expression is true for.')
      .argument('<TRIALS...>', TRIALS, paths)
      .option('--by <COLUMN>', 'rank by this number: any that scan --reductions takes, or step, mode_step, rank, size')
      .addOption(new Option('--desc', 'the largest first (the default)').conflicts('asc'))
      .option('--asc', 'the smallest first')
      .option('-n, --limit <N>', 'how many rows to print (default: 20)', wholeNumberArgument)
      .addOption(WHERE)
      .option(
        '--columns <LIST>',
        'what to print after tensor and step, separated by commas (default: mode, mode_step, worker, and what --by and --where name)',
        commaSeparated,
      ),
    [...SELECTION, ...READING, FAIL_FAST, formatOption('top'), OUT],
    `Examples:
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
  ).action((trials: string[], options) =>
    run('top', async signal => (await import('../commands/top.js')).runTop(trials, options, signal)),
  )
}
