/** Hostile checkpoints through the command line, each in a process of its own: an error or data, and bounds of memory. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { counting, safetensors } from '../../fixtures/checkpoint-writer.js'
import { objects } from '../cli/run.js'
import { scratchDirectory } from '../support/scratch.js'
import { CHECKPOINT_EXHIBITS, type Exhibit } from './checkpoint-museum.js'
import { measured } from './measured.js'

const scratch = scratchDirectory('hostile-checkpoints')
const MIB = 2 ** 20
/** Exit codes of errors that are told: those of findings, files, data and queries. */
const TOLD = [0, 1, 3, 4, 5]
let basePeak = 0
let made = 0

beforeAll(async () => {
  const path = join(scratch, 'good.safetensors')
  writeFileSync(path, safetensors([counting('w', [4])]))
  basePeak = (await measured('scan', path)).peak
})

function place({ files, path }: Exhibit): string {
  const directory = join(scratch, `${made++}`)
  for (const [name, content] of Object.entries(files())) {
    mkdirSync(dirname(join(directory, name)), { recursive: true })
    writeFileSync(join(directory, name), content)
  }
  return join(directory, path)
}

it.each(CHECKPOINT_EXHIBITS.map(exhibit => [exhibit.name, exhibit] as const))('%s', async (_, exhibit) => {
  const { says, rows = 0, verify, memory = 150 } = exhibit
  const path = place(exhibit)
  for (const command of ['scan', 'verify', 'show', 'ls']) {
    if (command === 'show' && !path.endsWith('.pt')) continue
    const flags = command === 'scan' ? ['--reductions', 'sum'] : command === 'verify' ? ['--format', 'jsonl'] : []
    const { code, stdout, stderr, byteLength, peak } = await measured(command, path, ...flags)
    const told = `${command}: ${stderr.slice(0, 2000)}`
    expect(TOLD, told).toContain(code)
    expect(stderr, told).not.toMatch(/^ {4}at |internal error/m)
    expect(byteLength, command).toBeLessThan(5 * MIB)
    expect((peak - basePeak) / MIB, command).toBeLessThan(memory)
    if (command === 'scan') {
      const found = objects(stdout)
      expect(found.filter(({ tensor, error }) => tensor !== null && !error).length, told).toBe(rows)
      if (says === null) expect([code, stderr.replace(/\npeak \d+$/, '')]).toEqual([0, ''])
      else expect(`${stderr}${stdout}`).toMatch(says)
    }
    if (command === 'verify') {
      if (verify !== undefined) expect(stdout).toMatch(verify)
      expect(code, told).toBe(says === null && verify === undefined ? 0 : 4)
    }
  }
})
