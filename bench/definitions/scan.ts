/** The whole way through the library: open a trial on disk and reduce all of it. */
import { REDUCTIONS } from '#dist/types.js'
import { type Case, contender, type Definition, expectClose, expectSame, type Options } from '../definition.js'
import { single } from '../engines/answers.js'
import * as native from '../engines/native.js'
import * as ours from '../engines/ours.js'
import * as plainJs from '../engines/plain-js.js'
import { expectedOf, type TrialName, trial } from '../trials.js'

export const scan: Definition = {
  name: 'scan',
  measures: 'createTrial, and all 18 reductions of every tensor; files in the page cache, threads running',
  *cases({ quick }: Options): Generator<Case> {
    for (const name of ['large', 'many'] satisfies TrialName[]) {
      const made = trial(name, quick)
      const { dir, title, tensorCount, byteLength, steps, tensors } = made
      const wrong = expectClose(expectedOf(made), i => {
        const row = Math.floor(i / REDUCTIONS.length)
        const step = steps[Math.floor(row / tensors.length)]
        return `${tensors[row % tensors.length]!.name} at step ${step}, ${REDUCTIONS[i % REDUCTIONS.length]}`
      })
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
  },
}
