/** Hostile checkpoints through the command line, each in a process of its own: an error or data, and bounds of memory. */

import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { counting, safetensors, withHeader } from '../../fixtures/checkpoint-writer.js'
import { objects } from '../cli/run.js'
import { scratchDirectory } from '../support/scratch.js'
import { CHECKPOINT_EXHIBITS, placed } from './checkpoint-museum.js'
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

it.each(CHECKPOINT_EXHIBITS.map(exhibit => [exhibit.name, exhibit] as const))('%s', async (_, exhibit) => {
  const { says, rows = 0, verify, memory = 300 } = exhibit
  const path = placed(exhibit, join(scratch, `${made++}`))
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

it('of tensors there may be a million', async () => {
  // Fewer are made here, which takes long enough; what each of them costs says what a million do.
  const count = 100_000
  const path = join(scratch, 'many.safetensors')
  const entries = Array.from(
    { length: count },
    (_, i) => `"layers.${i}.w":{"dtype":"U8","shape":[1],"data_offsets":[${i},${i + 1}]}`,
  )
  writeFileSync(path, withHeader(`{${entries.join(',')}}`, new Uint8Array(count)))
  for (const [command, ...flags] of [['ls'], ['scan', '--reductions', 'sum'], ['verify']] as const) {
    const { code, peak } = await measured(command, path, ...flags)
    expect(code, command).toBe(0)
    expect((peak - basePeak) / count, command).toBeLessThan(6000)
  }
})

it('names of tensors lead nowhere where dump writes', async () => {
  const names = [
    '../../up',
    '/etc/x',
    '..',
    '.',
    '',
    'a',
    'a/b',
    'a.npy',
    'C:\\x',
    'nul\0',
    'x'.repeat(400),
    'é',
    'e\u0301',
  ]
  const directory = join(scratch, 'names')
  mkdirSync(directory)
  const path = join(directory, 'model.safetensors')
  writeFileSync(path, safetensors(names.map(name => counting(name, [1]))))
  for (const out of [join(directory, 'values'), join(directory, 'values.npz')]) {
    expect((await measured('dump', path, '--out', out)).code).toBe(0)
  }
  expect(readdirSync(directory).sort()).toEqual(['model.safetensors', 'values', 'values.npz'])
  expect(readdirSync(join(directory, 'values')).sort()).toEqual(['0', 'index.jsonl'])
  expect(readdirSync(join(directory, 'values/0'))).toHaveLength(names.length)
  expect(readFileSync(join(directory, 'values.npz'), 'latin1')).not.toMatch(/\.\.\/|\\x|nul\0\.npy/)
})

it('what is no file is no checkpoint, and waits for nobody', async () => {
  const directory = join(scratch, 'special')
  mkdirSync(directory)
  writeFileSync(join(directory, 'good.safetensors'), safetensors([counting('w', [4])]))
  writeFileSync(join(scratch, 'outside.safetensors'), safetensors([counting('secret', [4])]))
  execFileSync('mkfifo', [join(directory, 'fifo.safetensors')])
  symlinkSync('/dev/zero', join(directory, 'device.safetensors'))
  symlinkSync('../outside.safetensors', join(directory, 'link.safetensors'))
  symlinkSync('nowhere', join(directory, 'dangling.pt'))
  symlinkSync('.', join(directory, 'loop'))
  for (const command of ['scan', 'verify', 'ls']) {
    const { code, stdout, stderr } = await measured(command, directory, '--format', 'jsonl')
    expect(code, stderr).toBe(4)
    expect(stdout + stderr).not.toContain('secret')
    for (const found of ['a FIFO', 'a symbolic link that leads out of it']) expect(stdout + stderr).toContain(found)
    if (command === 'scan') expect(objects(stdout).map(({ tensor }) => tensor)).toEqual(['w'])
  }
})

it.each([
  ['nested without end', '['.repeat(20_000_000), 0],
  ['with a name of 20 MB', `{"log_history":[{"step":1,"loss":1,"${'k'.repeat(20_000_000)}":1}]}`, 1],
  [
    'with 200,000 names',
    `{"log_history":[${Array.from({ length: 200_000 }, (_, i) => `{"step":${i % 5},"k${i}":1}`)}]}`,
    10_000,
  ],
])('a log or a configuration %s costs little, and nothing of the checkpoint', async (name, text, scalars) => {
  const directory = join(scratch, name.replaceAll(' ', '-'))
  mkdirSync(directory)
  writeFileSync(join(directory, 'model.safetensors'), safetensors([counting('w', [4])]))
  for (const file of ['trainer_state.json', 'config.json']) writeFileSync(join(directory, file), text)
  const { code, stdout, peak } = await measured('ls', directory, '--format', 'json')
  expect([code, JSON.parse(stdout).tensors.length]).toEqual([0, 1 + scalars])
  expect((peak - basePeak) / MIB).toBeLessThan(400)
})
