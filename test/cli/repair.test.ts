/** `trialscan repair`: what it prints, how it exits, and what is left when it can't go on. */

import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { copyTrial, locate, truncateEventFile } from '../../fixtures/corrupt.js'
import { eventFilePath, indexFilePath } from '../../fixtures/event-writer.js'
import { makeMany } from '../../fixtures/make.js'
import { contentsOf } from '../repair/tree.js'
import { isLong, part, whenLong } from '../support/part.js'
import { scratchDirectory } from '../support/scratch.js'
import { CLI, objects, outcomeOf, PLAIN, trialscan } from './run.js'

const scratch = scratchDirectory('repair-cli')
let number = 0
let own: string
let dir: string
let out: string

beforeEach(() => {
  own = join(scratch, String(number++))
  mkdirSync(own)
  dir = join(own, 'trial')
  out = join(own, 'clean')
})

/** A copy of the plain trial, whose step 1 is cut off in its third record. */
function cut(): { start: number; length: number } {
  copyTrial(PLAIN, dir)
  const { start_idx, length } = locate(dir, 1, 'words')
  truncateEventFile(dir, 1, start_idx + 20)
  return { start: start_idx, length }
}

describe('trialscan repair', () => {
  it('exits with 0 where everything was kept', async () => {
    const { code, stdout, stderr } = await trialscan('repair', PLAIN, '--out', out)
    expect([code, stderr]).toEqual([0, `trialscan: wrote ${out}\n`])
    const [report, ...others] = objects(stdout)
    expect(others).toEqual([])
    expect(report).toEqual({
      trial: PLAIN,
      out,
      files: { copied: 8, rebuilt: 0, ignored: 0, left_out: 0 },
      records: { kept: 15, left_out: 0 },
      bytes: { kept: expect.any(Number), left_out: 0 },
      left_out_count: 0,
    })
    expect(contentsOf(out)).toEqual(contentsOf(PLAIN))
  })

  it('exits with 4 where something was left out, and tells what', async () => {
    const { start } = cut()
    writeFileSync(join(dir, 'half.tmp'), '')
    const { code, stdout } = await trialscan('repair', dir, '--out', out, '--threads', '0')
    expect(code).toBe(4)
    const lines = objects(stdout)
    const file = eventFilePath(1, 'worker_0')
    const lost = lines.filter(line => 'left_out' in line)
    expect(lost.map(({ left_out, step, tensors, records }) => [left_out, step, tensors, records])).toEqual(
      ['words', 'count', 'loss'].map(tensor => [file, 1, [tensor], 1]),
    )
    expect(lost[0]).toMatchObject({ offset: start, byte_length: 20, code: 'TruncatedRecord' })
    expect(lost[0]!.reason).toMatch(/expected .*, got .*/)
    expect(lines.filter(line => 'rebuilt' in line).map(({ rebuilt }) => rebuilt)).toEqual([
      file,
      indexFilePath(1, 'worker_0'),
    ])
    expect(lines.filter(line => 'ignored' in line)).toEqual([{ ignored: 'half.tmp' }])
    expect(lines.at(-1)).toMatchObject({ records: { kept: 12, left_out: 3 }, left_out_count: 3 })
    // The copy is whole, and has nothing to be repaired.
    const scanned = await trialscan('scan', out, '--check-level', 'full', '--format', 'jsonl')
    expect([scanned.code, objects(scanned.stdout).length]).toEqual([0, 12])
    expect((await trialscan('repair', out, '--out', `${out}2`)).code).toBe(0)
    expect(contentsOf(`${out}2`)).toEqual(contentsOf(out))
  })

  it('prints a table for people', async () => {
    cut()
    const { code, stdout } = await trialscan('repair', dir, '--out', out, '--format', 'table', '--checksums')
    expect(code).toBe(4)
    for (const text of ['Left out', 'Rebuilt', 'words', 'TruncatedRecord, as in: ', eventFilePath(1, 'worker_0')]) {
      expect(stdout).toContain(text)
    }
    expect(stdout).toMatch(/Kept 12 records \(1\.\d KB\); left out 3 records \(20 B\)\n$/)
    expect(stdout.includes('\x1b')).toBe(false)
    const { stdout: clean } = await trialscan('repair', out, '--out', `${out}2`, '--format', 'table')
    expect(clean).toMatch(/^Kept 12 records \(1\.\d KB\); nothing is lost\n$/)
  })

  const refused: [string, number, RegExp, () => string[]][] = [
    ['no --out', 2, /required option '--out/, () => [PLAIN]],
    ['a copy in the trial', 2, /outside of the trial, got one in it/, () => [dir, '--out', join(dir, 'clean')]],
    ['a copy that is there', 2, /new or empty, got one that holds collections/, () => [dir, '--out', PLAIN]],
    ['a format that is none', 2, /npy/, () => [dir, '--out', out, '--format', 'npy']],
    ['no such trial', 3, /no such file or directory/, () => [join(own, 'nowhere'), '--out', out]],
    ['no trial', 5, /expected a trial/, () => [scratchEmpty(), '--out', out]],
  ]
  it.each(part(refused, (_, i) => i % 4 === 1))('refuses %s', async (_, code, message, args) => {
    copyTrial(PLAIN, dir)
    const outcome = await trialscan('repair', ...args())
    expect(outcome).toMatchObject({ code, stdout: '' })
    expect(outcome.stderr).toMatch(message)
    expect(existsSync(out)).toBe(false)
    expect(contentsOf(dir)).toEqual(contentsOf(PLAIN))
  })

  it('leaves nothing where the disk takes no more', async () => {
    // An event file of 220 KB, and no file may have more than 64 KiB.
    makeMany(dir, { steps: 2 })
    const command = `trap '' XFSZ; ulimit -f 64; exec "${process.execPath}" "${CLI}" repair "${dir}" --out "${out}"`
    const { code, stderr } = await outcomeOf(spawn('bash', ['-c', command], { stdio: ['ignore', 'pipe', 'pipe'] }))
    expect(stderr).toMatch(/cannot write .*: .*EFBIG/)
    expect(code).toBe(3)
    expect(readdirSync(own).sort()).toEqual(['trial'])
  })

  it.each(part(['SIGTERM', 'SIGKILL'] as const, signal => signal === 'SIGTERM'))(
    'leaves no copy that looks whole after %s',
    async signal => {
      makeMany(dir, { steps: isLong ? 200 : 60 })
      const child = spawn(process.execPath, [CLI, 'repair', dir, '--out', out], { stdio: ['ignore', 'pipe', 'pipe'] })
      const outcome = outcomeOf(child)
      while (readdirSync(own).length < 2 && child.exitCode === null) await new Promise(done => setTimeout(done, 2))
      child.kill(signal)
      const { code, stdout } = await outcome
      expect(stdout).toBe('')
      expect(code).toBe(signal === 'SIGTERM' ? 143 : null)
      expect(existsSync(out)).toBe(false)
      // What a process that was killed leaves has a temporary name, and is in nobody's way.
      const left = readdirSync(own).filter(name => signal === 'SIGTERM' || !/^\.clean\.[0-9a-f]{8}\.tmp$/.test(name))
      expect(left).toEqual(['trial'])
      expect((await trialscan('repair', dir, '--out', out)).code).toBe(0)
    },
  )
})

it.each(whenLong)('leaves nothing after a second signal, which ends it at once', async () => {
  makeMany(dir, { steps: 300 })
  const child = spawn(process.execPath, [CLI, 'repair', dir, '--out', out], { stdio: ['ignore', 'pipe', 'pipe'] })
  const outcome = outcomeOf(child)
  while (readdirSync(own).length < 2 && child.exitCode === null) await new Promise(done => setTimeout(done, 2))
  child.kill('SIGINT')
  await new Promise(done => setTimeout(done, 10))
  child.kill('SIGINT')
  expect((await outcome).code).toBe(130)
  expect(readdirSync(own)).toEqual(['trial'])
})

it('takes the place of an empty directory, and who may read that', async () => {
  copyTrial(PLAIN, dir)
  mkdirSync(out, { mode: 0o700 })
  expect((await trialscan('repair', dir, '--out', out)).code).toBe(0)
  expect(statSync(out).mode & 0o777).toBe(0o700)
})

it.each(whenLong)('is content with few descriptors', async () => {
  makeMany(dir, { steps: 100 })
  const command = `ulimit -n 48; exec "${process.execPath}" "${CLI}" repair "${dir}" --out "${out}" --threads 2`
  const { code, stderr } = await outcomeOf(spawn('bash', ['-c', command], { stdio: ['ignore', 'pipe', 'pipe'] }))
  expect([code, stderr]).toEqual([0, `trialscan: wrote ${out}\n`])
  expect((await trialscan('verify', out)).code).toBe(0)
})

function scratchEmpty(): string {
  const empty = join(own, 'empty')
  mkdirSync(empty)
  return empty
}
