/** The commands that judge a training: diff, nan, check and rule-invoker. */

import { tolerance } from './arguments.js'
import { type CommandDefinition, PLACES, READING, SELECTION, TRIAL, TRIALS } from './options.js'

export const RULE_COMMANDS: readonly CommandDefinition[] = [
  {
    name: 'diff',
    description: 'Where two runs of a training first differ, and how: step by step, in the order of execution.',
    arguments: { '<TRIALS...>': 'two trials: directories, or s3://bucket/prefix; with --workers or --digests one' },
    options: `
      --tolerance <WHICH>   what is close: exact (default), dtype (as torch.testing.assert_close), or numpy (as allclose)
      --rtol <R>            what is close: |a − b| ≤ atol + rtol·|b| (default: 0)
      --atol <A>            see --rtol (default: 0, so that any difference counts)
      --map <FILE>          JSON that says which tensor of the first run is which of the second
      *--noise <TRIAL>       another run of the configuration of the first: what these two differ by is noise; repeatable
      --workers             compare the workers of one trial with each other: weights and biases, or what --tensor selects
      --digests <FILE>      compare one trial with a list of digests that was made elsewhere, by scan or verify --record
      --unify <FILE>        JSON that says along which axis tensors are split among workers: puts them together
      --top <N>             rows of the table of two checkpoints, the largest changes first (default: 16)
      --bisect              find the first step that differs by halving, as if what differs once differs from then on
      --follow              go on with each step that the first run completes, until it ends
      --timeout --poll
      --first               end at the first step that differs
      --all                 every difference in the table, not just the first
      ${SELECTION} ${READING} --format --out --quiet ${PLACES}`,
    special: {
      '--tolerance': option => option.choices(['exact', 'dtype', 'numpy']),
      '--atol': option => option.argParser(tolerance),
    },
    help: `Examples:
  $ trialscan diff ./run-1 ./run-2
  $ trialscan diff ./run-1 ./run-2 --rtol 1e-5 --atol 1e-8 --first
  $ trialscan diff ./run-1 ./run-2 --noise ./run-1-again
  $ trialscan diff ./run-1 ./run-2 --map map.json --format jsonl --out differences.jsonl
  $ trialscan diff ./four-ranks ./one-rank --unify axes.json
  $ trialscan diff ./my-training --workers
  $ trialscan diff ./my-checkpoint --digests digests.jsonl

Tensors are matched by name, steps by number, workers by name or where each run has one. Two NaN are equal. Of what is equal bit by bit
nothing more is computed. Where only reductions were saved, these are compared.
jsonl: first { "divergence": null or an object }, then a line for each tensor, step and worker that differs. The exit code is 1 if
there is a divergence. A map holds names or patterns of whole names, each with the name in the second run.`,
    load: async () => (await import('../commands/diff.js')).runDiff,
  },
  {
    name: 'nan',
    description: 'Where NaN and infinities come from: the first record that has any, and how they spread to the loss.',
    arguments: { '<TRIAL>': TRIAL },
    options: `
      --all                 every tensor that they spread to, not just the first
      ${SELECTION} ${READING} --format --out --quiet ${PLACES}`,
    help: `Examples:
  $ trialscan nan ./my-training
  $ trialscan nan ./my-training --steps 1000: --format jsonl

Records are looked at in the order in which they were computed, over all workers. Each later tensor is a producer (its inputs were finite),
a propagator (one was not), or unknown (its inputs were not saved), as far as names and collections tell.
jsonl: first { "origin": null or an object, … }, then a line for each other tensor. The exit code is 1 if there is an origin.`,
    load: async () => (await import('../commands/nan.js')).nan,
  },
  {
    name: 'check',
    description: 'What is wrong with the training: the rules of SageMaker Debugger, and your own, in one pass.',
    arguments: { '<TRIALS...>': TRIALS },
    options: `
      *--rule <NAME[,k=v…]>  a rule and its parameters; repeatable (default: all that the saved data allow)
      --rules <FILE>        rules from a JSON file: SageMaker's DebugRuleConfigurations
      *--module <FILE>       an ES module, on disk or on S3, that exports rules of your own, which can then be named like the others; .ts from Node.js 22.18 on; repeatable
      --explain             also say which rules judge, with which parameters and why, and why the others do not
      --all                 also every rule that the saved data allow, besides those named; tensors are listed in full
      --tensor --collection --steps
      --mode-steps <STEPS>  mode steps, of every mode, written the same way
      --mode --worker
      --other-trials <PATHS>  trials to compare with (SimilarAcrossRuns, DivergesFrom), separated by commas
      --follow              keep judging as the job completes steps, until it ends
      --timeout --poll
      --heartbeat <SECONDS>  with --follow: how often to say how far it is, where stderr is no terminal (default: 60; 0: never)
      --fail-on <RULE,…>    exit with 1 only if one of these rules has fired
      --fail-on-finding     exit with 1 if a rule has fired (the default)
      --no-fail-on-finding  exit with 0 even if a rule has fired
      --threads --fail-fast --format --out --quiet ${PLACES}`,
    help: `Examples:
  $ trialscan check ./my-training
  $ trialscan check ./my-training --rule VanishingGradient,threshold=1e-6 --rule AllZero,collection_names=gradients,weights
  $ trialscan check ./my-training --rules rules.json --follow --format jsonl
  $ trialscan check ./my-training --module ./my-rules.mjs --rule MyRule,limit=3 --steps 100:
  $ trialscan check ./my-training --mode-steps -5:
  $ trialscan check ./my-training --fail-on ExplodingTensor,LossNotDecreasing --out report.xml
  $ trialscan check 'runs/*' --format table
  $ trialscan check ./my-training --rule SimilarAcrossRuns --other-trials ./my-other-training

Steps that are left out are not judged; a rule that compares a tensor with earlier ones, such as UnchangedTensor, looks back at
them all the same. With --follow of a job that runs, steps cannot count from the end.

Rules: AllZero, CheckInputImages, ClassImbalance, Confusion, DeadRelu, DivergesFrom, ExplodingNorm, ExplodingTensor,
FeatureImportanceOverweight, LossNotDecreasing, NLPSequenceRatio, OptimizerReset, Overfit, Overtraining, PoorWeightInitialization,
ReplicaDrift, SaturatedActivation, SimilarAcrossRuns, StalledTrainingRule, TensorVariance, TreeDepth, UnchangedRows,
UnchangedTensor, VanishingGradient, WeightUpdateRatio.

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
judged the rest), and, if rules that were named lack some, an object with CollectionConfigurations: what has to be saved for
them, as a configuration for record --config; with --explain an object for each rule with rule, name, judges (whether it does), parameters (those
that are not the rule's defaults, each with parameter, value, reason), reason (why it does not judge); and for what
could not be read, objects with problem, step, tensor, code.
Of several trials, the lines begin with trial, and the table has a line for each: how many findings, and which rules fired
first. A trial that can't be read is told at the end.
json: one object with verdict (passed, failed, unread, unjudged or interrupted), exit_code, text, findings, not_judged and problems.
github, junit, sarif: annotations, test cases and results (docs/ci.md).
Without a terminal, and with --quiet, the last line on standard error is the verdict.`,
    load: async () => (await import('../commands/check.js')).check,
  },
  {
    name: 'rule-invoker',
    description: "One rule over one trial, with the options of Tornasole's rule_invoker.",
    arguments: { '[PARAMETERS...]': 'of the rule: --NAME VALUE or --NAME=VALUE each' },
    options: `
      !--trial-dir <PATH>    ${TRIAL}
      !--rule-name <NAME>    the rule, in capitals or not
      --other-trials <PATHS>  trials to compare with, separated by commas
      --worker
      --start-step <A>      the first global step to judge; the rule does not see earlier ones
      --end-step <B>        the global step to stop before
      --raise-rule-eval-cond-exception  stop at the first step at which the rule fires
      --json                the same as --format jsonl
      --format --out
      --timeout <SECONDS>   how long to wait for a step of a running job (default: 600)`,
    takesAnyOption: true,
    help: `Examples:
  $ trialscan rule-invoker --trial-dir ./my-training --rule-name VanishingGradient --threshold 0.001
  $ trialscan rule-invoker --trial-dir ./my-training --rule-name unchangedtensor --tensor_regex '.*' --num_steps 10
  $ trialscan rule-invoker --trial-dir ./a --rule-name SimilarAcrossRuns --other-trials ./b --start-step 100

Options come in any order; - and _ are the same in their names; of an option given twice the last counts. A job that still
runs is followed until it ends. For several rules at once, and for what a rule means, see trialscan check.
Where it differs from Tornasole's: exit code 1 if the rule fired; an option that the rule does not have is an error;
--raise-rule-eval-cond-exception takes no value. jsonl is that of trialscan check.`,
    load: async () => (await import('../commands/rule-invoker.js')).ruleInvoker,
  },
]
