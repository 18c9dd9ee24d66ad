/** The parameters of each kind of request, read from the address and described for OpenAPI. */

import { nearestNames, quote, UsageError } from '../../base/errors.js'
import { MODES, type Mode, type StatisticName } from '../../base/types.js'
import { parseSteps } from '../../scan/catalog/step-text.js'
import { parseReductions } from '../../trial/reduction.js'
import type { ScanOptions } from '../../trial/scan-selection.js'

/** A parameter of an address's query. */
export interface Parameter {
  readonly name: string
  readonly description: string
  readonly isRequired?: boolean
  /** True if it may be given several times. */
  readonly isRepeatable?: boolean
  readonly values?: readonly string[]
  readonly isInteger?: boolean
  readonly example?: string
}

export const TENSOR: Parameter = {
  name: 'tensor',
  description: 'The tensor of that name; any other text is a Python pattern, found anywhere in names.',
  isRepeatable: true,
  example: 'gradient/.*weight',
}
const COLLECTION: Parameter = {
  name: 'collection',
  description: 'Members of the collection.',
  isRepeatable: true,
  example: 'gradients',
}
const STEPS: Parameter = {
  name: 'steps',
  description: 'Global steps: 100, 100:200, 0:100:10, -5:, last, or several separated by commas.',
  example: '0:100:10',
}
const MODE_STEPS: Parameter = {
  name: 'mode_steps',
  description: 'Steps of the mode, written the same way; with mode where there are several.',
}
const MODE: Parameter = { name: 'mode', description: 'Only steps of that mode.', values: ['TRAIN', 'EVAL', 'PREDICT'] }
const WORKER: Parameter = { name: 'worker', description: 'Only data of that worker.', isRepeatable: true }
const REDUCTIONS: Parameter = {
  name: 'reductions',
  description:
    'Names separated by commas: mean, abs_max, p99, histogram:20, … Default: all eighteen reductions, as far as the dtype has them.',
  example: 'mean,abs_max',
}

export const SELECTION: readonly Parameter[] = [TENSOR, COLLECTION, STEPS, MODE_STEPS, MODE, WORKER]

export const SCAN_FORMATS = ['jsonl', 'json', 'csv', 'arrow', 'parquet'] as const
export type ScanFormat = (typeof SCAN_FORMATS)[number]
export const SCAN: readonly Parameter[] = [
  ...SELECTION,
  REDUCTIONS,
  { name: 'format', description: 'How rows are written. Default: jsonl.', values: SCAN_FORMATS },
]

export const VALUE_FORMATS = ['json', 'npy'] as const
export type ValueFormat = (typeof VALUE_FORMATS)[number]
/** One tensor at one step. */
export const VALUE: readonly Parameter[] = [
  { name: 'tensor', description: 'The whole name of the tensor.', isRequired: true },
  { name: 'step', description: 'A global step. Default: the last that has the tensor.', isInteger: true },
  { name: 'worker', description: 'Default: the first that saved it.' },
  { name: 'format', description: 'json, with nested lists, or numpy’s npy. Default: json.', values: VALUE_FORMATS },
]

/** The parameters of one request, by name. */
export class Asked {
  readonly #given: URLSearchParams

  /** Checks the parameters of a request. @throws UsageError for an unknown one */
  constructor(given: URLSearchParams, parameters: readonly Parameter[]) {
    this.#given = given
    const known = parameters.map(({ name }) => name)
    for (const name of given.keys()) {
      const parameter = parameters.find(candidate => candidate.name === name)
      if (parameter === undefined) {
        const nearest = nearestNames(name, known)
        const hint =
          nearest.length > 0 ? `did you mean ${nearest.join(' or ')}?` : `there are ${known.join(', ') || 'none'}`
        throw new UsageError(`there is no parameter ${quote(name)}; ${hint}`, { parameter: name })
      }
      if (!parameter.isRepeatable && given.getAll(name).length > 1) {
        throw new UsageError(`expected ${name} once, got it ${given.getAll(name).length} times`, { parameter: name })
      }
      for (const value of given.getAll(name)) check(parameter, value)
    }
    const lacking = parameters.find(({ name, isRequired }) => isRequired && !given.has(name))
    if (lacking) throw new UsageError(`expected the parameter ${lacking.name}, got none`, { parameter: lacking.name })
  }

  text(name: string): string | undefined {
    return this.#given.get(name) ?? undefined
  }

  integer(name: string): number | undefined {
    const text = this.text(name)
    return text === undefined ? undefined : Number(text)
  }

  /** The selection for `trial.scan`. @throws UsageError */
  get selection(): ScanOptions {
    const [tensors, collection, workers] = ['tensor', 'collection', 'worker'].map(name => this.#given.getAll(name))
    const [steps, modeSteps, mode] = ['steps', 'mode_steps', 'mode'].map(name => this.text(name))
    return {
      ...(tensors!.length > 0 && { tensors: tensors! }),
      ...(collection!.length > 0 && { collection: collection! }),
      ...(steps !== undefined && { steps: stepsOf('steps', steps) }),
      ...(modeSteps !== undefined && { modeSteps: stepsOf('mode_steps', modeSteps) }),
      ...(mode !== undefined && { mode: MODES.find((known): known is Mode => known === mode)! }),
      ...(workers!.length > 0 && { workers: workers! as NonNullable<ScanOptions['workers']> }),
    }
  }

  /** @throws UsageError */
  get reductions(): readonly StatisticName[] | 'all' {
    const text = this.text('reductions')
    return text === undefined || text === 'all' ? 'all' : parseReductions(text.split(',').map(name => name.trim()))
  }
}

function stepsOf(name: string, text: string): NonNullable<ScanOptions['steps']> {
  const selection = parseSteps(text)
  if (selection !== null) return selection
  const message = `expected ${name} as A:B (from A up to, but not including, B, which comes later), A:, :B, A:B:N (every N), A or last, several separated by commas, got ${quote(text)}`
  throw new UsageError(message, { parameter: name })
}

function check({ name, values, isInteger }: Parameter, value: string): void {
  if (values && !values.includes(value)) {
    throw new UsageError(`expected ${name} to be one of ${values.join(', ')}, got ${quote(value)}`, { parameter: name })
  }
  if (isInteger && !(/^\d+$/.test(value) && Number.isSafeInteger(Number(value)))) {
    throw new UsageError(`expected ${name} to be a whole number, got ${quote(value)}`, { parameter: name })
  }
}
