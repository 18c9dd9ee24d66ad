/** Kernels of another process (bench/peers), asked for a line at a time. */
import { type Contender, type Judge, selfTimed } from '../definition.js'
import type { Answerer } from '../processes.js'

/** @param words of the request: kernel, then what comes after the milliseconds */
export function kernel(
  engine: string,
  answerer: () => Answerer,
  [name, ...rest]: readonly (string | number)[],
  wrong: Judge<Float64Array>,
): Contender {
  const turn = async (ms: number) => {
    const [median, ...numbers] = await answerer().ask(name!, ms, ...rest)
    return { median: Number(median), answer: Float64Array.from(numbers, Number) }
  }
  return selfTimed(engine, turn, wrong)
}

/** The judge of an answer of one number. */
export function single(wrong: Judge<number>): Judge<Float64Array> {
  return ([number, ...rest]) => (rest.length > 0 ? `expected one number, got ${rest.length + 1}` : wrong(number!))
}
