/**
 * Readers beside a process that changes what they read: never a wrong number, and never an end that is not told of.
 * TRIALSCAN_SECONDS gives each reader of the library so long; default: half a second, and a tenth in the quick part.
 */

import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import {
  closePools,
  createTrial,
  evaluate,
  FormatError,
  QueryError,
  Rule,
  repairTrial,
  StoreError,
  type Trial,
  VERIFY_CODES,
  verifyTrial,
} from '#dist/index.js'
import { objects, trialscan } from '../cli/run.js'
import {
  COUNT,
  type Disturbance,
  Disturber,
  MAX_STEPS,
  NAMES,
  numbersOf,
  REDUCED,
  STEPS,
  VALUES,
  WORKERS,
  writeTrial,
} from '../support/disturber.js'
import { isLong, part } from '../support/part.js'
import { rowsOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('while-reading')
const MS = 1000 * Number(process.env.TRIALSCAN_SECONDS ?? (isLong ? 0.5 : 0.1))
const SEED = Number(process.env.TRIALSCAN_SEED ?? 20191113)
const ALL_WORKERS = Array.from({ length: WORKERS }, (_, i) => `worker_${i}`)
const disturbers: Disturber[] = []
let count = 0

afterEach(() => {
  for (const disturber of disturbers.splice(0)) disturber.kill()
})

afterAll(closePools)

/** What one reader has had. */
class Tally {
  right = 0
  readonly failures: Record<string, number> = {}

  /** @param actual what is said of a tensor: its number */
  number(actual: unknown, name: string, step: number, worker: string): void {
    expect(NAMES).toContain(name)
    expect(ALL_WORKERS).toContain(worker)
    expect(numbersOf(name, step, worker), `${name} of ${worker} at step ${step}`).toContain(actual)
    this.right++
  }

  /** All elements of a tensor. */
  elements(values: ArrayLike<unknown>, name: string, step: number, worker: string): void {
    expect(values.length).toBe(COUNT)
    const number = values[COUNT - 1] as number
    this.number(number, name, step, worker)
    for (let i = 0; i < COUNT; i++)
      if (values[i] !== (i < number ? 0 : number)) expect(values[i]).toBe(`as ${number}, at ${i}`)
  }

  /** What must not be had is told of by an error of the kinds that trials are the reason for. */
  failure(error: unknown): void {
    if (!(error instanceof StoreError || error instanceof FormatError || error instanceof QueryError)) throw error
    expect(error.message).not.toBe('')
    this.failures[error.code] = (this.failures[error.code] ?? 0) + 1
  }

  async try(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.failure(error)
    }
  }
}

interface Reading {
  readonly path: string
  readonly what: Disturbance
  readonly tally: Tally
  /** Which way round it is. */
  readonly threads: number
  /** A trial that was opened before, and looks again now. */
  readonly trial: Trial
}

/** Reads all values and reductions of its trial, as questions that are answered together. */
class ReadAll extends Rule {
  constructor(
    trial: Trial,
    readonly tally: Tally,
  ) {
    super(trial)
  }

  override setRequiredTensors(step: number): void {
    for (const { tensor } of this.#all(step)) {
      if (tensor.hasValue) {
        tensor.value()
        tensor.moments()
      }
      tensor.reduction('mean')
    }
  }

  invokeAtStep(step: number): boolean {
    for (const { tensor, worker } of this.#all(step)) {
      const { name } = tensor
      const mean = tensor.reduction('mean')
      if (mean.error) this.tally.failure(mean.error)
      else
        this.tally.number(
          name === REDUCED ? mean.value : numberOfMean(mean.value, name, step, worker),
          name,
          step,
          worker,
        )
      if (!tensor.hasValue) continue
      const [value, moments] = [tensor.value(), tensor.moments()]
      if (value.error) this.tally.failure(value.error)
      else this.tally.elements(value.value.data as ArrayLike<unknown>, name, step, worker)
      if (moments.error) this.tally.failure(moments.error)
      else {
        const { count, zeroCount } = moments.value
        expect(count).toBe(COUNT)
        this.tally.number(zeroCount, name, step, worker)
      }
    }
    return false
  }

  #all(step: number) {
    return this.reqTensors
      .workers(step)
      .flatMap(worker => this.reqTensors.select(NAMES, step, null, worker).map(tensor => ({ tensor, worker })))
  }
}

/** The number of a tensor whose mean that is; the mean itself if it is none's. */
function numberOfMean(mean: unknown, name: string, step: number, worker: string): unknown {
  return numbersOf(name, step, worker).find(number => (number * (COUNT - number)) / COUNT === mean) ?? mean
}

const options = (threads: number) => ({ threads, checkLevel: 'full' as const })

/** The readers of the library; each is called again and again. */
const READERS: Readonly<Record<string, (reading: Reading) => Promise<void>>> = {
  async value({ trial, tally }) {
    for (const step of trial.steps({ showIncompleteSteps: true })) {
      for (const name of NAMES) {
        const tensor = trial.tensor(name)
        for (const worker of tensor.workers(step)) {
          await tally.try(async () => {
            if (name === REDUCED) {
              tally.number(
                await tensor.reductionValue(step, 'mean', { worker, checkLevel: 'full' }),
                name,
                step,
                worker,
              )
            } else {
              const { data } = await tensor.value(step, { worker, checkLevel: 'full' })
              tally.elements(data as ArrayLike<unknown>, name, step, worker)
            }
          })
        }
      }
    }
  },
  async values({ trial, tally }) {
    for (const name of VALUES) {
      await tally.try(async () => {
        for (const [step, { data }] of await trial.tensor(name).values({ worker: 'worker_1', checkLevel: 'full' })) {
          tally.elements(data as ArrayLike<unknown>, name, step, 'worker_1')
        }
      })
    }
  },
  async scan({ trial, tally, threads }) {
    for (const { tensor, step, worker, error, reductions, saved } of await rowsOf(trial, options(threads))) {
      if (error) tally.failure(error)
      else tally.number(saved ? reductions.mean : reductions.max, tensor!, step!, worker)
    }
  },
  async evaluate({ trial, tally, threads }) {
    const { problems } = await evaluate(new ReadAll(trial, tally), { ...options(threads), follow: false })
    for (const { error } of problems) tally.failure(error)
  },
  async verify({ path, what, tally, threads }) {
    const { ok, problems, notes, stats } = await verifyTrial(path, { threads, deep: true })
    expect(ok).toBe(problems.length === 0)
    for (const { code } of [...problems, ...notes]) expect(VERIFY_CODES).toContain(code)
    expect(stats.records).toBeLessThanOrEqual(NAMES.length * WORKERS * MAX_STEPS)
    // A job that merely goes on does nothing wrong.
    if (what === 'grows') expect(problems).toEqual([])
    tally.right++
  },
  async repair({ path, what, tally, threads }) {
    const parent = mkdtempSync(join(scratch, 'repaired-'))
    const out = join(parent, 'copy')
    await tally.try(async () => {
      try {
        const { leftOut } = await repairTrial(path, out, { threads, checksums: threads > 0 })
        if (what === 'grows') expect(leftOut).toEqual([])
      } catch (error) {
        expect(readdirSync(parent)).toEqual([])
        throw error
      }
      expect(readdirSync(parent)).toEqual(['copy'])
      expect((await verifyTrial(out)).problems).toEqual([])
      const copy = await createTrial(out, { requireCollections: false })
      for (const { tensor, step, worker, error, reductions, saved } of await rowsOf(copy, { checkLevel: 'full' })) {
        expect(error).toBeUndefined()
        tally.number(saved ? reductions.mean : reductions.max, tensor!, step!, worker)
      }
      await copy.close()
    })
    rmSync(parent, { recursive: true })
  },
}

/** Files are torn, and only checksums tell; the commands that don't look at these may be wrong then. */
const isTorn = (what: Disturbance) => what === 'is rewritten'

/** The commands: what they print, by their exit code. */
const COMMANDS: Readonly<
  Record<
    string,
    {
      readonly args: readonly string[]
      readonly codes: readonly number[]
      read?(stdout: string, tally: Tally, code: number): void
    }
  >
> = {
  check: {
    args: ['--rule', 'AllZero,tensor_regex=^[abc]$,threshold=0', '--format', 'jsonl'],
    codes: [1, 3, 4, 5],
    read(stdout, tally, code) {
      let problems = 0
      for (const line of objects(stdout)) {
        if ('value' in line) {
          const { value, tensor, step, worker } = line as {
            value: number
            tensor: string
            step: number
            worker: string
          }
          tally.number((value * COUNT) / 100, tensor, step, worker)
        } else if ('problem' in line) problems++
      }
      if (problems > 0) expect(code).toBe(4)
    },
  },
  ls: {
    args: ['--json'],
    codes: [0, 3, 4, 5],
    read(stdout, tally, code) {
      if (code === 3 || code === 5) return
      const { tensors, steps } = JSON.parse(stdout)
      for (const { name, dtype, shape, error } of tensors) {
        expect(NAMES).toContain(name)
        if (!error && name !== REDUCED && dtype !== null) expect([dtype, shape]).toEqual(['float32', [COUNT]])
      }
      expect(steps.GLOBAL.numbers).toEqual([...steps.GLOBAL.numbers].sort((a, b) => a - b))
      for (const step of steps.GLOBAL.numbers) expect(step).toBeLessThan(MAX_STEPS)
      tally.right++
    },
  },
  show: {
    args: ['b', '--step', String(STEPS - 1), '--format', 'json'],
    codes: [0, 3, 4, 5],
    read(stdout, tally, code) {
      if (code !== 0) return expect(stdout).toBe('')
      const { tensor, step, worker, values, max } = JSON.parse(stdout)
      tally.elements(values, tensor, step, worker)
      tally.number(max, tensor, step, worker)
    },
  },
  verify: {
    args: ['--format', 'jsonl', '--deep'],
    codes: [0, 3, 4, 5],
    read: (stdout, tally) => {
      if (objects(stdout).length > 0) tally.right++
    },
  },
  scan: {
    args: ['--format', 'jsonl', '--reductions', 'max'],
    codes: [0, 3, 4, 5],
    read(stdout, tally) {
      for (const { tensor, step, worker, max, error } of objects(stdout) as Record<string, never>[]) {
        if (!error && tensor !== REDUCED) tally.number(max, tensor!, step!, worker!)
      }
    },
  },
}

async function begin(what: Disturbance): Promise<{ path: string; disturber: Disturber }> {
  const path = join(scratch, `trial${count++}`)
  writeTrial(path)
  const disturber = await Disturber.start(what, path, SEED + count)
  disturbers.push(disturber)
  return { path, disturber }
}

const KINDS: readonly Disturbance[] = [
  'grows',
  'is replaced',
  'is rewritten',
  'shrinks and grows again',
  'vanishes and comes back',
]

describe.each(part(KINDS, kind => kind === 'is replaced'))('a trial that %s', what => {
  it('answers rightly, or says what is wrong, to all readers of the library', async () => {
    const { path, disturber } = await begin(what)
    const right = new Map<string, number>()
    for (const [name, read] of Object.entries(READERS)) {
      const tally = new Tally()
      const startedAt = performance.now()
      // One that is opened once and looks again now and then, and new ones.
      let trial: Trial | undefined
      let rounds = 0
      for (; rounds < 2 || performance.now() - startedAt < MS; rounds++) {
        await tally.try(async () => {
          if (rounds % 3 === 0) {
            await trial?.close()
            trial = undefined
          }
          trial ??= await createTrial(path, { refresh: rounds % 2 === 0 ? 'manual' : 'auto' })
          await read({ path, what, tally, threads: rounds % 3, trial })
        })
      }
      await trial?.close()
      right.set(name, tally.right)
    }
    const changes = await disturber.stop()
    expect(changes).toBeGreaterThan(10)
    // Of some that need the whole of the trial at once nothing may come but errors.
    const needed = what === 'grows' ? Object.keys(READERS) : ['value', 'scan', 'evaluate', 'verify']
    expect(needed.filter(name => right.get(name) === 0)).toEqual([])
    // Left in peace it is whole.
    expect((await verifyTrial(path)).stats.records).toBeGreaterThan(0)
  })

  it('lets every command end as documented', async () => {
    const { path, disturber } = await begin(what)
    const tallies = new Map(Object.keys(COMMANDS).map(name => [name, new Tally()]))
    const startedAt = performance.now()
    for (let round = 0; round < 1 || performance.now() - startedAt < MS; round++) {
      for (const [name, { args, codes, read }] of Object.entries(COMMANDS)) {
        const { code, stdout, stderr } = await trialscan(name, path, ...args)
        expect(codes, `${name}: ${stderr}`).toContain(code)
        expect(stderr).not.toMatch(/bug of trialscan|^\s+at /m)
        if (!isTorn(what)) read?.(stdout, tallies.get(name)!, code!)
      }
    }
    const changes = await disturber.stop()
    expect(changes).toBeGreaterThan(10)
  })
})
