/** The CPU time of a scan's rows, on all threads together. */

import { REDUCTIONS } from '#dist/base/types.js'
import { createTrial, type Scan } from '#dist/index.js'
import { type Case, type Contender, type Definition, expectClose, type Options, selfTimed } from '../definition.js'
import { NAME } from '../engines/ours.js'
import { expectedOf, type Trial, trial } from '../trials.js'

export const rows: Definition = {
  name: 'rows',
  measures: 'CPU time of trial.scan, user and system, of all threads, for each row; files in the page cache',
  *cases({ quick }: Options): Generator<Case> {
    const many = trial('many', quick)
    yield {
      size: many.title,
      unit: 'µs',
      rounds: 9,
      contenders: [1, 2, 0].flatMap(threads => [asObjects(many, threads), asColumns(many, threads)]),
    }
  },
}

/** Reads a trial's numbers into an array, a row after the other. */
type Reader = (scan: Scan, numbers: Float64Array) => Promise<void>

const asObjects = (input: Trial, threads: number): Contender =>
  contenderOf('objects', input, threads, async (scan, numbers) => {
    let at = 0
    for await (const { reductions, error } of scan) {
      if (error) throw error
      for (const name of REDUCTIONS) numbers[at++] = reductions[name] as number
    }
  })

const asColumns = (input: Trial, threads: number): Contender =>
  contenderOf('columns', input, threads, async (scan, numbers) => {
    let first = 0
    for await (const { length, reductions, failed } of scan.columns()) {
      if (failed.length > 0) throw new Error(`expected no failed rows, got ${failed.length}`)
      for (const [k, name] of REDUCTIONS.entries()) numbers.set(reductions[name]!, k * input.tensorCount + first)
      first += length
    }
  })

function contenderOf(form: 'objects' | 'columns', input: Trial, threads: number, read: Reader): Contender {
  const turn = async () => {
    const trial = await createTrial(input.dir, { threads })
    const numbers = new Float64Array(input.tensorCount * REDUCTIONS.length)
    const before = process.cpuUsage()
    await read(trial.scan({ threads, reductions: 'all' }), numbers)
    const { user, system } = process.cpuUsage(before)
    await trial.close()
    const answer = form === 'objects' ? numbers : byRow(numbers, input.tensorCount)
    return { median: (user + system) / input.tensorCount, answer }
  }
  return selfTimed(
    `${NAME}, ${form}, threads ${threads}`,
    turn,
    expectClose(expectedOf(input), i => `number ${i}`),
  )
}

/** Columns, one after the other, as rows. */
function byRow(columns: Float64Array, rows: number): Float64Array {
  return columns.map((_, i) => columns[(i % REDUCTIONS.length) * rows + Math.floor(i / REDUCTIONS.length)]!)
}
