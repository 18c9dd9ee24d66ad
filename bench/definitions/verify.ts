/** Every byte of a trial checked, beside a scan of it: verifying should cost what reading and checksums do. */
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
import * as ours from '../engines/ours.js'
import * as plainJs from '../engines/plain-js.js'
import { expectedOf, type Trial, type TrialName, trial } from '../trials.js'

export const verify: Definition = {
  name: 'verify',
  measures: 'verifyTrial, beside createTrial and the minimum of every tensor; files in the page cache, threads running',
  *cases({ quick }: Options): Generator<Case> {
    for (const name of ['large', 'many'] satisfies TrialName[]) {
      const input = trial(name, quick)
      const { dir, title, tensorCount, byteLength } = input
      const minima = wrongMinima(input)
      const wrong = expectSame(`${tensorCount} tensors, nothing wrong`)
      yield {
        size: title,
        byteLength,
        rounds: 5,
        ...(name === 'many' && { records: tensorCount }),
        contenders: [
          ...[2, 1, 0].map(threads => contender(`verify, threads ${threads}`, ours.verify(dir, threads), wrong)),
          ...[2, 1, 0].map(threads =>
            contender(`scan min, threads ${threads}`, ours.scanMinima(dir, threads, 'minimal'), minima),
          ),
          contender('scan min, threads 2, check full', ours.scanMinima(dir, 2, 'full'), minima),
          contender('verify --deep, threads 2', ours.verify(dir, 2, true), wrong),
          contender('only reading, Node.js', plainJs.read(dir), expectSame(byteLength)),
        ],
      }
    }
  },
}

function wrongMinima(input: Trial): Judge<Float64Array> {
  const { steps, tensors, workers } = input
  const first = REDUCTIONS.indexOf('min')
  const minima = expectedOf(input).filter((_, i) => i % REDUCTIONS.length === first)
  return expectClose(minima, row => {
    const step = steps[Math.floor(row / (tensors.length * workers))]
    return `${tensors[row % tensors.length]!.name} at step ${step}, min`
  })
}
