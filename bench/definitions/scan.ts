/** The whole way through the library: open a trial on disk and reduce all of it. */
import { REDUCTIONS } from '#dist/base/types.js'
import {
  type Case,
  contender,
  type Definition,
  expectClose,
  expectSame,
  type Judge,
  type Options,
} from '../definition.js'
import { single } from '../engines/answers.js'
import * as native from '../engines/native.js'
import * as ours from '../engines/ours.js'
import * as plainJs from '../engines/plain-js.js'
import { expectedOf, type Trial, type TrialName, trial } from '../trials.js'

export const scan: Definition = {
  name: 'scan',
  measures: 'createTrial, and all 18 reductions of every tensor; files in the page cache, threads running',
  *cases({ quick }: Options): Generator<Case> {
    for (const name of ['large', 'many'] satisfies TrialName[]) {
      const input = trial(name, quick)
      const { dir, title, tensorCount, byteLength } = input
      const wrong = wrongReductions(input)
      const wrongLength = expectSame(byteLength)
      yield {
        size: title,
        byteLength,
        rounds: 5,
        ...(name === 'many' && { records: tensorCount }),
        contenders: [
          ...[2, 1, 0].map(threads =>
            contender(`${ours.NAME}, threads ${threads}`, ours.scan(dir, threads, 'minimal'), wrong),
          ),
          contender(`${ours.NAME}, threads 2, check full`, ours.scan(dir, 2, 'full'), wrong),
          contender(plainJs.NAME, plainJs.scan(dir), wrong),
          contender('only reading, Node.js', plainJs.read(dir), wrongLength),
          ...[1, 2].flatMap(threads =>
            native.contenders(
              `only reading, threads ${threads}`,
              ['read', `${dir}/events`, threads],
              single(wrongLength),
            ),
          ),
        ],
      }
    }
    for (const name of ['eight workers', 'unchecked', 'float16', 'float64', 'int8'] satisfies TrialName[]) {
      yield kindCase(trial(name, quick))
    }
  },
}

/** Other kinds of trials, beside the limit alone. */
function kindCase(trial: Trial): Case {
  const { dir, title, byteLength } = trial
  const wrong = wrongReductions(trial)
  return {
    size: title,
    byteLength,
    rounds: 3,
    contenders: [
      contender(`${ours.NAME}, threads 2`, ours.scan(dir, 2, 'minimal'), wrong),
      contender(`${ours.NAME}, threads 2, check full`, ours.scan(dir, 2, 'full'), wrong),
      ...native.contenders(`only reading, threads 2`, ['read', `${dir}/events`, 2], single(expectSame(byteLength))),
    ],
  }
}

export function wrongReductions(trial: Trial): Judge<Float64Array> {
  const { steps, tensors, workers } = trial
  return expectClose(expectedOf(trial), i => {
    const row = Math.floor(i / REDUCTIONS.length)
    const step = steps[Math.floor(row / (tensors.length * workers))]
    return `${tensors[row % tensors.length]!.name} at step ${step}, ${REDUCTIONS[i % REDUCTIONS.length]}`
  })
}
