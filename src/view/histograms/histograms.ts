/** `histograms`: a picture of tensors that the caller has in memory. */

import { expectArgument } from '../../base/arguments.js'
import { UsageError } from '../../base/errors.js'
import { checkOptions, kinds, optionsOf } from '../../base/options.js'
import type { Distribution } from '../../core/statistics/distribution.js'
import { distribution } from '../../kernels/distribution.js'
import type { ArrayInput } from '../../kernels/elements.js'
import { writeWhole } from '../../storage/local/output.js'
import { type Distributions, histogramPicture, pictureKind } from './picture.js'

type Entries<K extends string | number, V> = ReadonlyMap<K, V> | Readonly<Record<K, V>>

/** Values by the name of a tensor, then by step: objects or Maps; arrays, or values of a trial. */
export type StepTensors = Entries<string, Entries<number, ArrayInput | readonly number[]>>

export interface HistogramsOptions {
  /** The file: its name ends with .gif, an animation, or with .html, a page to go through the steps. */
  readonly out: string
  /** Tensors of a second trial, drawn over those of the same names. */
  readonly beside?: StepTensors
  /** The names of the two in the picture. Default: `first` and `second`. */
  readonly labels?: readonly [string, string]
  /** The title above the picture. */
  readonly title?: string
  /** Bars of each histogram. Default: 50. */
  readonly bins?: number
  /** Milliseconds per step. Default: 400. */
  readonly delay?: number
}

export const DEFAULTS = { labels: ['first', 'second'], title: '', bins: 50, delay: 400 } as const

const HISTOGRAMS_OPTIONS = optionsOf<HistogramsOptions>(
  {
    out: kinds.that<string>('a name that ends with .gif or .html', given => pictureKind(String(given)) !== null),
    beside: kinds.that<StepTensors>('tensors by name and step', isEntries),
    labels: kinds.that<readonly [string, string]>(
      'two texts',
      given => Array.isArray(given) && given.length === 2 && given.every(label => typeof label === 'string'),
    ),
    title: kinds.text,
    bins: kinds.wholeNumber(1, 200),
    delay: kinds.wholeNumber(20, 60_000),
  },
  'out',
)

/**
 * Draws the distributions of tensors' elements, step after step.
 * @throws UsageError for anything but numbers by name and step; StoreError if the file can't be written
 */
export async function histograms(tensors: StepTensors, options: HistogramsOptions): Promise<void> {
  const { out, beside, ...others } = checkOptions('histograms', HISTOGRAMS_OPTIONS, options)
  expectArgument('histograms', 'tensors', 'values by name and step', tensors, isEntries(tensors))
  const trials = [tensors, ...(beside === undefined ? [] : [beside])].map(distributionsOf)
  const bytes = histogramPicture(trials, pictureKind(out)!, { ...DEFAULTS, ...others })
  await writeWhole(out, file => file.write(bytes))
}

function isEntries(given: unknown): boolean {
  return given instanceof Map || Object.prototype.toString.call(given) === '[object Object]'
}

function entriesOf<V>(given: unknown): [string, V][] {
  return given instanceof Map ? [...given].map(([key, value]) => [String(key), value]) : Object.entries(given as object)
}

function distributionsOf(tensors: StepTensors): Distributions {
  return new Map(
    entriesOf<unknown>(tensors).map(([name, steps]) => {
      if (!isEntries(steps)) throw new UsageError(`histograms: expected the values of ${JSON.stringify(name)} by step`)
      const entries = entriesOf<ArrayInput | readonly number[]>(steps).map(([step, values]) => [
        stepOf(step, name),
        distribution(Array.isArray(values) ? Float64Array.from(values) : (values as ArrayInput)),
      ])
      return [name, new Map(entries as [number, Distribution][])]
    }),
  )
}

function stepOf(key: string, name: string): number {
  if (/^\d+$/.test(key)) return Number(key)
  throw new UsageError(`histograms: expected steps as keys of ${JSON.stringify(name)}, got ${JSON.stringify(key)}`)
}
