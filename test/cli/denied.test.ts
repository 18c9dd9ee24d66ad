/**
 * Files that may not be read. Permissions mean nothing to root with all its capabilities, so the command then runs
 * without them: owned files are read by their mode alone, as for anybody else.
 */

import { execFile } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { fixtureTrial, ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'

const CLI = join(ROOT, 'dist/bundle/main.js')
const DROP = ['setpriv', '--bounding-set=-all', '--inh-caps=-all']
const isRoot = process.getuid?.() === 0

const scratch = scratchDirectory('denied')

function trialWithout(path: string): string {
  const trial = join(scratch, path.replaceAll('/', '-'))
  cpSync(fixtureTrial('workers-4').directory, trial, { recursive: true })
  chmodSync(join(trial, path), 0)
  return trial
}

function trialscan(...args: string[]): Promise<{ code: number; lines: Record<string, unknown>[]; stderr: string }> {
  const [command, ...rest] = [...(isRoot ? DROP : []), process.execPath, CLI, ...args] as [string, ...string[]]
  return new Promise(resolve => {
    const child = execFile(command, rest, (_, stdout, stderr) => {
      const lines = stdout.split('\n').filter(line => line.startsWith('{'))
      resolve({ code: child.exitCode ?? -1, lines: lines.map(line => JSON.parse(line) as never), stderr })
    })
  })
}

// Windows has no such modes.
describe.runIf(process.getuid)('a file that may not be read', () => {
  it('an event file costs its own records, each named', async () => {
    const path = 'events/000000000001/000000000001_worker_2.tfevents'
    const { code, lines } = await trialscan('scan', trialWithout(path), '--steps', '1', '--reductions', 'mean')
    expect(code).toBe(4)
    expect(lines).toHaveLength(12)
    for (const line of lines) {
      if (line.worker !== 'worker_2') expect(line).toHaveProperty('mean')
      else expect(line.error).toMatchObject({ code: 'Denied', file: expect.stringContaining(path) as string })
    }
  })

  it('an index file costs a row', async () => {
    const path = 'index/000000000/000000000002_worker_0.json'
    const { code, lines } = await trialscan('scan', trialWithout(path), '--steps', '2', '--reductions', 'mean')
    expect(code).toBe(4)
    expect(lines[0]).toMatchObject({ tensor: null, worker: 'worker_0', error: { code: 'Denied' } })
    expect(lines.slice(1).every(line => 'mean' in line)).toBe(true)
  })

  it('the index as a whole is an error', async () => {
    const trial = trialWithout('index')
    const { code, stderr } = await trialscan('ls', trial)
    chmodSync(join(trial, 'index'), 0o755)
    expect(code).toBe(3)
    expect(stderr).toMatch(/index: permission denied/)
  })

  it.each(['dump', 'import'])('a directory that can not be listed may hold files: %s refuses it', async command => {
    const out = join(scratch, `unlisted-${command}/`)
    mkdirSync(out, { mode: 0o300 })
    const { code, stderr } = await trialscan(command, fixtureTrial('workers-4').directory, '--out', out)
    expect([code, stderr]).toEqual([3, expect.stringMatching(/cannot list .*unlisted.*: permission denied/)])
    chmodSync(out, 0o700)
    expect(readdirSync(out)).toEqual([])
  })
})
