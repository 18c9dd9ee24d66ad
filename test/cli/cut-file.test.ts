/** A file that is cut is one line, whatever reads it, though all behind the cut is lost. */

import { cpSync, readdirSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'
import { trialscan } from './run.js'

const scratch = scratchDirectory('cut-file')
const whole = join(ROOT, 'fixtures/trials/mlp-vanishing')
const path = join(scratch, 'cut')

beforeAll(() => {
  cpSync(whole, path, { recursive: true })
  const directory = join(path, 'events', readdirSync(join(path, 'events'))[0]!)
  const file = join(directory, readdirSync(directory)[0]!)
  truncateSync(file, Math.floor(statSync(file).size / 4))
})

it.each([
  ['scan', []],
  ['dump', ['--out', join(scratch, 'out.npz')]],
  ['ls', []],
  ['summary', []],
  ['export', ['--tensorboard', join(scratch, 'logs')]],
  ['diff', [whole]],
])('%s', async (command, options) => {
  const { code, stderr } = await trialscan(command, path, ...options)
  expect(code).toBe(4)
  const about = stderr.split('\n').filter(line => line.includes('.tfevents'))
  expect(about).toEqual([expect.stringMatching(/could not be had|and \d+ more problems in this file/)])
})
