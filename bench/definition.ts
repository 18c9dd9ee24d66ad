/** The interface between a definition and the runner. */
import { stopwatch } from '#dist/cli/bench/measure.js'

/** Somebody who is measured. */
export interface Contender {
  readonly engine: string
  /** Does the work for about `ms` milliseconds, at least once, and gives the median of one run, in the case's unit. */
  readonly turn: (ms: number) => Promise<number>
  /** Does the work once and throws if the answer is wrong. */
  readonly check: () => Promise<void>
}

/** One size or kind of input. The first contender is the one that the others are held against. */
export interface Case {
  readonly size: string
  /** The unit of the numbers. Default: milliseconds. */
  readonly unit?: 'MB' | 'kB' | 'µs' | 'ns' | 'reads'
  /** Bytes that one run goes through, where they say something. */
  readonly byteLength?: number
  /** Records that one run goes through, where they count more than their bytes. */
  readonly records?: number
  /** At most so many rounds, where a run takes seconds. */
  readonly rounds?: number
  readonly contenders: readonly Contender[]
}

export interface Options {
  /** Small inputs and few rounds. */
  readonly quick: boolean
}

export interface Definition {
  readonly name: string
  /** One sentence: what the time is of. */
  readonly measures: string
  /** One case after the other, so that no two inputs are in memory at once. */
  readonly cases: (options: Options) => Iterable<Case> | AsyncIterable<Case>
}

/** An engine gave another answer than expected: a time of it would mean nothing. */
export class WrongAnswer extends Error {
  override readonly name = 'WrongAnswer'
}

/** Says what is wrong with an answer, if anything. */
export type Judge<A> = (answer: A) => string | undefined
/** One that has to read a file for it. */
export type LateJudge<A> = (answer: A) => string | undefined | Promise<string | undefined>

/** Somebody in this process. */
export function contender<A>(engine: string, run: () => A | Promise<A>, wrong: Judge<A>): Contender {
  return { engine, turn: stopwatch(run), check: async () => judge(engine, wrong(await run())) }
}

/** The answer of a contender with a clock of its own, and the median of one run. */
export interface Timed<A> {
  readonly median: number
  readonly answer: A
}

/** Somebody elsewhere, with a clock of their own. */
export function selfTimed<A>(engine: string, turn: (ms: number) => Promise<Timed<A>>, wrong: LateJudge<A>): Contender {
  return {
    engine,
    turn: async ms => (await turn(ms)).median,
    check: async () => judge(engine, await wrong((await turn(0)).answer)),
  }
}

function judge(engine: string, fault: string | undefined): void {
  if (fault !== undefined) throw new WrongAnswer(`${engine}: ${fault}`)
}

/** The fault of an answer that must be one value. */
export function expectSame<A>(expected: A): Judge<A> {
  return answer => (Object.is(answer, expected) ? undefined : `expected ${expected}, got ${answer}`)
}

/** The fault of numbers that must agree but for the rounding of another order of summation. */
export function expectClose(expected: Float64Array, describe: (i: number) => string): Judge<ArrayLike<number>> {
  return answer => {
    if (answer.length !== expected.length) return `expected ${expected.length} numbers, got ${answer.length}`
    const i = expected.findIndex((value, at) => !isClose(answer[at]!, value))
    return i < 0 ? undefined : `${describe(i)}: expected ${expected[i]}, got ${answer[i]}`
  }
}

function isClose(got: number, expected: number): boolean {
  return Object.is(got, expected) || got === expected || Math.abs(got - expected) <= 1e-9 * Math.abs(expected) + 1e-300
}

/** `4096` as `4 KiB`. */
export function sizeName(byteLength: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB']
  const unit = Math.min(units.length - 1, Math.floor(Math.log2(byteLength) / 10))
  return `${Math.round(byteLength / 1024 ** unit)} ${units[unit]}`
}
