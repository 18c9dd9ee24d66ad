/** `trialscan check`: the findings of rules in a training. */

import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { FormatError, UsageError } from '../../base/errors.js'
import { problemLines } from '../../base/problem-lines.js'
import { makeRules, parseRuleConfigurations, type RuleConfiguration } from '../../rules/config.js'
import { RuleRegistry } from '../../rules/registry.js'
import type { RuleOptions } from '../../rules/rule.js'
import { openStore, storeSpec } from '../../storage/open.js'
import { selectTensorNames } from '../../trial/scan-selection.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import { EXIT } from '../exit.js'
import { tellVerdict, type Verdict, verdictOf } from '../format/ci/report.js'
import { Answers, writerIn } from '../format/ci/text.js'
import { findingAnswer } from '../format/finding/cases.js'
import { AT_END, type FindingFormat } from '../format/finding/format.js'
import { findingCsv, findingJsonl } from '../format/finding/lines.js'
import { severalFormats } from '../format/finding/summary.js'
import { findingTable } from '../format/finding/table.js'
import type { FormatOf } from '../format/formats.js'
import { counted, countText } from '../format/number.js'
import { readInputFile } from '../input-file.js'
import type { RuleText } from '../options/arguments.js'
import { defined, type OutputFlags, settle } from '../options/given.js'
import { isOnS3, type S3Flags, s3OptionsOf } from '../options/s3.js'
import { type Output, writeTo } from '../output.js'
import { Progress } from '../progress.js'
import { expectReplaceableIn } from '../real-path.js'
import { type SelectionFlags, selectionOf, selectionText, unmatchedTexts } from '../scan/selection.js'
import { Losses, opened, trialsAt } from '../scan/trials.js'
import { colorsFor, note } from '../terminal.js'
import { PACKAGE } from '../version.js'
import { expectParameters, expectWorkers, type JudgingFlags, judge, logger, type TrialRules, Trials } from './judge.js'

/** The largest module on S3, in bytes. */
const MAX_MODULE_BYTES = 16 << 20

export interface CheckFlags extends SelectionFlags, S3Flags, OutputFlags<'check'>, JudgingFlags {
  readonly rule?: readonly RuleText[]
  readonly rules?: string
  readonly module?: readonly string[]
  readonly all?: boolean
  readonly explain?: boolean
  readonly otherTrials?: readonly string[]
  readonly failOn?: readonly string[]
  readonly quiet?: boolean
  readonly failFast?: boolean
}

/** @returns the exit code */
export async function check(places: readonly string[], given: CheckFlags, signal: AbortSignal): Promise<number> {
  const flags = settle('check', places[0]!, given)
  const { follow = false, timeout, out } = flags
  if (timeout !== undefined && !follow) throw new UsageError('expected --follow beside --timeout: nothing else waits')
  if (flags.poll !== undefined && !follow)
    throw new UsageError('expected --follow beside --poll: nothing else looks again')
  if (flags.heartbeat !== undefined && !follow)
    throw new UsageError('expected --follow beside --heartbeat: nothing else takes so long')
  const registry = new RuleRegistry()
  for (const module of flags.module ?? []) await loadModule(registry, module, flags)
  const paths = await trialsAt(places, flags)
  const isOnly = paths.length === 1
  if (!isOnly && follow) throw new UsageError(`expected one trial to --follow, got ${paths.length}`)
  if (out !== undefined) await expectReplaceableIn(paths, out)
  const others = new Trials(flags)
  const losses = new Losses(paths, flags.failFast)
  const tally: Tally = { 0: 0, 1: 0 }
  const progress = new Progress(isOnly || flags.onTerminal, 'trials')
  let request: AskedRules | undefined
  let failOn: readonly string[] | undefined
  let verdict: Verdict | undefined
  const selection = selectionText(flags)
  const judgeTrial = async (path: string, trial: Trial, format: FindingFormat, output: Output): Promise<void> => {
    expectWorkers(trial, flags.worker ?? [])
    const otherTrials = await others.openAll(flags.otherTrials ?? [])
    request ??= await askedRules(flags, registry)
    failOn ??= failOnNames(flags, request, registry)
    const restriction = { workers: flags.worker, tensorFilter: tensorFilterOf(trial, flags) }
    const trialRules = await rulesOf(request, restriction, trial, otherTrials, others, registry)
    others.expectFlagsUsed(paths)
    const { tensor, collection } = flags
    const unmatched = defined({ tensor, collection })
    // A running job may still save them.
    if (!follow && (tensor ?? collection) !== undefined) for (const text of unmatchedTexts(trial, unmatched)) note(text)
    const isOneOfSeveral = !isOnly
    const outcome = await judge({
      ...flags,
      ...trialRules,
      ...{ trial, format, output, selection, failOn, isOneOfSeveral, signal },
    })
    const { code, judged } = outcome
    verdict = outcome.verdict
    losses.outcome(code)
    if (code === EXIT.ok || code === EXIT.findings) tally[code]++
    if (!isOnly) losses.add(path, { problems: problemLines(judged.problems.map(({ error }) => error)) })
  }
  try {
    await writeTo(
      out,
      async output => {
        const isSilent = flags.quiet === true && out === undefined
        const formats = isOnly || isSilent ? null : severalFormats(flags.format, flags.onTerminal, flags.explain)
        let done = 0
        for await (const { path, trial } of opened(paths, flags, losses)) {
          try {
            const format =
              formats?.of(path) ?? (isSilent ? SILENT : findingFormat(path, flags, flags.format, flags.onTerminal))
            await judgeTrial(path, trial, format, output)
          } catch (error) {
            if (output.failure !== null) throw output.failure
            losses.trial(path, error)
          }
          if (signal.aborted) break
          progress.update({ doneRows: ++done, totalRows: paths.length })
        }
        progress.stop()
        if (!isOnly) verdict = verdictOf(signal.aborted ? EXIT.interrupted : losses.code, ofTrials(tally, paths.length))
        if (formats) await output.writeAll(formats.end(verdict!, losses.lost))
      },
      // A followed run is not given the signal, so that its outcome is written even when it is interrupted.
      follow ? {} : { signal },
    )
    const code = losses.tell()
    if (verdict !== undefined && (!flags.onTerminal || flags.quiet)) tellVerdict(verdict)
    return code
  } finally {
    await others.close()
  }
}

/** A format without output, for `--quiet`. */
const SILENT: FindingFormat = { ...AT_END, end: () => '' }

/** The number of trials by exit code. */
interface Tally {
  0: number
  1: number
}

function ofTrials(tally: Tally, count: number): string {
  const rest = count - tally[0] - tally[1]
  return [
    `${countText(tally[1])} of ${counted(count, 'trial')} failed`,
    `${countText(tally[0])} passed`,
    ...(rest > 0 ? [`${countText(rest)} could not be judged, or not wholly`] : []),
  ].join(', ')
}

/** The names of `--fail-on`: names of configurations as they are, names of rules in the spelling of their classes. */
function failOnNames(
  { failOn }: CheckFlags,
  { configurations, isAll }: AskedRules,
  registry: RuleRegistry,
): readonly string[] | undefined {
  return failOn?.map(given => {
    if (configurations.some(({ name }) => name === given)) return given
    const { name } = registry.get(given)
    const runs = isAll || configurations.some(({ rule }) => registry.get(rule).name === name)
    if (!runs) throw new UsageError(`expected --fail-on with rules that judge, got ${name}, which --rule does not name`)
    return name
  })
}

/** A filter for the tensors that `--tensor` and `--collection` select, including later ones; undefined for all. */
function tensorFilterOf(trial: Trial, { tensor, collection }: SelectionFlags): ((name: string) => boolean) | undefined {
  if ((tensor ?? collection) === undefined) return undefined
  const state = stateOf(trial)
  const selection = selectionOf(defined({ tensor, collection }))
  let known: unknown
  let names: ReadonlySet<string> | null = null
  const isSelected = (name: string): boolean => {
    if (known !== state.contents) names = selectTensorNames(state, trial.name, selection)
    known = state.contents
    return names?.has(name) ?? true
  }
  // An unknown collection is reported before the rules run.
  isSelected('')
  return isSelected
}

function findingFormat(
  path: string,
  { all: isFull, explain: isExplained }: CheckFlags,
  format: FormatOf<'check'>,
  onTerminal: boolean,
): FindingFormat {
  const columns = onTerminal ? process.stdout.columns : undefined
  return writerIn<FormatOf<'check'>, FindingFormat>(
    format,
    {
      jsonl: () => findingJsonl(onTerminal, isExplained),
      csv: () => findingCsv(onTerminal),
      table: () => findingTable(columns, colorsFor(onTerminal ? process.stdout : null), { isFull, isExplained }),
    },
    format => findingAnswer(path, new Answers(format, 'check'), true),
  )
}

/** The requested rules. */
export interface AskedRules {
  readonly configurations: readonly RuleConfiguration[]
  /** True if every rule judges for which the trial has data. */
  readonly isAll: boolean
}

/** The rules that the options request: all, if none is named. */
export async function askedRules(
  { rule, rules, all }: Pick<CheckFlags, 'rule' | 'rules' | 'all'>,
  registry: RuleRegistry,
): Promise<AskedRules> {
  const configurations = [
    ...named(rule ?? [], registry),
    ...(rules === undefined ? [] : await readConfigurations(rules)),
  ]
  const names = configurations.map(({ name }) => name)
  const twice = names.find((name, i) => names.indexOf(name) !== i)
  if (twice !== undefined) {
    throw new UsageError(`two rules are called ${JSON.stringify(twice)}: give one of them another name, with name=…`)
  }
  return { configurations, isAll: all ?? (rule === undefined && rules === undefined) }
}

/** The rules for a trial. */
export async function rulesOf(
  { configurations, isAll }: AskedRules,
  restriction: Pick<RuleOptions, 'workers' | 'tensorFilter'>,
  trial: Trial,
  otherTrials: readonly Trial[],
  trials: Trials,
  registry: RuleRegistry,
): Promise<TrialRules> {
  const shared = { logger, otherTrials, ...restriction }
  const making = { ...shared, baseTrial: trial, registry, openTrial: trials.open }
  const rules = await makeRules(configurations, making)
  const requestedRules = new Set(rules)
  if (!isAll) return { rules, requestedRules, leftOut: [], onlyByName: [] }
  const all = await registry.allInTurns(trial, shared)
  // A rule that was named does not run again with the suggested parameters.
  const isNew = (ruleName: string) => !rules.some(rule => rule.ruleName === ruleName)
  return {
    requestedRules,
    rules: [...rules, ...all.rules.filter(rule => isNew(rule.ruleName))],
    leftOut: all.leftOut.filter(({ rule }) => isNew(rule)),
    onlyByName: all.onlyByName.filter(({ rule }) => isNew(rule)),
  }
}

/**
 * The rules of `--rule`, each named by `name=`, or else by its class or, if a rule is given several times, by its text.
 */
function named(texts: readonly RuleText[], registry: RuleRegistry): readonly RuleConfiguration[] {
  const distinct = [...new Map(texts.map(text => [text.text, text])).values()]
  const classes = distinct.map(({ rule }) => registry.get(rule))
  return distinct.map(({ text, rule, parameters: { name, ...parameters } }, i) => {
    const ruleName = classes[i]!.name
    expectParameters(ruleName, parameters)
    const isOnly = classes.filter(other => other === classes[i]).length === 1
    return { name: name || (isOnly ? ruleName : text), rule, parameters }
  })
}

async function readConfigurations(path: string): Promise<readonly RuleConfiguration[]> {
  const url = pathToFileURL(resolve(path)).href
  const bytes = await readInputFile(path)
  let text: string
  try {
    // This drops a byte order mark, which some editors write.
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    const message = `${path}: expected JSON in UTF-8, got bytes of another encoding`
    throw new FormatError('BadRuleConfiguration', message, { url }, error)
  }
  return parseRuleConfigurations(text, url)
}

/**
 * Registers the rules that an ES module exports, in TypeScript if Node.js reads it. A module on S3 is copied into a
 * temporary directory, which nobody else can write to and which is removed once the module is loaded.
 */
async function loadModule(registry: RuleRegistry, path: string, flags: S3Flags): Promise<void> {
  if (!isOnS3(path)) return loadFile(registry, path)
  if (!/^\s*s3:\/\/[^/]+\/.*[^/]$/i.test(path)) {
    throw new UsageError(`expected --module s3://bucket/…/rules.mjs, got ${path}`)
  }
  const at = path.lastIndexOf('/')
  const store = openStore(storeSpec(path.slice(0, at), s3OptionsOf(flags)))
  const directory = await mkdtemp(join(tmpdir(), 'trialscan-module-'))
  try {
    const copy = join(directory, path.slice(at + 1))
    const bytes = await store.read(path.slice(at + 1), { maxByteLength: MAX_MODULE_BYTES })
    await writeFile(copy, bytes)
    // The module's import of 'trialscan' resolves to this package.
    await mkdir(join(directory, 'node_modules'))
    await symlink(fileURLToPath(PACKAGE), join(directory, 'node_modules/trialscan'))
    process.stderr.write(`trialscan: ${path} is loaded: ${bytes.length} bytes of code\n`)
    await loadFile(registry, copy)
  } finally {
    await store.close()
    await rm(directory, { recursive: true, force: true })
  }
}

async function loadFile(registry: RuleRegistry, path: string): Promise<void> {
  const url = pathToFileURL(resolve(path)).href
  await readInputFile(path)
  let exports: Record<string, unknown>
  try {
    exports = (await import(url)) as Record<string, unknown>
  } catch (error) {
    // Under a loader such as tsx, TypeScript works on any Node.js.
    if ((error as NodeJS.ErrnoException).code === 'ERR_UNKNOWN_FILE_EXTENSION' && /\.[cm]?tsx?$/i.test(path)) {
      throw new UsageError(
        `${path} is TypeScript, which Node.js ${process.versions.node} does not read: take Node.js 22.18, 24 or newer, or compile it to JavaScript`,
      )
    }
    throw new UsageError(`${path} can't be loaded: ${error instanceof Error ? error.message : error}`, {}, error)
  }
  registry.registerModule(exports, url)
}
