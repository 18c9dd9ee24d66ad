/** The commands that judge a training: check and rule-invoker. */

import type { Command } from 'commander'
import { commaSeparated, paths, pathText, ruleTexts, seconds, stepsText, wholeNumberArgument } from './arguments.js'
import {
  completed,
  FAIL_FAST,
  formatOption,
  OUT,
  type RunCommand,
  STEPS,
  STEPS_HELP,
  THREADS,
  TRIAL,
  TRIALS,
  WORKER,
} from './options.js'

/** Adds them to the command line. @returns rule-invoker, whose options can be written with underscores */
export function addRuleCommands(program: Command, run: RunCommand): Command {
  completed(
    program
      .command('check')
      .description('What is wrong with the training: the rules of SageMaker Debugger, and your own, in one pass.')
      .argument('<TRIALS...>', TRIALS, paths)
      .option(
        '--rule <NAME[,k=v…]>',
        'a rule and its parameters; repeatable (default: all that the saved data allow)',
        ruleTexts,
      )
      .option('--rules <FILE>', "rules from a JSON file: SageMaker's DebugRuleConfigurations", pathText)
      .option(
        '--module <FILE>',
        'an ES module that exports rules of your own, which can then be named like the others; repeatable',
        paths,
      )
      .option('--explain', 'also say which rules judge, with which parameters and why, and why the others do not')
      .option('--all', 'also every rule that the saved data allow, besides those named; tensors are listed in full')
      .addOption(STEPS)
      .option('--mode-steps <STEPS>', 'mode steps, of every mode, written the same way', stepsText)
      .addOption(WORKER)
      .option(
        '--other-trials <PATHS>',
        'trials to compare with (SimilarAcrossRuns), separated by commas',
        commaSeparated,
      )
      .option('--follow', 'keep judging as the job completes steps, until it ends')
      .option(
        '--timeout <SECONDS>',
        'with --follow: how long to wait for a step that does not come (default: 600)',
        seconds,
      )
      .option(
        '--poll <SECONDS>',
        'with --follow: how often to look for new steps where there are no file events (default: 2; on S3 5)',
        seconds,
      )
      .option('--fail-on-finding', 'exit with 1 if a rule has fired (the default)')
      .option('--no-fail-on-finding', 'exit with 0 even if a rule has fired')
      .addOption(THREADS)
      .addOption(FAIL_FAST)
      .addOption(formatOption('check'))
      .addOption(OUT),
    `Examples:
  $ trialscan check ./my-training
  $ trialscan check ./my-training --rule VanishingGradient,threshold=1e-6 --rule AllZero,collection_names=gradients,weights
  $ trialscan check ./my-training --rules rules.json --follow --format jsonl
  $ trialscan check ./my-training --module ./my-rules.mjs --rule MyRule,limit=3 --steps 100:
  $ trialscan check ./my-training --mode-steps -5:
  $ trialscan check 'runs/*' --format table
  $ trialscan check ./my-training --rule SimilarAcrossRuns --other-trials ./my-other-training
${STEPS_HELP}
Steps that are left out are not judged; a rule that compares a tensor with earlier ones, such as UnchangedTensor, looks back at
them all the same. With --follow of a job that runs, steps cannot count from the end.

Rules: AllZero, CheckInputImages, ClassImbalance, Confusion, DeadRelu, ExplodingTensor, FeatureImportanceOverweight,
LossNotDecreasing, NLPSequenceRatio, Overfit, Overtraining, PoorWeightInitialization, SaturatedActivation,
SimilarAcrossRuns, StalledTrainingRule, TensorVariance, TreeDepth, UnchangedTensor, VanishingGradient, WeightUpdateRatio.

--rule NAME,k=v,k=v: a piece without a k= of its own goes on with the value before it, so that values may hold commas:
AllZero,collection_names=gradients,weights,threshold=90 has two parameters. name=… is what findings call the rule, to tell
two configurations of the same rule apart. A value that holds ",word=", or a pattern with a comma, goes into a file:
--rules FILE: [{ "RuleConfigurationName": "…", "RuleParameters": { "rule_to_invoke": "AllZero", "threshold": "90" } }, …],
or an object with such an array as DebugRuleConfigurations; "tensor_regex": ["a{1,3}"] is a pattern with a comma.

table: the cause first: what went wrong earliest, and what merely follows from it; then, for each cause, what it means, since
when, where it is worst, what to do, and what follows from it; then the rules that found nothing, and those that had nothing to judge (why: --explain).
jsonl: one object a finding, as soon as its step is judged, with rule, name (the configuration's), step (the global one),
mode, mode_step, tensor (null: the step as a whole), worker, value, threshold, message, cause (the number of the line, from
0, of the finding that it follows from; null: none). NaN and infinities are the strings "NaN",
"Infinity", "-Infinity". Then, for data that a rule lacks, objects with rule, name, missing, partial (whether it
judged the rest); with --explain an object for each rule with rule, name, judges (whether it does), parameters (those
that are not the rule's defaults, each with parameter, value, reason), reason (why it does not judge); and for what
could not be read, objects with problem, step, tensor, code.
Of several trials, the lines begin with trial, and the table has a line for each: how many findings, and which rules fired
first. A trial that can't be read is told at the end.`,
  ).action((trials: string[], options) =>
    run('check', async signal => (await import('../commands/check.js')).check(trials, options, signal)),
  )

  return completed(
    program
      .command('rule-invoker')
      .description("One rule over one trial, with the options of Tornasole's rule_invoker.")
      .requiredOption('--trial-dir <PATH>', TRIAL, pathText)
      .requiredOption('--rule-name <NAME>', 'the rule, in capitals or not')
      .option('--other-trials <PATHS>', 'trials to compare with, separated by commas', commaSeparated)
      .addOption(WORKER)
      .option(
        '--start-step <A>',
        'the first global step to judge; the rule does not see earlier ones',
        wholeNumberArgument,
      )
      .option('--end-step <B>', 'the global step to stop before', wholeNumberArgument)
      .option('--raise-rule-eval-cond-exception', 'stop at the first step at which the rule fires')
      .option('--json', 'the same as --format jsonl')
      .addOption(formatOption('rule-invoker'))
      .addOption(OUT)
      .option('--timeout <SECONDS>', 'how long to wait for a step of a running job (default: 600)', seconds)
      .argument('[PARAMETERS...]', 'of the rule: --NAME VALUE or --NAME=VALUE each')
      .allowUnknownOption(),
    `Examples:
  $ trialscan rule-invoker --trial-dir ./my-training --rule-name VanishingGradient --threshold 0.001
  $ trialscan rule-invoker --trial-dir ./my-training --rule-name unchangedtensor --tensor_regex '.*' --num_steps 10
  $ trialscan rule-invoker --trial-dir ./a --rule-name SimilarAcrossRuns --other-trials ./b --start-step 100

Options come in any order; - and _ are the same in their names; of an option given twice the last counts. A job that still
runs is followed until it ends. For several rules at once, and for what a rule means, see trialscan check.
Where it differs from Tornasole's: exit code 1 if the rule fired; an option that the rule does not have is an error;
--raise-rule-eval-cond-exception takes no value. jsonl is that of trialscan check.`,
  ).action((parameters: string[], options) =>
    run('rule-invoker', async signal =>
      (await import('../commands/rule-invoker.js')).ruleInvoker(parameters, options, signal),
    ),
  )
}
