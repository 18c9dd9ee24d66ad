#!/usr/bin/env node
/** The command line. What a command needs is loaded when it runs, so that help is there at once. */

import { readFileSync } from 'node:fs'
import { Command, CommanderError, Option } from 'commander'
import {
  collect,
  commaSeparated,
  formatName,
  oneStep,
  paths,
  pathText,
  reductionList,
  ruleTexts,
  seconds,
  stepsText,
  upperCase,
  wholeNumberArgument,
} from './arguments.js'
import { EXIT, EXIT_HELP } from './exit.js'
import { FORMATS, formatNames } from './format/formats.js'
import { withS3Options } from './s3.js'

/** After a signal this long is left to end in good order; a repair removes thousands of files of its copy. */
const GRACE_MS = 800
const REPAIR_GRACE_MS = 60_000

/** The reader is gone: nothing is left to do, and nothing is wrong. Other errors come with the write that failed. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(EXIT.ok)
  // Of help nobody waits for the write.
  process.exitCode ||= EXIT.store
})
process.stderr.on('error', () => {})

/** What a rule of somebody's own throws outside of our sight must not look like a finding: Node.js would exit with 1. */
process.once('uncaughtException', error => {
  // The first is told of; what is thrown from here on changes nothing.
  process.on('uncaughtException', () => {})
  report(error).then(process.exit)
})

/** Says what went wrong. @returns the exit code */
async function report(error: unknown, command?: string): Promise<number> {
  try {
    return (await import('./failure.js')).reportFailure(error, command)
  } catch {
    // Where no file can be opened any more, nor can be that one.
    process.stderr.write(`trialscan: ${error instanceof Error ? error.message : error}\n`)
    return EXIT.bug
  }
}

// A word about versions to come is nothing for somebody who wants to see tensors.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

/** Runs a command and sets the exit code. @param graceMs after a signal, before it is ended by force */
async function runCommand(
  command: string,
  work: (signal: AbortSignal) => Promise<number>,
  graceMs = GRACE_MS,
): Promise<void> {
  const interrupt = new AbortController()
  let signalled: number | undefined
  for (const [signal, code] of [
    ['SIGINT', EXIT.interrupted],
    ['SIGTERM', EXIT.terminated],
    ['SIGHUP', EXIT.hungUp],
  ] as const) {
    process.on(signal, () => {
      // Who asks twice does not want to wait.
      if (signalled !== undefined) process.exit(signalled)
      signalled = code
      interrupt.abort()
      setTimeout(() => process.exit(code), graceMs).unref()
    })
  }
  try {
    process.exitCode = await work(interrupt.signal).catch(async error => {
      const failures = await import('./failure.js').catch(() => null)
      const isWanted = (await failures?.askForAll(error, interrupt.signal)) ?? null
      // The question has told of the error already.
      if (isWanted === false) return failures!.exitCodeOf(error)
      if (isWanted === null) throw error
      // These are the options that the command was given.
      program.commands.find(one => one.name() === command)?.setOptionValue('s3ListLimit', 0)
      return work(interrupt.signal)
    })
  } catch (error) {
    if (signalled === undefined) process.exitCode = await report(error, command)
  }
  // Threads may still be at work for a scan that was given up.
  if (signalled !== undefined) process.exit(signalled)
}

/** `--format`, with the formats that the command has, and a file for what it prints. */
function withFormat(command: Command, name: keyof typeof FORMATS): Command {
  command.option('--format <FORMAT>', formatText(name), formatName(name))
  return command.options.some(({ long }) => long === '--out') ? command : command.option('--out <FILE>', OUT, pathText)
}

function formatText(name: keyof typeof FORMATS): string {
  const { names, piped } = FORMATS[name]
  const otherwise = names[0] === piped ? piped : `${names[0]} on a terminal, else ${piped}`
  const isDirectory = name === 'reindex' || name === 'repair'
  return `${formatNames(name)} (default: ${isDirectory ? '' : 'what --out ends in, or '}${otherwise})`
}

const CHECK_LEVEL_CHOICES = ['none', 'minimal', 'full']

const OUT = 'write to this file, which appears when it is whole; - is standard output'

function withThreads(command: Command): Command {
  return command.option(
    '--threads <N>',
    'threads to work on; 0: only the main one (default: what the work is worth)',
    wholeNumberArgument,
  )
}

const TRIAL = 'the directory of the trial, which holds collections/, index/ and events/; or s3://bucket/prefix'

const STEPS = 'global steps, such as 100:200, 0:100:10, -5:, last or 0,10,20 (see below)'
const STEPS_HELP = `
Steps: global steps count on over all modes; mode steps are counted within each mode. trialscan ls shows both. Write
  100         that step              last       the last one
  100:200     from 100 up to, but not including, 200; 100: and :200 are open at one end
  0:100:10    0, 10, 20 and so on, below 100
  -5:         the last five: negative numbers count from the end of what the other options leave; -1 is the last
  0,10,20:30  several of these`

const program = new Command('trialscan')
  .description('Reads the tensors that a training job saved with SageMaker Debugger (smdebug).')
  .version(version)
  .option('--no-color', 'no colours; NO_COLOR in the environment does the same')
  .configureOutput({
    // What stands there are arguments: a file name with escape sequences, perhaps.
    outputError: (text, write) =>
      write(text.replace(/^error: /, 'trialscan: ').replace(/(?!\n)[\p{Cc}\p{Cf}]/gu, '\ufffd')),
  })
  .showHelpAfterError('See trialscan --help.')
  .exitOverride()
  .addHelpText(
    'after',
    `
Examples:
  $ trialscan ls ./my-training
  $ trialscan scan ./my-training --collection gradients --reductions abs_mean,abs_max
  $ trialscan show ./my-training gradient/fc.weight --step 100
  $ trialscan check ./my-training
  $ trialscan scan s3://my-bucket/my-training --s3-cache ~/.cache/trialscan

Data goes to standard output, everything else to standard error.
${EXIT_HELP}`,
  )

withS3Options(
  withFormat(
    program
      .command('ls')
      .description('What a trial holds: its steps by mode, workers, collections and tensors.')
      .argument('<TRIAL>', TRIAL, pathText)
      .option('--json', 'the same as --format json'),
    'ls',
  ),
)
  .showHelpAfterError('See trialscan ls --help.')
  .addHelpText(
    'after',
    `
Examples:
  $ trialscan ls ./my-training
  $ trialscan ls ./my-training --format json | jq '.tensors[] | select(.dtype == "float16").name'
  $ trialscan ls ./my-training --out tensors.csv

Global steps count on over all modes; mode steps are counted within each mode.

json: one object with all of it:
  name, path, complete (the job has ended), bytes
  steps        by mode: count, first, last, incomplete (not yet written by all workers), numbers, global_numbers;
               GLOBAL has all global steps; of a mode all but global_numbers are mode steps (more global than mode steps where
               workers are in different modes at one step)
  workers      names; workers_with_data those that have saved something
  collections  name, members, include_regex
  tensors      name, dtype, shape, last_shape, steps (how many), bytes, saved_reductions, error?
  problems     what could not be read: code, message, file, offset?
jsonl, csv: the tensors, one a line.
${EXIT_HELP}`,
  )
  .action((trial: string, options) => runCommand('ls', async () => (await import('./ls.js')).ls(trial, options)))

withS3Options(
  withFormat(
    withThreads(
      program
        .command('scan')
        .description('Reductions (mean, max, …) of many tensors in one pass: a row for each tensor, step and worker.')
        .argument('<TRIAL>', TRIAL, pathText)
        .option(
          '--tensor <REGEX>',
          'tensors whose name matches (a Python pattern, found anywhere in the name); repeatable',
          collect,
        )
        .option('--collection <NAME>', 'members of the collection; repeatable', collect)
        .option('--steps <STEPS>', STEPS, stepsText)
        .option(
          '--mode-steps <STEPS>',
          'mode steps, written the same way; with --mode where there are several',
          stepsText,
        )
        .option('--mode <MODE>', 'only steps of that mode: TRAIN, EVAL or PREDICT', upperCase)
        .option('--worker <NAME>', 'only data of that worker; repeatable', collect)
        .option(
          '--reductions <LIST>',
          'all, or some of min, max, mean, std, variance, sum, prod, l1, l2, separated by commas; abs_ before a name: of the absolute values (default: all; in a table min,max,mean,std,l2)',
          reductionList,
        )
        .addOption(
          new Option(
            '--check-level <LEVEL>',
            'which checksums to verify: none, those of the lengths (the default), or all',
          ).choices(CHECK_LEVEL_CHOICES),
        ),
    )
      .option('--memory <MIB>', 'how many MiB of file contents a thread may hold (default: 64)', wholeNumberArgument)
      .option('--stats', 'print what the scan cost on standard error'),
    'scan',
  ),
)
  .showHelpAfterError('See trialscan scan --help.')
  .addHelpText(
    'after',
    `
Examples:
  $ trialscan scan ./my-training --tensor '^gradient/' --mode TRAIN --mode-steps -5:
  $ trialscan scan ./my-training --steps 100:200 --reductions mean,abs_max --out means.csv
  $ trialscan scan ./my-training --collection losses | jq -r '[.step, .mean] | @tsv'
${STEPS_HELP}

Rows come in the order of global steps, workers and tensors, as soon as they are there.

jsonl: one object a line with tensor, step (the global one), mode, mode_step, worker, dtype, shape, then the reductions
by name. NaN and infinities are the strings "NaN", "Infinity", "-Infinity"; min and max of 64-bit integers have all
their digits; mean and sum of complex numbers are {"re":…,"im":…}; a reduction that the dtype does not have is left out.
Reductions that the job itself saved come with "saved":true and dtype null. What can't be read is a line with
error: { code, message, file, offset }; tensor is null where it is the index file of a step.
csv: the same columns, then saved, error_code, error_message; shapes as 3x5 or scalar, complex numbers as 1.5+2j.
${EXIT_HELP}`,
  )
  .action((trial: string, options) =>
    runCommand('scan', async signal => (await import('./scan.js')).runScan(trial, options, signal)),
  )

withS3Options(
  withFormat(
    program
      .command('show')
      .description('One tensor at one step: its values in short, statistics and a histogram.')
      .argument('<TRIAL>', TRIAL, pathText)
      .argument('<TENSOR>', 'the full name of the tensor; after -- if it begins with a dash')
      .option('--step <N>', 'the global step; -1 or last: the last that has the tensor (the default)', oneStep)
      .option('--mode-step <N>', 'the step of the mode in place of the global one; -1 or last: its last', oneStep)
      .option(
        '--mode <MODE>',
        'the mode that --mode-step counts in: TRAIN, EVAL or PREDICT; alone: the last step of that mode',
        upperCase,
      )
      .option('--worker <NAME>', 'the worker (default: the first that has any data)')
      .option('--npy <FILE>', 'also write the values to a .npy file for numpy', pathText),
    'show',
  ),
)
  .showHelpAfterError('See trialscan show --help.')
  .addHelpText(
    'after',
    `
Examples:
  $ trialscan show ./my-training fc.weight
  $ trialscan show ./my-training CrossEntropyLoss_output_0 --mode EVAL --mode-step 3
  $ trialscan show ./my-training fc.weight --step 100 --out fc.npy && python3 -c 'import numpy; print(numpy.load("fc.npy").shape)'

json: one object as of scan --format jsonl, with all values as nested arrays in values (null where only reductions were saved).
jsonl, csv: an element a line: {"index":[0,2],"value":1.5}; index_0,index_1,value.
npy: a file for numpy. bfloat16, which numpy does not have, becomes float32 (nothing is lost), strings become unicode strings.
${EXIT_HELP}`,
  )
  .action((trial: string, tensor: string, options) =>
    runCommand('show', async () => (await import('./show.js')).runShow(trial, tensor, options)),
  )

withS3Options(
  program
    .command('check')
    .description('What is wrong with the training: the rules of SageMaker Debugger, and your own, in one pass.')
    .argument('<TRIAL>', TRIAL, pathText)
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
    .option('--steps <STEPS>', STEPS, stepsText)
    .option('--mode-steps <STEPS>', 'mode steps, of every mode, written the same way', stepsText)
    .option('--worker <NAME>', 'only data of that worker; repeatable', collect)
    .option('--other-trials <PATHS>', 'trials to compare with (SimilarAcrossRuns), separated by commas', commaSeparated)
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
    .option(
      '--threads <N>',
      'threads to work on; 0: only the main one (default: what the work is worth)',
      wholeNumberArgument,
    )
    .option('--format <FORMAT>', formatText('check'), formatName('check'))
    .option('--out <FILE>', OUT, pathText),
)
  .showHelpAfterError('See trialscan check --help.')
  .addHelpText(
    'after',
    `
Examples:
  $ trialscan check ./my-training
  $ trialscan check ./my-training --rule VanishingGradient,threshold=1e-6 --rule AllZero,collection_names=gradients,weights
  $ trialscan check ./my-training --rules rules.json --follow --format jsonl
  $ trialscan check ./my-training --module ./my-rules.mjs --rule MyRule,limit=3 --steps 100:
  $ trialscan check ./my-training --mode-steps -5:
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
${EXIT_HELP}`,
  )
  .action((trial: string, options) =>
    runCommand('check', async signal => (await import('./check.js')).check(trial, options, signal)),
  )

const invoker = withS3Options(
  program
    .command('rule-invoker')
    .description("One rule over one trial, with the options of Tornasole's rule_invoker.")
    .requiredOption('--trial-dir <PATH>', TRIAL, pathText)
    .requiredOption('--rule-name <NAME>', 'the rule, in capitals or not')
    .option('--other-trials <PATHS>', 'trials to compare with, separated by commas', commaSeparated)
    .option('--worker <NAME>', 'only data of that worker; repeatable', collect)
    .option(
      '--start-step <A>',
      'the first global step to judge; the rule does not see earlier ones',
      wholeNumberArgument,
    )
    .option('--end-step <B>', 'the global step to stop before', wholeNumberArgument)
    .option('--raise-rule-eval-cond-exception', 'stop at the first step at which the rule fires')
    .option('--json', 'the same as --format jsonl')
    .option('--format <FORMAT>', formatText('rule-invoker'), formatName('rule-invoker'))
    .option('--out <FILE>', OUT, pathText)
    .option('--timeout <SECONDS>', 'how long to wait for a step of a running job (default: 600)', seconds),
)
  .argument('[PARAMETERS...]', 'of the rule: --NAME VALUE or --NAME=VALUE each')
  .allowUnknownOption()
  .showHelpAfterError('See trialscan rule-invoker --help.')
  .addHelpText(
    'after',
    `
Examples:
  $ trialscan rule-invoker --trial-dir ./my-training --rule-name VanishingGradient --threshold 0.001
  $ trialscan rule-invoker --trial-dir ./my-training --rule-name unchangedtensor --tensor_regex '.*' --num_steps 10
  $ trialscan rule-invoker --trial-dir ./a --rule-name SimilarAcrossRuns --other-trials ./b --start-step 100

Options come in any order; - and _ are the same in their names; of an option given twice the last counts. A job that still
runs is followed until it ends. For several rules at once, and for what a rule means, see trialscan check.
Where it differs from Tornasole's: exit code 1 if the rule fired; an option that the rule does not have is an error;
--raise-rule-eval-cond-exception takes no value. jsonl is that of trialscan check.
${EXIT_HELP}`,
  )
  .action((parameters: string[], options) =>
    runCommand('rule-invoker', async signal =>
      (await import('./rule-invoker.js')).ruleInvoker(parameters, options, signal),
    ),
  )

withS3Options(
  withFormat(
    withThreads(
      program
        .command('verify')
        .description('What is wrong with the files of a trial: every record, index entry and file is checked.')
        .argument('<TRIAL>', TRIAL, pathText)
        .option('--deep', 'also check values: strings, and saved reductions against their tensors'),
    ).option('--memory <MIB>', 'how many MiB of file contents a thread may hold (default: 64)', wholeNumberArgument),
    'verify',
  ),
)
  .showHelpAfterError('See trialscan verify --help.')
  .addHelpText(
    'after',
    `
Examples:
  $ trialscan verify ./my-training
  $ trialscan verify ./my-training --deep --out problems.csv
  $ trialscan verify ./my-training --format jsonl | jq 'select(.severity == "problem")'

Reads all bytes of all event files and checks them against their checksums, and the index against them. Writes nothing
to the trial. The exit code is 0 if nothing is wrong and 4 if something is; notes, which do no harm, don't count.

jsonl: one object for each problem or note, as soon as it is there, with severity, code, file (relative to the trial),
offset, tensor, step, expected, found, lost, advice, message; then one object with summary, trial, ok, problems and notes
(how many of each code: of one file 100 are told one by one), event_files, index_files, records, tensors, bytes, seconds,
threads. csv: the problems and notes, without the summary. The codes: docs/verify.md.
${EXIT_HELP}`,
  )
  .action((trial: string, options) =>
    runCommand('verify', async signal => (await import('./verify.js')).verify(trial, options, signal)),
  )

withS3Options(
  withFormat(
    withThreads(
      program
        .command('reindex')
        .description("Writes index files for a trial that has lost its own, or has Tornasole's.")
        .argument('<TRIAL>', TRIAL, pathText)
        .requiredOption(
          '--out <DIR>',
          'the directory to write to: the files go to DIR/index; outside of the trial',
          pathText,
        ),
    ),
    'reindex',
  ),
)
  .showHelpAfterError('See trialscan reindex --help.')
  .addHelpText(
    'after',
    `
Examples:
  $ trialscan reindex s3://my-bucket/my-training --out ./rebuilt --format csv
  $ trialscan reindex ./my-training --out ./rebuilt && cp -r ./rebuilt/index ./my-training/

The files are made from the index files there are or, where there are none, from the event files. These don't tell of
shapes that were saved. At the first file that can't be read it ends, before anything is written.

jsonl, csv: one line for each file, with file, step, worker, bytes. json: one object with trial, out, files.
${EXIT_HELP}`,
  )
  .action((trial: string, options) =>
    runCommand('reindex', async signal => (await import('./reindex.js')).reindex(trial, options, signal)),
  )

withS3Options(
  withFormat(
    withThreads(
      program
        .command('repair')
        .description('Writes a clean copy of a trial: what is whole is kept, the rest is left out and reported.')
        .argument('<TRIAL>', TRIAL, pathText)
        .requiredOption('--out <DIR>', 'the directory to write to: new or empty, and outside of the trial', pathText)
        .option('--checksums', 'give every record the true checksum of its payload; the hook leaves it out by default'),
    ),
    'repair',
  ),
)
  .showHelpAfterError('See trialscan repair --help.')
  .addHelpText(
    'after',
    `
Examples:
  $ trialscan repair ./my-training --out ./clean
  $ trialscan repair s3://my-bucket/my-training --out ./clean --checksums
  $ trialscan repair ./my-training --out ./clean --format jsonl | jq 'select(.left_out)'

The trial is only read. The copy gets its name when it is whole; a repair that is interrupted leaves none. Records in which
nothing is wrong are kept, byte for byte; index files that told something else are rewritten; collections files and the
end marker are copied.

jsonl: an object for each thing that was left out, with left_out (the file), offset, byte_length, step, tensors (the index
file's names), records, code, reason, each null where it is not known; 100 a file. Then { rebuilt, reason } for index,
collections and event files that are not as they were, { ignored } for files that are no part of a trial, and at the end one
object with trial, out, files, records, bytes, left_out_count. json: that last one, with left_out, rebuilt and ignored as
arrays. csv: what was left out.

Exit code 0: everything was kept. 4: something was left out; the copy is there all the same.
${EXIT_HELP}`,
  )
  .action((trial: string, options) =>
    runCommand('repair', async signal => (await import('./repair.js')).repair(trial, options, signal), REPAIR_GRACE_MS),
  )

/** Options of the command are found under `--trial_dir` too: Python's argparse left no difference. */
function withDashes(argv: readonly string[], command: Command): readonly string[] {
  if (argv[2] !== command.name()) return argv
  const own = new Set(command.options.map(({ long }) => long))
  return argv.map(argument => {
    const [name, ...value] = argument.split('=')
    const dashed = name!.replaceAll('_', '-')
    return own.has(dashed) ? [dashed, ...value].join('=') : argument
  })
}

try {
  if (process.argv.length <= 2) program.outputHelp()
  else await program.parseAsync(withDashes(process.argv, invoker))
} catch (error) {
  if (!(error instanceof CommanderError)) throw error
  // Help that was asked for is no error.
  process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage
}
