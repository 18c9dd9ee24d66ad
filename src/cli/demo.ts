/** `npm run demo [-- TRIAL]`: what one scan tells of a training. Every figure is measured in this run. */

import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createTrial, type ReductionName, type ScanRow, type Trial } from '../index.js'
import { reportFailure } from './failure.js'
import { sparkline } from './format/bars.js'
import { bytesText, counted, countText, shortNumber } from './format/number.js'
import { colorsFor, columns, safe } from './terminal.js'

/** The first one that exists is shown. */
const TRIALS = ['mlp-vanishing', 'mlp-all-zero', 'cnn-raw-and-reductions'].map(name =>
  fileURLToPath(new URL(`../../fixtures/trials/${name}`, import.meta.url)),
)

/** Gradients with a smaller mean magnitude teach nothing, larger ones are too large. */
const VANISHING_BELOW = 1e-7
const EXPLODING_ABOVE = 1e3
/** A loss that changes by less than this fraction stands still. */
const STANDSTILL = 0.01

/** One reduction of a tensor over the steps of a mode, averaged over the workers. */
interface Series {
  readonly name: string
  readonly values: readonly (number | undefined)[]
}

const colors = colorsFor(process.stdout)
const title = (text: string) => print(`\n${colors.bold(text)}\n`)
const print = (text: string) => process.stdout.write(text)

try {
  await demo(process.argv[2] ?? TRIALS.find(existsSync) ?? TRIALS[0]!)
} catch (error) {
  process.exitCode = reportFailure(error)
}

async function demo(path: string): Promise<void> {
  const started = performance.now()
  const trial = await createTrial(path, { requireCollections: false, refresh: 'manual' })
  const openMs = performance.now() - started
  const scan = trial.scan()
  const rows: ScanRow[] = []
  for await (const row of scan) rows.push(row)
  const { stats } = scan

  describeDemo(trial)
  // A job that set no mode saved all its steps as GLOBAL ones.
  const mode = trial.modes().includes('TRAIN') ? 'TRAIN' : 'GLOBAL'
  const training = rows.filter(row => row.mode === mode)
  const losses = seriesOf(training, membersOf(trial, 'losses', /loss(?!.*_input)/i), 'mean')
  const gradients = seriesOf(training, membersOf(trial, 'gradients', /gradient/i), 'abs_mean')
  if (losses.length > 0) {
    title(`Loss over ${counted(losses[0]!.values.length, 'step')}`)
    print(columns(losses.map(series => [...seriesCells(series), sparkline(series.values)])))
  }
  if (gradients.length > 0) {
    title('Mean |gradient| of each layer over the same steps, all on one logarithmic scale')
    const logs = gradients.map(({ values }) => values.map(value => (value === undefined ? value : Math.log10(value))))
    const finite = logs.flat().filter((value): value is number => value !== undefined && Number.isFinite(value))
    const range = [Math.min(...finite), Math.max(...finite)] as const
    print(
      columns(
        gradients.map((series, i) => [
          ...seriesCells(series),
          // Zero has no logarithm. It is shown as a dot, not as the `!` of values that are not finite.
          sparkline(
            logs[i]!.map(log => (log === Number.NEGATIVE_INFINITY ? undefined : log)),
            range,
          ),
        ]),
      ),
    )
    if (finite.length < logs.flat().length) print(colors.dim('  (· is exactly zero or not there, ! is not finite)\n'))
  }
  title('What this says')
  for (const sentence of findings(losses, gradients)) print(`  ${sentence}\n`)

  title('What it took')
  const { elapsedMs, readBytes, records, reads, threads, rows: count } = stats
  print(`  opened in ${openMs.toFixed(1)} ms, then all 18 reductions of ${counted(count, 'tensor value')}`)
  print(` (${counted(records, 'record')}, ${bytesText(readBytes)}) in ${elapsedMs.toFixed(1)} ms\n`)
  const where = threads === 0 ? 'on the main thread' : `on ${counted(threads, 'thread')}`
  print(`  ${counted(reads, 'read')} ${where}, ${(readBytes / 1e6 / elapsedMs).toFixed(2)} GB/s, start-up included\n`)
  await trial.close()
}

function describeDemo(trial: Trial): void {
  const names = trial.tensorNames()
  print(`${colors.bold(safe(trial.name))}: ${counted(names.length, 'tensor')}, `)
  print(trial.loadedAllSteps ? 'the training has ended\n' : 'the training may still run\n')
  const modes = trial.modes().map(mode => `${mode} ${trial.steps({ mode }).length}`)
  print(`  steps        ${trial.steps().length}${modes.length > 0 ? ` (${modes.join(', ')})` : ''}\n`)
  print(`  workers      ${trial.workers().map(safe).join(', ')}\n`)
  const collections = [...trial.collections().values()].filter(({ members }) => members.length > 0)
  print(`  collections  ${collections.map(({ name, members }) => `${safe(name)} ${members.length}`).join(', ')}\n`)
}

/** The members of a collection or, if it has none, the tensors whose names match. */
function membersOf(trial: Trial, collection: string, names: RegExp): ReadonlySet<string> {
  const members = trial.collections().get(collection)?.members ?? []
  return new Set(members.length > 0 ? members : trial.tensorNames({ regex: names }))
}

/** In the order in which the tensors were saved. */
function seriesOf(rows: readonly ScanRow[], names: ReadonlySet<string>, reduction: ReductionName): Series[] {
  const steps = [...new Set(rows.map(({ step }) => step))]
  const found = new Map<string, Map<number, number[]>>()
  for (const { tensor, step, reductions } of rows) {
    const value = reductions[reduction]
    if (tensor === null || !names.has(tensor) || typeof value !== 'number') continue
    const byStep = found.get(tensor) ?? new Map<number, number[]>()
    found.set(tensor, byStep)
    byStep.set(step, [...(byStep.get(step) ?? []), value])
  }
  return [...found].map(([name, byStep]) => ({
    name,
    values: steps.map(step => {
      const ofWorkers = byStep.get(step)
      return ofWorkers && mean(ofWorkers)
    }),
  }))
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

function definedValues({ values }: Series): number[] {
  return values.filter(value => value !== undefined)
}

function seriesCells(series: Series): string[] {
  const values = definedValues(series)
  return [`  ${safe(series.name)}`, shortNumber(values[0]!), '→', shortNumber(values.at(-1)!)]
}

/** Plain sentences about what went wrong, each with its figures. */
function findings(losses: readonly Series[], gradients: readonly Series[]): string[] {
  const sentences: string[] = []
  for (const series of losses) sentences.push(...lossFindings(series))
  const dead = gradients.filter(series => definedValues(series).every(value => value === 0))
  if (dead.length > 0) {
    sentences.push(
      `${all(dead, gradients)} exactly zero at every step: nothing reaches ${shortNames(dead)} to learn from.`,
    )
  }
  const tiny = gradients.filter(
    series => !dead.includes(series) && definedValues(series).every(value => value < VANISHING_BELOW),
  )
  if (tiny.length > 0) {
    const largest = Math.max(...tiny.flatMap(definedValues))
    sentences.push(
      `${all(tiny, gradients)} never above ${shortNumber(largest)} in the mean: they vanish in ${shortNames(tiny)}.`,
    )
  }
  const wild = gradients.filter(series => definedValues(series).some(value => !(value < EXPLODING_ABOVE)))
  if (wild.length > 0) {
    const broken = wild.filter(series => definedValues(series).some(value => !Number.isFinite(value)))
    const how = broken.length > 0 ? `not a number any more in ${broken.length} of them` : `above ${EXPLODING_ABOVE}`
    sentences.push(`${all(wild, gradients)} exploding: ${how} (${shortNames(wild)}).`)
  }
  const alive = gradients
    .map(series => ({ name: safe(series.name), mean: mean(definedValues(series)) }))
    .filter(({ mean }) => mean > 0 && Number.isFinite(mean))
    .sort((a, b) => a.mean - b.mean)
  const [least, most] = [alive[0], alive.at(-1)]
  if (least && most && least !== most) {
    const times = countText(Math.round(most.mean / least.mean))
    sentences.push(`${most.name} gets ${times} times the gradient that ${least.name} gets.`)
  }
  return sentences.length > 0 ? sentences : ['Nothing stands out.']
}

function lossFindings(series: Series): string[] {
  const values = definedValues(series)
  const name = safe(series.name)
  const broken = series.values.findIndex(value => value !== undefined && !Number.isFinite(value))
  if (broken >= 0) return [`${name} is not a number from the ${ordinal(broken + 1)} saved step on.`]
  const [first, last] = [values[0], values.at(-1)]
  if (values.length < 2 || first === undefined || last === undefined || first === 0) return []
  const change = (last - first) / Math.abs(first)
  const percent = `${(100 * Math.abs(change)).toFixed(1)} %`
  if (Math.abs(change) < STANDSTILL)
    return [`${name} stands still: ${shortNumber(last)} is within ${percent} of where it began.`]
  return [`${name} ${change < 0 ? 'fell' : 'rose'} by ${percent}, from ${shortNumber(first)} to ${shortNumber(last)}.`]
}

/** `The gradients of 6 of 8 tensors are` */
function all(some: readonly Series[], of: readonly Series[]): string {
  const which = some.length === of.length ? `all ${some.length}` : `${some.length} of ${of.length}`
  return `The gradients of ${which} tensors are`
}

function shortNames(series: readonly Series[]): string {
  const names = series.map(({ name }) => safe(name.replace(/^gradient\//, '')))
  return names.length > 4 ? `${names.slice(0, 4).join(', ')} and ${names.length - 4} more` : names.join(', ')
}

function ordinal(n: number): string {
  const suffix = n % 100 > 10 && n % 100 < 14 ? 'th' : (['th', 'st', 'nd', 'rd'][n % 10] ?? 'th')
  return `${n}${suffix}`
}
