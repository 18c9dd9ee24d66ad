/** Contenders side by side in one process: rounds in which each has its turn, medians, and ratios within a round. */
import { Bench } from 'tinybench'
import type { Contender } from './definition.js'

export interface Measured {
  readonly engine: string
  /** Of one run: the median over rounds of the medians within a round. */
  readonly medianMs: number
  /** Its time over that of the first contender in the same round, the median over rounds. */
  readonly ratio: number
}

export interface Effort {
  readonly rounds: number
  /** A contender's turn within a round takes at least that long, and at least one run. */
  readonly turnMs: number
}

/** Shorter samples would measure the clock. */
const SAMPLE_MS = 0.1

/** Where answers go, so that nobody may skip the work. */
const sink: { answer: unknown } = { answer: undefined }

export async function measure(contenders: readonly Contender[], { rounds, turnMs }: Effort): Promise<Measured[]> {
  const tasks: { name: string; repeats: number; async: boolean; run: () => unknown }[] = []
  for (const { engine, run } of contenders) {
    const { repeats, async } = await calibrate(run)
    tasks.push({ name: engine, repeats, async, run: repeats === 1 ? run : repeated(run, repeats) })
  }
  const medians = tasks.map((): number[] => [])
  for (let round = 0; round < rounds; round++) {
    const warmupTime = round === 0 ? turnMs : 0
    const bench = new Bench({ time: turnMs, iterations: 1, warmupTime, warmupIterations: 1, throws: true })
    // Who comes first changes, so that nobody always finds the caches as the same neighbour left them.
    const order = round % 2 === 0 ? tasks : tasks.toReversed()
    for (const { name, run, async } of order) bench.add(name, run, { async })
    await bench.run()
    tasks.forEach(({ name, repeats }, i) => {
      const result = bench.getTask(name)?.result
      if (result?.state !== 'completed') throw new Error(`${name}: expected a result, got ${result?.state}`)
      medians[i]!.push(result.latency.p50 / repeats)
    })
  }
  return tasks.map(({ name }, i) => ({
    engine: name,
    medianMs: median(medians[i]!),
    ratio: median(medians[i]!.map((time, round) => time / medians[0]![round]!)),
  }))
}

/** How often a contender must run for a sample that the clock can see. */
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
    // Long enough for the optimising compiler to have had its turn.
    if (elapsed >= 20) return { repeats: Math.max(1, Math.round((SAMPLE_MS * times) / elapsed)), async: false }
  }
}

function repeated(run: () => unknown, repeats: number): () => void {
  return () => {
    for (let i = 0; i < repeats; i++) sink.answer = run()
  }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}
