/** Files that were read are not open for ever: of how many trials ever a process has read. */

import { cpSync, readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { closePools, createTrial, evaluate, SimilarAcrossRuns } from '#dist/index.js'
import { PLAIN_TRIAL } from '../fixtures/corrupt.js'
import { rowsOf } from './support/scanning.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('open')
let copies = 0

afterAll(closePools)

function copy(): string {
  const dir = join(scratch, String(copies++))
  cpSync(PLAIN_TRIAL, dir, { recursive: true })
  return dir
}

/** Event files that this process has open. */
function openEventFiles(): number {
  const targets = readdirSync('/proc/self/fd').map(file => {
    try {
      return readlinkSync(`/proc/self/fd/${file}`)
    } catch {
      return '' // the listing's own
    }
  })
  return targets.filter(path => path.startsWith(scratch) && path.endsWith('.tfevents')).length
}

const onLinux = process.platform === 'linux'

it.runIf(onLinux)('on threads, none once their job is done', async () => {
  for (let i = 0; i < 12; i++) {
    const trial = await createTrial(copy())
    expect((await rowsOf(trial, { threads: 1 })).filter(({ error }) => error)).toEqual([])
    await trial.close()
    expect(openEventFiles()).toBe(0)
  }
  await closePools()
  expect(openEventFiles()).toBe(0)
})

it.runIf(onLinux)('on the calling thread, none of a trial that was closed, or compared with', async () => {
  const [trial, other] = [await createTrial(copy()), await createTrial(copy())]
  await evaluate([new SimilarAcrossRuns(trial, { otherTrials: [other] })], { threads: 0 })
  expect(openEventFiles()).toBe(0)
  await trial.close()
  await other.close()
  expect(openEventFiles()).toBe(0)
  // Closing is no end: what is asked for is opened again.
  expect(await rowsOf(trial, { threads: 0 })).toHaveLength(15)
  await trial.close()
  expect(openEventFiles()).toBe(0)
})
