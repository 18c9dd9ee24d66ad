/** Contenders side by side: rounds in which each has its turn, medians, and ratios within a round. */

import { Bench } from 'tinybench'

/** A contender of a measurement. */
export interface Timed {
  readonly engine: string
  /** Does the work for about `ms` milliseconds, at least once, and gives the median of one run, in its unit. */
  readonly turn: (ms: number) => Promise<number>
}

export interface Measured {
  readonly engine: string
  /** The time of one run: the median over rounds of the medians within a round. */
  readonly median: number
  /** The time over the first contender's in the same round; the median over rounds. */
  readonly ratio: number
}

export interface Effort {
  readonly rounds: number
  /** A contender's turn within a round takes at least that long, and at least one run. */
  readonly turnMs: number
}

/** The least duration of a sample: shorter ones would measure the clock. */
const SAMPLE_MS = 0.1

/** The duration of the warm-up, in which the optimising compiler has its turn. */
const WARMUP_MS = 20

/** A sink for answers, so that no work can be optimised away. */
const sink: { answer: unknown } = { answer: undefined }

export async function measure(contenders: readonly Timed[], { rounds, turnMs }: Effort): Promise<Measured[]> {
  const medians = contenders.map((): number[] => [])
  for (let round = 0; round < rounds; round++) {
    // The order changes from round to round, so that nobody always finds the caches as the same neighbour left them.
    const order = round % 2 === 0 ? contenders : contenders.toReversed()
    for (const contender of order) medians[contenders.indexOf(contender)]!.push(await contender.turn(turnMs))
  }
  return contenders.map(({ engine }, i) => ({
    engine,
    median: rounded(median(medians[i]!)),
    ratio: rounded(median(medians[i]!.map((value, round) => value / medians[0]![round]!))),
  }))
}

/** Times a function of this process. Within a sample it repeats runs that are too short for the clock. */
export function stopwatch(run: () => unknown): (ms: number) => Promise<number> {
  let prepared: Promise<{ repeats: number; async: boolean }> | undefined
  return async ms => {
    prepared ??= calibrate(run)
    const { repeats, async } = await prepared
    const bench = new Bench({ time: ms, iterations: 1, warmup: false, throws: true })
    bench.add('run', repeats === 1 ? run : repeated(run, repeats), { async })
    await bench.run()
    const result = bench.getTask('run')?.result
    if (result?.state !== 'completed') throw new Error(`expected a result, got ${result?.state}`)
    return result.latency.p50 / repeats
  }
}

/** The number of runs that make a sample long enough for the clock. */
async function calibrate(run: () => unknown): Promise<{ repeats: number; async: boolean }> {
  let times = 0
  const start = performance.now()
  for (;;) {
    const answer = run()
    times++
    if (answer instanceof Promise) {
      await answer
      return { repeats: 1, async: true }
    }
    const elapsed = performance.now() - start
    if (elapsed >= WARMUP_MS) return { repeats: Math.max(1, Math.round((SAMPLE_MS * times) / elapsed)), async: false }
  }
}

function repeated(run: () => unknown, repeats: number): () => void {
  return () => {
    for (let i = 0; i < repeats; i++) sink.answer = run()
  }
}

/** A time rounded to its significant digits. */
function rounded(value: number): number {
  return Number(value.toPrecision(4))
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}
