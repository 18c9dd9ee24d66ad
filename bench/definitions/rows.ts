/** What the rows of a scan cost: CPU time, of all threads together. */
import { createTrial } from '#dist/index.js'
import { REDUCTIONS } from '#dist/types.js'
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
      contenders: [1, 2, 0].map(threads => asObjects(many, threads)),
    }
  },
}

function asObjects(made: Trial, threads: number): Contender {
  const turn = async () => {
    const trial = await createTrial(made.dir, { threads })
    const numbers = new Float64Array(made.tensorCount * REDUCTIONS.length)
    let at = 0
    const before = process.cpuUsage()
    for await (const { reductions, error } of trial.scan({ threads, reductions: 'all' })) {
      if (error) throw error
      for (const name of REDUCTIONS) numbers[at++] = reductions[name] as number
    }
    const { user, system } = process.cpuUsage(before)
    await trial.close()
    return { median: (user + system) / made.tensorCount, answer: numbers.subarray(0, at) }
  }
  return selfTimed(
    `${NAME}, objects, threads ${threads}`,
    turn,
    expectClose(expectedOf(made), i => `number ${i}`),
  )
}
