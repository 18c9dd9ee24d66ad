/** What the fuzzers start from: every form of every reader's input, small. */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DTYPES, type DTypeName, encodeEvent, type TensorSpec, type WireForm } from '../../fixtures/event-writer.js'
import { readFrames } from '../support/event-schema.js'
import { Chance, EDGES } from './bytes.js'

const PLACES = ['content', 'packed', 'unpacked', 'mixed'] as const
const FORMS: readonly WireForm[] = [
  {},
  { order: 'reversed' },
  { unknownFields: true },
  { paddedVarints: true },
  { splitMessages: true },
  { overridden: true },
  { order: 'reversed', unknownFields: true, paddedVarints: true, splitMessages: true, overridden: true },
]

const HISTOGRAM = { min: 1, max: 3, num: 3, sum: 6, sumSquares: 14, bucketLimit: [1.5, 2.5, 3.5], bucket: [1, 1, 1] }

/** Payloads of Events: each dtype in each place and form, scalars, histograms, other Events, and those of the fixtures. */
export function eventPayloads(fixtures: string): Uint8Array[] {
  const chance = new Chance(5)
  const generated = (Object.keys(DTYPES) as DTypeName[]).flatMap((dtype, d) =>
    PLACES.flatMap((place, p) =>
      FORMS.map((form, f) => {
        const count = [0, 1, 2, 6][(d + p + f) % 4]!
        const tensor: TensorSpec =
          dtype === 'string'
            ? { dtype, shape: [count], strings: Array.from({ length: count }, (_, i) => ['', 'ß漢', 'ab'][i % 3]!) }
            : { dtype, shape: [count, 1], values: numbers(dtype, count, chance), place, dimNames: f % 2 === 0 }
        return encodeEvent({ wallTime: 1, step: f, tag: 't', tensor, mode: 'EVAL', modeStep: p }, form)
      }),
    ),
  )
  const tensor: TensorSpec = { dtype: 'float64', shape: [2, 3], values: [1, -2, 3, NaN, Infinity, 0] }
  const repeated: TensorSpec = { dtype: 'float32', shape: [1000, 1000], values: [1, 2], place: 'packed' }
  const others = [
    encodeEvent({ wallTime: 1, step: 0, fileVersion: 'brain.Event:2' }),
    encodeEvent({ wallTime: 1, step: 5, tag: 't', simpleValue: 0.5 }),
    encodeEvent({ wallTime: 1, step: 5, tag: 't', tensor: repeated }),
    encodeEvent({
      wallTime: 1,
      step: 5,
      values: [
        { tag: 'a', tensor },
        { tag: 't', tensor },
        { tag: '', tensor },
      ],
    }),
    encodeEvent({ wallTime: 1, step: 5, tag: 't', histogram: HISTOGRAM }),
  ]
  return [...generated, ...others, ...fixturePayloads(fixtures)]
}

function numbers(dtype: DTypeName, count: number, chance: Chance): (number | bigint)[] {
  return Array.from({ length: count * DTYPES[dtype].parts }, () => {
    if (dtype === 'int64') return BigInt.asIntN(64, chance.pick(EDGES))
    if (dtype === 'uint64') return chance.pick(EDGES)
    if (/float|complex/.test(dtype)) return chance.pick([NaN, Infinity, -Infinity, 0, -0, 1, -2.5, 1e-40, 3e38])
    return chance.below(128) % (dtype === 'bool' ? 2 : 128)
  })
}

/** Of each file of the fixtures the first records, no two of one length. */
function fixturePayloads(fixtures: string): Uint8Array[] {
  const known = new Set<number>()
  return eventFiles(fixtures).flatMap(file =>
    readFrames(file)
      .filter(({ payload: { length } }) => length < 700 && !known.has(length) && known.add(length))
      .map(({ payload }) => payload.slice()),
  )
}

export function eventFiles(fixtures: string): Uint8Array[] {
  return filesIn(fixtures, path => path.endsWith('.tfevents'))
}

/** The contents of the files below a directory whose paths are wanted, in the order of the paths. */
export function filesIn(directory: string, isWanted: (path: string) => boolean): Uint8Array[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter(isWanted)
    .sort()
    .map(path => new Uint8Array(readFileSync(join(directory, path))))
}
