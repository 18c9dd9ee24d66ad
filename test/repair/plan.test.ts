/** What is decided about an event file that a hundred thousand index files name: in time, whatever they say. */

import { describe, expect, it } from 'vitest'
import type { WholeRecord } from '#dist/integrity/repair/plan/known.js'
import { planFile } from '#dist/integrity/repair/plan/plan.js'
import { part } from '../support/part.js'

const COUNT = 100_000
const PATH = 'events/000000000001/000000000001_worker_0.tfevents'
const BYTES = 100

const recordAt = (i: number, step: number, names: readonly string[]): WholeRecord => ({
  startByte: i * BYTES,
  byteLength: BYTES,
  step,
  values: names.map(name => ({ name, mode: 0, modeStep: -1 })),
})

type Known = Parameters<typeof planFile>[2][number]

function indexOf(i: number, entries: readonly (readonly [name: string, startByte: number])[] | null, step = 1): Known {
  const tensors = entries?.map(([name, startByte]) => ({ name, startByte, byteLength: BYTES })) ?? []
  const content = { mode: 'TRAIN', modeStep: 1, eventFile: PATH, tensors, shapes: [] } as const
  return { step, worker: `worker_${i}`, content: entries && content, saved: null, tellsMode: false }
}

/** Quadratic work would be 10^10 steps: minutes. */
describe('an event file of many records that as many index files name', () => {
  const numbers = Array.from({ length: COUNT }, (_, i) => i)
  const file = (records: readonly WholeRecord[]) => ({ byteLength: COUNT * BYTES, records, problems: [] })

  const cases: readonly [string, readonly WholeRecord[], readonly Known[], number][] = [
    ['all tell of the first', numbers.map(i => recordAt(i, 1, ['n'])), numbers.map(i => indexOf(i, [['n', 0]])), 1],
    [
      'each tells of one',
      numbers.map(i => recordAt(i, 1, ['n'])),
      numbers.map(i => indexOf(i, [['n', i * BYTES]])),
      COUNT,
    ],
    ['none can be read', numbers.map(i => recordAt(i, 1, [`n${i}`])), numbers.map(i => indexOf(i, null)), COUNT],
    [
      'all tell of the first, and of one that is lost',
      numbers.map(i => recordAt(i, 1, ['n', 'm'])),
      numbers.map(i =>
        indexOf(i, [
          ['n', i * BYTES + 1],
          ['m', 0],
        ]),
      ),
      1,
    ],
    [
      'they are of as many steps',
      numbers.map(i => recordAt(i, i, ['n'])),
      numbers.map(i => indexOf(i, null, i)),
      COUNT,
    ],
    ['they are of other steps', numbers.map(i => recordAt(i, i, ['n'])), numbers.map(i => indexOf(i, null, -1 - i)), 0],
  ]
  it.each(part(cases, (_, i) => i === 1 || i === 4))('and %s', (_, records, known, kept) => {
    const plan = planFile(PATH, file(records), known)
    expect(plan.indexes).toHaveLength(COUNT)
    expect(plan.kept.length).toBe(kept)
  })
})
