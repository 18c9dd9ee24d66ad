/** Two runs compared, beside a scan of both, and a script that compares them with numpy. */

import { readFileSync } from 'node:fs'
import { type CheckpointDType, makeCheckpoint } from '../checkpoints.js'
import type { Case, Definition, Options } from '../definition.js'
import * as numpy from '../engines/numpy.js'
import * as ours from '../engines/ours.js'
import { COMMAND } from '../package.js'
import { type Command, cpuMs, type Run, timed } from '../processes.js'
import { scratchPath } from '../scratch.js'
import { type Trial, trial } from '../trials.js'
import { memoryContender, processContender } from './cli.js'

const NODE = process.execPath

export const diff: Definition = {
  name: 'diff',
  measures: 'whole processes from start to exit; files in the page cache, output to a file',
  *cases({ quick }: Options): Generator<Case> {
    const large = trial('large', quick)
    yield diffCase('that is equal', large, trial('large again', quick), 0)
    yield diffCase('of which every element differs', large, trial('large otherwise', quick), large.tensorCount)
    for (const dtype of ['bfloat16', 'float32'] as const) yield* checkpointCases(dtype, quick)
  },
}

/** Two checkpoints in which two thirds of the elements differ, by nanoseconds of CPU an element, and by memory. */
function* checkpointCases(dtype: CheckpointDType, quick: boolean): Generator<Case> {
  const [a, b] = [makeCheckpoint(dtype, quick), makeCheckpoint(dtype, quick, 'tuned')]
  const [lines, table] = [scratchPath('differences.jsonl'), scratchPath('differences.csv')]
  const command: Command = [NODE, COMMAND, 'diff', a.dir, b.dir, '--format', 'jsonl', '--out', lines]
  const wrong = () => wrongLines(readFileSync(lines, 'utf8'), a.tensors.length)
  const perElement = (run: Run) => (cpuMs(run) * 1e6) / a.elements
  const script = numpy.differences(a.dir, b.dir, table, 1, numpy.newest)
  const wrongOfScript = () => wrongTable(readFileSync(table, 'utf8'), a.tensors.length)
  const title = `${a.title}, beside one of which two thirds differ`
  yield {
    size: `CPU an element, ${title}`,
    unit: 'ns',
    rounds: 3,
    contenders: [
      processContender(`${ours.NAME}, diff`, timed(command), wrong, perElement, 1),
      ...(script === undefined
        ? []
        : [processContender(numpy.newest!.title, timed(script), wrongOfScript, perElement)]),
    ],
  }
  yield {
    size: `peak memory, ${title}`,
    unit: 'MB',
    rounds: 3,
    contenders: [memoryContender(`${ours.NAME}, diff`, command, wrong, 1)],
  }
}

/** @param differing how many of its tensors differ */
function diffCase(kind: string, a: Trial, b: Trial, differing: number): Case {
  const [lines, table] = [scratchPath('differences.jsonl'), scratchPath('differences.csv')]
  const script = (processes: number) => {
    const command = numpy.differences(a.dir, b.dir, table, processes)
    const label = `${numpy.NAME}, a script of ${processes} process${processes === 1 ? '' : 'es'}`
    const wrong = () => wrongTable(readFileSync(table, 'utf8'), differing)
    return command === undefined ? [] : [processContender(label, command, wrong)]
  }
  const scanned = scratchPath('both.csv')
  return {
    size: `${a.title}, beside one ${kind}`,
    byteLength: a.byteLength + b.byteLength,
    rounds: 5,
    contenders: [
      processContender(
        `${ours.NAME}, diff`,
        [NODE, COMMAND, 'diff', a.dir, b.dir, '--format', 'jsonl', '--out', lines],
        () => wrongLines(readFileSync(lines, 'utf8'), differing),
        undefined,
        1,
      ),
      processContender(
        `${ours.NAME}, scan of both`,
        [NODE, COMMAND, 'scan', a.dir, b.dir, '--reductions', 'all', '--format', 'csv', '--out', scanned],
        () => {
          const rows = readFileSync(scanned, 'latin1').trimEnd().split('\n').length - 1
          return rows === 2 * a.tensorCount ? undefined : `expected ${2 * a.tensorCount} rows, got ${rows}`
        },
      ),
      ...script(1),
      ...script(2),
    ],
  }
}

/** The numbers of both are held against each other: those of the first that differs. */
let expected: readonly number[] | undefined

function wrongLines(text: string, differing: number): string | undefined {
  const [first, ...rest] = text.trimEnd().split('\n')
  if (rest.length !== differing) return `expected ${differing} differences, got ${rest.length}`
  const { divergence } = JSON.parse(first!)
  if ((divergence === null) !== (differing === 0))
    return `expected ${differing === 0 ? 'no' : 'a'} divergence, got ${first}`
  if (divergence === null) return undefined
  const { unequal, max_abs, max_rel, mean_abs, max_ulps, cosine, norm_ratio, relative_norm } = divergence
  expected = [unequal, max_abs, max_rel, mean_abs, max_ulps, cosine, norm_ratio, relative_norm]
  return undefined
}

/** numpy computes in float32: a cosine over 67 million elements is off by 3e-4. */
function wrongTable(text: string, differing: number): string | undefined {
  const rows = text === '' ? [] : text.trimEnd().split('\n')
  if (rows.length !== differing) return `expected ${differing} rows, got ${rows.length}`
  if (rows.length === 0 || expected === undefined) return undefined
  const [, , unequal, , maxAbs, maxRel, mean, ulps, , , , cosine, ratio, , , , relative] = rows[0]!
    .split(',')
    .map(Number)
  const got = [unequal!, maxAbs!, maxRel!, mean!, ulps!, cosine!, ratio!, relative!]
  const at = got.findIndex((value, i) => Math.abs(value - expected![i]!) > 1e-3 * Math.max(1e-3, Math.abs(value)))
  return at < 0 ? undefined : `expected ${expected[at]} as number ${at} of ${rows[0]}, got ${got[at]}`
}
