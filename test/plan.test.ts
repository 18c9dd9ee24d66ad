/** Records into jobs: every record once, in order, in batches that hold it. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  columnsOf,
  inFileOrder,
  listPlaces,
  placesOfRun,
  type RecordPlace,
  type RecordRun,
} from '#dist/scan/job/plan/coalesce.js'
import { DEFAULT_MEMORY, MIN_MEMORY, PART_BYTES, RECORD_LIMIT, windowByteLength } from '#dist/scan/job/plan/memory.js'
import { type PlannedJob, placesOf, planJobs, type ScanJob } from '#dist/scan/job/scan-job.js'

const KIB = 1 << 10
const MIB = 1 << 20
const store = { kind: 'local', root: '/trial' } as const

function place(startByte: number, byteLength: number, file = 'a', tag = `t${startByte}`, step = 0): RecordPlace {
  return { file, tag, startByte, byteLength, step }
}

function plan(records: readonly RecordPlace[], memory = DEFAULT_MEMORY): PlannedJob[] {
  return [...planJobs(records, { store, checkLevel: 1, memory, known: 3 })]
}

/** The jobs of a plan that must have nothing but scan jobs. */
function scanJobs(records: readonly RecordPlace[], memory?: number): ScanJob[] {
  return plan(records, memory).map(({ job }) => {
    expect(job.kind).toBe('scan')
    return job as ScanJob
  })
}

/** Neighbouring records of one length, `gap` bytes apart. */
function row(count: number, byteLength: number, gap = 0, file = 'a'): RecordPlace[] {
  return Array.from({ length: count }, (_, i) => place(i * (byteLength + gap), byteLength, file))
}

it('jobs come to few numbers each, however many are asked of a record', () => {
  const statistics = [{ kind: 'histogram', numbers: [1000] }] as const
  const jobs = [...planJobs(row(1000, 100), { store, checkLevel: 1, memory: DEFAULT_MEMORY, known: 3, statistics })]
  expect(jobs.map(({ count }) => count)).toEqual([262, 262, 262, 214])
})

describe('batches', () => {
  const ranges = (records: readonly RecordPlace[]): [number, number, number][] =>
    scanJobs(records).flatMap(({ batches }) => batches.map(b => [b.startByte, b.endByte, b.count] as const)) as never

  it('take neighbours together', () => {
    expect(ranges(row(10, 100))).toEqual([[0, 1000, 10]])
  })

  it('read over a gap of 64 KiB, and no larger one', () => {
    expect(ranges([place(0, 100), place(100 + 64 * KIB, 50)])).toEqual([[0, 150 + 64 * KIB, 2]])
    expect(ranges([place(0, 100), place(101 + 64 * KIB, 50)])).toEqual([
      [0, 100, 1],
      [101 + 64 * KIB, 151 + 64 * KIB, 1],
    ])
  })

  it('end at 1 MiB, and hold a longer record alone', () => {
    expect(ranges(row(3, 512 * KIB))).toEqual([
      [0, MIB, 2],
      [MIB, MIB + 512 * KIB, 1],
    ])
    expect(ranges([place(0, 10), place(10, 3 * MIB), place(10 + 3 * MIB, 10)])).toEqual([
      [0, 10, 1],
      [10, 10 + 3 * MIB, 1],
      [10 + 3 * MIB, 20 + 3 * MIB, 1],
    ])
  })

  it('hold at most 4096 records', () => {
    expect(ranges(row(5000, 20)).map(([, , count]) => count)).toEqual([4096, 904])
  })

  it('never span two files', () => {
    expect(ranges([place(0, 10, 'a'), place(10, 10, 'b'), place(20, 10, 'b')])).toEqual([
      [0, 10, 1],
      [10, 30, 2],
    ])
  })

  it('read in file order what is asked for in another, and what overlaps once', () => {
    const records = [place(300, 100), place(0, 100), place(50, 400), place(0, 100, 'a', 'again'), place(100, 100)]
    const [job, ...others] = scanJobs(records)
    expect(others).toEqual([])
    expect([...job!.order]).toEqual([1, 3, 2, 4, 0])
    expect(job!.batches).toEqual([{ file: 0, startByte: 0, endByte: 450, first: 0, count: 5 }])
    expect([...job!.records.startByte]).toEqual(records.map(({ startByte }) => startByte))
  })
})

describe('jobs', () => {
  it('are about 8 MiB or 16384 records', () => {
    const bySize = scanJobs(row(40, MIB))
    expect(bySize.map(({ order }) => order.length)).toEqual([8, 8, 8, 8, 8])
    const byNumber = scanJobs(row(40_000, 20))
    expect(byNumber.map(({ order }) => order.length)).toEqual([16384, 16384, 7232])
  })

  it('name every file and tag once', () => {
    const records = [place(0, 10, 'a', 'x', 1), place(10, 10, 'a', 'y', 1), place(0, 10, 'b', 'x', 2)]
    const { files, tags, records: columns } = columnsOf(records)
    expect([files, tags]).toEqual([
      ['a', 'b'],
      ['x', 'y'],
    ])
    expect([[...columns.file], [...columns.tag], [...columns.step]]).toEqual([
      [0, 0, 1],
      [0, 1, 0],
      [1, 1, 2],
    ])
  })

  it('of a large record are its parts, and its neighbours stay in order', () => {
    const large = 5 * PART_BYTES - 1
    const jobs = plan([place(0, 10), place(10, large), place(10 + large, 10)])
    expect(jobs.map(({ job, count }) => [job.kind, count, job.records.startByte[0]])).toEqual([
      ['scan', 1, 0],
      ...Array.from({ length: 5 }, () => ['part', 1, 10]),
      ['scan', 1, 10 + large],
    ])
    expect(jobs.flatMap(({ job }) => (job.kind === 'part' ? [[job.part, job.parts]] : []))).toEqual(
      Array.from({ length: 5 }, (_, part) => [part, 5]),
    )
  })

  it('cut a record into the same parts at every memory', () => {
    for (const memory of [MIN_MEMORY, 8 * MIB, DEFAULT_MEMORY, 2 ** 31]) {
      expect(plan([place(0, 40 * MIB)], memory).length).toBe(3)
      expect(windowByteLength(memory)).toBeLessThanOrEqual(memory / 2)
    }
  })

  it('are made one by one', () => {
    let asked = 0
    function* records(): Generator<RecordPlace> {
      for (const record of row(100_000, MIB)) {
        asked++
        yield record
      }
    }
    const jobs = planJobs(records(), { store, checkLevel: 1, memory: DEFAULT_MEMORY, known: 3 })
    expect(jobs.next().value?.count).toBe(8)
    expect(asked).toBe(8)
    expect(jobs.next().value).toMatchObject({ count: 8 })
    expect(asked).toBe(16)
  })

  it('end where a row without a record stands', () => {
    const [a, b, c] = row(3, 100)
    const none = { recordCount: 0 }
    const jobs = [
      ...planJobs([none, a!, none, none, b!, c!], { store, checkLevel: 1, memory: DEFAULT_MEMORY, known: 3 }),
    ]
    const placed = { tornasole: false, row: null }
    expect(jobs.map(plan => [plan.combined.length, placesOf(plan)])).toEqual([
      [1, []],
      [0, [{ ...a, ...placed }]],
      [2, []],
      [
        0,
        [
          { ...b, ...placed },
          { ...c, ...placed },
        ],
      ],
    ])
  })

  it('tell which records are of one row', () => {
    const combined = { recordCount: 2 }
    const [a, b, c] = row(3, 100)
    const [plan] = planJobs([a!, { ...b!, combined }, { ...c!, combined }], {
      store,
      checkLevel: 1,
      memory: DEFAULT_MEMORY,
      known: 3,
    })
    expect(plan!.combined).toEqual([
      { at: 1, row: combined },
      { at: 2, row: combined },
    ])
    expect(placesOf(plan!, 1).map(place => place.combined)).toEqual([combined, combined])
  })

  it('are the same of records that are listed together as of each for itself', () => {
    const lengths = fc.oneof(fc.integer({ min: 0, max: 3 * MIB }), fc.integer({ min: 0, max: 200 }))
    const list = fc
      .array(lengths, { minLength: 1, maxLength: 40 })
      .map(lengths =>
        listPlaces(lengths.map((byteLength, i) => ({ name: `t${i % 7}`, startByte: 3 * MIB * i, byteLength }))),
      )
    const runs = fc.array(
      fc.record({ list: fc.nat(2), file: fc.constantFrom('a', 'b'), step: fc.nat(9), isRun: fc.boolean() }),
      { maxLength: 30 },
    )
    fc.assert(
      fc.property(fc.tuple(list, list, list), runs, (lists, runs) => {
        const runOf = ({ list, file, step }: { list: number; file: string; step: number }): RecordRun => {
          const row = { worker: `w${step % 2}`, mode: 'EVAL', modeStep: step } as const
          return { list: lists[list]!, file, step, tornasole: false, row }
        }
        const places = runs.flatMap(run => [...placesOfRun(runOf(run))])
        const some = runs.flatMap((run): (RecordPlace | RecordRun)[] =>
          run.isRun ? [runOf(run)] : [...placesOfRun(runOf(run))],
        )
        for (const memory of [DEFAULT_MEMORY, MIN_MEMORY]) {
          const context = { store, checkLevel: 1, memory, known: 3 }
          const jobs = [...planJobs(some, context)]
          expect(jobs.map(job => [job.count, job.job.kind, placesOf(job)])).toEqual(
            plan(places, memory).map(job => [job.count, job.job.kind, placesOf(job)]),
          )
        }
      }),
      { numRuns: 60 },
    )
  })

  it('end within a list that is longer than a job', () => {
    const list = listPlaces(row(40_000, 100).map(({ tag: name, ...place }) => ({ name, ...place })))
    const run = { list, file: 'a', step: 3, row: { worker: 'w', mode: 'TRAIN', modeStep: 3 } } as const
    const jobs = [...planJobs([run], { store, checkLevel: 1, memory: DEFAULT_MEMORY, known: 3 })]
    expect(jobs.map(({ count }) => count)).toEqual([16_384, 16_384, 7232])
    expect(placesOf(jobs[2]!).map(({ startByte }) => startByte)).toEqual(Array.from(list.startByte.subarray(32_768)))
  })

  it('are none of no records', () => {
    expect(plan([])).toEqual([])
  })
})

describe('hostile lengths', () => {
  it.each([0, 1, 15, RECORD_LIMIT + 1, 1e15, Number.MAX_SAFE_INTEGER])('of %d make no batch longer', byteLength => {
    const jobs = scanJobs([place(0, 100), place(100, byteLength), place(100, 100), place(200, 100)])
    expect(jobs.length).toBe(1)
    expect(jobs[0]!.batches).toEqual([{ file: 0, startByte: 0, endByte: 300, first: 0, count: 4 }])
  })

  it('of 2^32 - 1 are parts, which find out', () => {
    expect(plan([place(0, RECORD_LIMIT)]).length).toBe(256)
  })
})

const places: fc.Arbitrary<RecordPlace> = fc.record({
  file: fc.constantFrom('a', 'b', 'c'),
  tag: fc.constantFrom('x', 'y', 'z'),
  startByte: fc.oneof(fc.nat(4 * MIB), fc.nat(2 ** 40)),
  byteLength: fc.oneof(
    fc.nat(1000),
    fc.nat(3 * MIB),
    fc.nat(70 * MIB),
    fc.constantFrom(0, 15, 16, RECORD_LIMIT, RECORD_LIMIT + 1, 1e15),
  ),
  step: fc.nat(1e6),
})

it('any plan has every record once, in order, within its batch and the memory', () => {
  fc.assert(
    fc.property(
      fc.array(places, { maxLength: 60 }),
      fc.constantFrom(MIN_MEMORY, 16 * MIB, DEFAULT_MEMORY),
      (records, memory) => {
        let next = 0
        let nextPart = 0
        for (const { job, count } of plan(records, memory)) {
          const columns = job.records
          const own = records.slice(next, next + count)
          expect(
            own.map((_, i) => ({
              file: job.files[columns.file[i]!],
              tag: job.tags[columns.tag[i]!],
              startByte: columns.startByte[i],
              byteLength: columns.byteLength[i],
              step: columns.step[i],
            })),
          ).toEqual(own)
          if (job.kind === 'part') {
            expect([job.part, count]).toEqual([nextPart, 1])
            nextPart = job.part + 1 === job.parts ? 0 : nextPart + 1
            if (nextPart === 0) next++
            continue
          }
          next += count
          const seen: number[] = []
          for (const batch of job.batches) {
            expect(batch.first).toBe(seen.length)
            expect(batch.endByte - batch.startByte).toBeLessThanOrEqual(Math.max(MIB, windowByteLength(memory)))
            for (const record of job.order.subarray(batch.first, batch.first + batch.count)) {
              seen.push(record)
              expect(columns.file[record]).toBe(batch.file)
              expect(columns.startByte[record]).toBeGreaterThanOrEqual(batch.startByte)
              const byteLength = columns.byteLength[record]!
              if (byteLength > RECORD_LIMIT) continue
              expect(columns.startByte[record]! + byteLength).toBeLessThanOrEqual(batch.endByte)
            }
          }
          expect(seen.sort((a, b) => a - b)).toEqual(own.map((_, i) => i))
        }
        expect([next, nextPart]).toEqual([records.length, 0])
      },
    ),
    { numRuns: 300, seed: 1 },
  )
})

describe('the order of records in their files', () => {
  it('is by file, by position, and of equal places by row', () => {
    const places = fc.array(fc.tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 9 })), { maxLength: 40 })
    fc.assert(
      fc.property(places, places => {
        const { records } = columnsOf(places.map(([file, startByte]) => place(startByte, 1, `file ${file}`)))
        const { file, startByte } = records
        const expected = places.map((_, i) => i)
        expected.sort((a, b) => file[a]! - file[b]! || startByte[a]! - startByte[b]! || a - b)
        expect([...inFileOrder(records)]).toEqual(expected)
      }),
    )
  })
})
