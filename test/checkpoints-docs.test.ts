/** The commands of docs/checkpoints.md print what stands there. */

import { spawnSync } from 'node:child_process'
import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { CLI } from './cli/run.js'
import { FIXTURES } from './support/checkpoints.js'
import { ROOT } from './support/golden.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('checkpoints-docs')
// Some write files, which others read.
cpSync(FIXTURES, scratch, { recursive: true, preserveTimestamps: true })
const text = readFileSync(join(ROOT, 'docs/checkpoints.md'), 'utf8')
const blocks = [...text.matchAll(/^```console\n\$ trialscan (.*)\n([\s\S]*?)^```$/gm)].map(
  ([, command, output]) => [command!, output!] as const,
)

it('has ten commands and more', () => {
  expect(blocks.length).toBeGreaterThanOrEqual(10)
})

it('answers what people ask, each with what is printed', () => {
  const questions = [
    'What changed?',
    'Names and layouts',
    'What did quantisation do?',
    'Is it whole?',
    'When did it go wrong?',
    'Look at it',
  ]
  for (const question of questions) {
    expect(text.split(/^## /m).find(section => section.startsWith(question))).toContain('\n$ trialscan ')
  }
})

it.each(blocks)('trialscan %s', (command, output) => {
  const { COLUMNS: _, ...env } = process.env
  const { stdout, stderr } = spawnSync(process.execPath, [CLI, ...command.split(' ')], {
    cwd: scratch,
    encoding: 'utf8',
    env,
  })
  const got = `${stdout}${stderr}`
  // What follows is left out where the page says so.
  const isCut = output.endsWith('…\n')
  const expected = isCut ? output.slice(0, -'…\n'.length) : output
  expect(isCut ? got.slice(0, expected.length) : got).toBe(expected)
})
