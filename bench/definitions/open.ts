/** A process of its own that opens a trial. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import {
  type Case,
  type Contender,
  type Definition,
  expectSame,
  type Judge,
  type Options,
  selfTimed,
} from '../definition.js'
import * as ours from '../engines/ours.js'
import * as plainJs from '../engines/plain-js.js'
import { LIBRARY } from '../package.js'
import { runProcess } from '../processes.js'
import { scratchPath } from '../scratch.js'
import { type TrialName, trial } from '../trials.js'

/** The output of children/open.mjs. */
interface Opened {
  readonly steps: number
  readonly tensors: number
  readonly openedMs: number
  readonly blockedMs: number | null
}

export const open: Definition = {
  name: 'open',
  measures: 'from the start of a process to an open trial, the loading of Node.js and the library included',
  async *cases({ quick }: Options): AsyncGenerator<Case> {
    for (const name of ['large', 'many', 'steps'] satisfies TrialName[]) {
      const input = trial(name, quick)
      const { dir, title } = input
      const wrong: Judge<Opened> = ({ steps, tensors }) =>
        steps === input.steps.length && tensors === input.tensors.length
          ? undefined
          : `expected ${input.steps.length} steps of ${input.tensors.length} tensors, got ${steps} of ${tensors}`
      const cache = scratchPath(`${name}.cache`)
      const fromCache = opening(`${ours.NAME}, from the cache`, [LIBRARY, dir, cache], wrong)
      yield {
        size: title,
        ...(name === 'steps' && { rounds: 3 }),
        contenders: [
          opening(ours.NAME, [LIBRARY, dir, ''], wrong),
          {
            ...fromCache,
            // The first opening writes the cache, the second reads it.
            check: async () => {
              await fromCache.check()
              if (!existsSync(cache)) throw new Error(`expected a cache at ${cache}`)
              await fromCache.check()
            },
          },
          opening(plainJs.NAME, ['', dir], wrong),
          opening('a listing and a stat of each file', ['', dir, 'stat'], ({ steps }) =>
            expectSame(input.steps.length)(steps),
          ),
          opening(`${ours.NAME}, longest block of the thread`, [LIBRARY, dir, '', 'watch'], wrong, 'blockedMs'),
        ],
      }
    }
  },
}

const CHILD = fileURLToPath(new URL('../children/open.mjs', import.meta.url))

function opening(
  engine: string,
  words: readonly string[],
  wrong: Judge<Opened>,
  value: 'openedMs' | 'blockedMs' = 'openedMs',
): Contender {
  const turn = async () => {
    const { stdout } = await runProcess([process.execPath, CHILD, ...words])
    const answer = JSON.parse(stdout) as Opened
    return { median: answer[value]!, answer }
  }
  return selfTimed(engine, turn, wrong)
}
