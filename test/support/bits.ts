/** Answers by their bits: two that have one digest are the same to the last bit, -0 and 0 apart, every NaN the same. */

import { createHash, type Hash } from 'node:crypto'
import {
  evaluate,
  type Rule,
  RuleRegistry,
  type ScanOptions,
  type ScanRow,
  type TensorValue,
  type Trial,
  TrialscanError,
} from '#dist/index.js'

const number = new Float64Array(1)
const numberBytes = new Uint8Array(number.buffer)

function add(hash: Hash, value: unknown): void {
  if (typeof value === 'number') {
    number[0] = Number.isNaN(value) ? Number.NaN : value
    hash.update('n').update(numberBytes)
  } else if (value instanceof TrialscanError) hash.update(`e${value.code};`)
  else if (ArrayBuffer.isView(value)) {
    if (value instanceof Float64Array) for (const one of value) add(hash, one)
    else hash.update(`v${value.byteLength};`).update(new Uint8Array(value.buffer, value.byteOffset, value.byteLength))
  } else if (Array.isArray(value)) {
    hash.update(`a${value.length};`)
    for (const one of value) add(hash, one)
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, one] of Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) {
      if (one === undefined) continue
      add(hash, name)
      add(hash, one)
    }
    hash.update('.')
  } else {
    const text = String(value)
    hash.update(`${typeof value}${text.length};${text}`)
  }
}

/** The digest of anything that has no functions: numbers by their bits, errors by their codes. */
export function bitsOf(value: unknown): string {
  const hash = createHash('sha256')
  add(hash, value)
  return hash.digest('hex')
}

/** A row with everything that is computed, and nothing that tells of the machine. */
function rowBits({ moments, error, ...row }: ScanRow): string {
  return bitsOf({ ...row, moments: moments?.row, error: error?.code })
}

/** A line for each row: what it is, and its digest. */
export async function scanBits(trial: Trial, options: ScanOptions = {}): Promise<string[]> {
  const lines: string[] = []
  for await (const row of trial.scan(options)) lines.push(`${row.step} ${row.worker} ${row.tensor} ${rowBits(row)}`)
  return lines
}

/** The digest of a scan as text. */
export async function textBits(trial: Trial, format: 'csv' | 'jsonl', options: ScanOptions = {}): Promise<string> {
  const hash = createHash('sha256')
  for await (const lines of trial.scan(options).lines(format)) hash.update(lines)
  return hash.digest('hex')
}

type Work = Pick<ScanOptions, 'threads' | 'memory' | 'checkLevel'>

/** A line for each tensor: its values at all steps, and two reductions asked for one by one. */
export async function valueBits(trial: Trial, options: Work = {}): Promise<string[]> {
  const names = trial.tensorNames()
  return Promise.all(
    names.map(async name => {
      const tensor = trial.tensor(name)
      const told: unknown[] = []
      for (const step of tensor.steps()) {
        const read = async <T>(answer: Promise<T>) => answer.catch((error: unknown) => error)
        const value = await tensor.value(step, options).catch((error: Error) => error)
        const asked = (['mean', 'l2'] as const).map(reduction => read(tensor.reductionValue(step, reduction, options)))
        // As an array it comes in the types that the version of Node.js has.
        told.push(value instanceof Error ? value : [value.dtype, value.shape, value.bytes, unfolded(value)])
        told.push(...(await Promise.all(asked)))
      }
      return `${name} ${bitsOf(told)}`
    }),
  )
}

/** What the bytes alone don't tell: strings, and float16 as it was widened. */
function unfolded({ dtype, data }: TensorValue): unknown {
  if (dtype === 'string') return data
  return dtype.endsWith('float16') ? Float64Array.from((data as Float32Array).subarray(0, 100_000)) : null
}

/** Every built-in rule that the trial has data for, and more that compare, count, and hand out values. */
function rulesOf(trial: Trial): Rule[] {
  const registry = new RuleRegistry()
  const more: [string, Record<string, string>][] = [
    ['UnchangedTensor', { tensor_regex: '.*', num_steps: '2' }],
    ['UnchangedTensor', { tensor_regex: '.*', num_steps: '3', rtol: '0.1' }],
    ['WeightUpdateRatio', { num_steps: '2' }],
    ['DeadRelu', { tensor_regex: 'relu|weight' }],
    ['NLPSequenceRatio', { tensor_regex: 'bias' }],
    ['CheckInputImages', { regex: 'weight' }],
    ['AllZero', { tensor_regex: '.*' }],
    ['SaturatedActivation', { tensor_regex: '.*' }],
    ['TensorVariance', { tensor_regex: '.*', max_threshold: '1e-3', min_threshold: '1e-3' }],
    ['ExplodingTensor', { tensor_regex: '.*' }],
  ]
  return [...registry.all(trial).rules, ...more.map(([name, values]) => new (registry.get(name))(trial, values))]
}

/** A line for each finding, and one for what was missing or could not be read. */
export async function ruleBits(trial: Trial, options: Work = {}): Promise<string[]> {
  const { findings, missing, problems } = await evaluate(rulesOf(trial), { ...options, follow: false })
  return [
    ...findings.map(finding => `${finding.rule} ${finding.step} ${finding.tensor} ${bitsOf(finding)}`),
    bitsOf([missing, problems.map(({ step, tensor, error }) => [step, tensor, error.code])]),
  ]
}

/** All that a trial answers, as golden-bits.json has it. */
export interface GoldenBits {
  readonly rows: number
  readonly scan: string
  readonly csv: string
  readonly jsonl: string
  readonly values: string
  readonly rules: string
}

export async function trialBits(trial: Trial, options: Work = {}): Promise<GoldenBits> {
  const rows = await scanBits(trial, options)
  // Rows with errors name files, which lie elsewhere on another machine.
  const isWhole = rows.length > 0 && !(await hasErrors(trial.scan(options)))
  return {
    rows: rows.length,
    scan: bitsOf(rows),
    csv: isWhole ? await textBits(trial, 'csv', options) : '',
    jsonl: isWhole ? await textBits(trial, 'jsonl', options) : '',
    values: bitsOf(await valueBits(trial, options)),
    rules: bitsOf(await ruleBits(trial, options)),
  }
}

async function hasErrors(rows: AsyncIterable<{ readonly error?: unknown }>): Promise<boolean> {
  for await (const { error } of rows) if (error) return true
  return false
}
