/** Trials that several definitions go through: made once a run, and what is expected of them. */
import { linkSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { REDUCTIONS } from '#dist/base/types.js'
import { expectedReductions } from '#dist/cli/bench/reference.js'
import { DTYPES, eventFilePath, indexFilePath } from '../fixtures/event-writer.js'
import { type Made, makeHuge, makeLarge, makeMany, makeSteps } from '../fixtures/make.js'
import { decodeEvent } from '../test/support/event-schema.js'
import { FLOAT16 } from './engines/plain-js.js'
import { scratchPath } from './scratch.js'

/**
 * large, many, steps, huge: as fixtures/make.ts tells; large again and otherwise: the same bytes, and other numbers; small: 1 MB; tiny: 2,500 steps as in steps; tenfold, eightfold: large as if ten or eight workers had saved it; the others:
 * a part of large, by eight workers, without payload checksums, or of another dtype.
 */
export type TrialName =
  | 'large'
  | 'large again'
  | 'large otherwise'
  | 'many'
  | 'steps'
  | 'huge'
  | 'small'
  | 'tiny'
  | 'tenfold'
  | 'eightfold'
  | 'eight workers'
  | 'unchecked'
  | OtherDtype

type OtherDtype = 'float16' | 'float64' | 'int8'

export interface Trial extends Made {
  readonly dir: string
  readonly workers: number
  /** `large, 1023 MB, 1610 tensors` */
  readonly title: string
  readonly tensorCount: number
  /** Bytes of its event files. */
  readonly byteLength: number
}

const trials = new Map<TrialName, Trial>()

export function trial(name: TrialName, quick: boolean): Trial {
  const known = trials.get(name)
  if (known !== undefined) return known
  const dir = scratchPath(name)
  const contents = make(name, dir, quick)
  const workers = name === 'tenfold' ? 10 : name === 'eight workers' || name === 'eightfold' ? 8 : 1
  const tensorCount = contents.tensors.length * contents.steps.length * workers
  const files = filesUnder(join(dir, 'events'))
  const byteLength = files.reduce((sum, path) => sum + statSync(join(dir, 'events', path)).size, 0)
  const title = `${name}, ${Math.round(byteLength / 1e6)} MB, ${tensorCount.toLocaleString('en-GB')} tensors`
  const trial = { ...contents, dir, workers, title, tensorCount, byteLength }
  trials.set(name, trial)
  return trial
}

/** Payload checksums are true, so that checking them is work; who doesn't check finds no difference. */
function make(name: TrialName, dir: string, quick: boolean): Made {
  const checksum = 'true'
  switch (name) {
    case 'large':
      return makeLarge(dir, { steps: quick ? 2 : 5, scale: quick ? 0.25 : 1, checksum })
    case 'large again':
      return repeatWorker(trial('large', quick), dir, 1)
    case 'large otherwise':
      return makeLarge(dir, { steps: quick ? 2 : 5, scale: quick ? 0.25 : 1, checksum, seed: 7 })
    case 'many':
      return makeMany(dir, { steps: quick ? 50 : 1000, checksum })
    case 'steps':
      return makeSteps(dir, { steps: quick ? 5000 : 100_000, checksum })
    case 'huge':
      return makeHuge(dir, { steps: quick ? 4 : 12, checksum })
    case 'tiny':
      return makeSteps(dir, { steps: quick ? 500 : 2500, checksum })
    case 'small':
      return makeMany(dir, { steps: 5, checksum })
    case 'tenfold':
      return repeatWorker(trial('large', quick), dir, 10)
    case 'eightfold':
      return repeatWorker(trial('large', quick), dir, 8)
    case 'eight workers':
      return makeLarge(dir, { steps: 1, scale: 1 / 8, workers: 8, checksum })
    case 'unchecked':
      return makeLarge(dir, { steps: 1 })
    default:
      return makeLarge(dir, { steps: 1, scale: 1 / 2, dtype: name, checksum })
  }
}

/** The trial of one worker as that of several, whose event files are links to the one's. */
function repeatWorker({ dir: from, ...contents }: Trial, to: string, workers: number): Made {
  for (const path of filesUnder(from)) {
    for (let worker = 0; worker < workers; worker++) {
      const copy = join(to, path.replace('worker_0', `worker_${worker}`))
      mkdirSync(dirname(copy), { recursive: true })
      if (path.startsWith('events')) linkSync(join(from, path), copy)
      else {
        const text = readFileSync(join(from, path), 'utf8').replace('"num_workers": 1', `"num_workers": ${workers}`)
        writeFileSync(copy, text.replace('worker_0', `worker_${worker}`))
      }
      if (!path.includes('worker_0')) break
    }
  }
  return contents
}

export function filesUnder(dir: string): string[] {
  return readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .filter(path => statSync(join(dir, path)).isFile())
    .sort()
}

const expectations = new Map<Trial, Float64Array>()

/** The 18 reductions of every tensor, in the order of steps, workers and records, decoded by the tests' judge. */
export function expectedOf(trial: Trial): Float64Array {
  const known = expectations.get(trial)
  if (known !== undefined) return known
  const { dir, steps, workers, tensors } = trial
  const numbers: number[] = []
  const isRepeated = dir === scratchPath('eightfold') || dir === scratchPath('tenfold')
  for (const step of steps) {
    for (let i = 0; i < workers; i++) {
      if (isRepeated && i > 0) {
        for (const number of numbers.slice(-tensors.length * REDUCTIONS.length)) numbers.push(number)
        continue
      }
      const worker = `worker_${i}`
      const file = readFileSync(join(dir, eventFilePath(step, worker)))
      const index = JSON.parse(readFileSync(join(dir, indexFilePath(step, worker)), 'utf8')) as {
        tensor_payload: { start_idx: number; length: number }[]
      }
      for (const { start_idx, length } of index.tensor_payload) {
        const { values } = decodeEvent(file.subarray(start_idx + 12, start_idx + length - 4))
        const { dtype, content } = values[0]!.tensor!
        numbers.push(...expectedReductions(elementsOf(dtype, content)))
      }
    }
  }
  const expected = Float64Array.from(numbers)
  expectations.set(trial, expected)
  return expected
}

/** @param dtype TensorFlow's number */
function elementsOf(dtype: number, { buffer, byteOffset, length }: Uint8Array): Float64Array {
  // A copy begins where every typed array may begin.
  const bytes = buffer.slice(byteOffset, byteOffset + length)
  switch (dtype) {
    case DTYPES.float32.number:
      return Float64Array.from(new Float32Array(bytes))
    case DTYPES.float64.number:
      return new Float64Array(bytes)
    case DTYPES.float16.number:
      return Float64Array.from(new Uint16Array(bytes), bits => FLOAT16[bits]!)
    case DTYPES.int8.number:
      return Float64Array.from(new Int8Array(bytes))
    default:
      throw new Error(`dtype ${dtype} is not made here`)
  }
}
