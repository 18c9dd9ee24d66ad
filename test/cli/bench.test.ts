/** `trialscan bench`: what is measured and printed, and that no time is told of a wrong answer. */

import { execFile } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { copyTrial } from '../../fixtures/corrupt.js'
import { scratchDirectory } from '../support/scratch.js'
import { CLI, objects, PLAIN, trialscan } from './run.js'

const scratch = scratchDirectory('bench-cli')

/** In a directory without packages, with a python3 that is a script. */
function among(python: string, ...args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const directory = join(scratch, `bin-${python.length}`)
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'python3'), `#!/bin/sh\n${python}\n`)
  chmodSync(join(directory, 'python3'), 0o755)
  const env = { ...process.env, PATH: `${directory}${delimiter}/usr/bin${delimiter}/bin` }
  return new Promise(resolve => {
    const child = execFile(process.execPath, [CLI, 'bench', ...args], { cwd: scratch, env }, (_, stdout, stderr) =>
      resolve({ code: child.exitCode!, stdout, stderr }),
    )
  })
}

describe('trialscan bench', () => {
  it('measures the kernels beside plain JS, and says who is not there', async () => {
    const startedAt = performance.now()
    const { code, stdout, stderr } = await among('exit 1', '--quick')
    expect([code, stderr]).toEqual([0, ''])
    expect(performance.now() - startedAt).toBeLessThan(60_000)
    const [machine, , head, ...rows] = stdout.split('\n')
    expect(machine).toMatch(/; Node\.js \d+\.\d+\.\d+; trialscan \d+\.\d+\.\d+; numpy: not found; tfjs: not found$/)
    expect(head).toMatch(/^GB\/s +trialscan +plain JS$/)
    expect(rows.slice(0, 9).map(row => row.replace(/ {2,}/g, '|').split('|').slice(0, 3).join(', '))).toEqual([
      'all 18 reductions, float32, 64 KiB',
      'all 18 reductions, float32, 1 MiB',
      'all 18 reductions, float64, 1 MiB',
      'mean and std, float32, 1 MiB',
      'min and max, float32, 1 MiB',
      'sum along axis 0, float32, 1 MiB',
      'allclose, float32, 2 MiB',
      'CRC-32C, bytes, 64 KiB',
      'CRC-32C, bytes, 1 MiB',
    ])
    for (const row of rows.slice(0, 9)) {
      expect(row).toMatch(/ [\d.]+ {2,}[\d.]+ +[\d.]+×$/)
      expect(row.length).toBe(rows[0]!.length)
    }
  })

  it('tells no time of a wrong answer', async () => {
    const lies = "echo 9.9; while read -r line; do printf '0.1\\t1\\n'; done"
    const { code, stdout, stderr } = await among(lies, '--quick')
    expect([code, stdout]).toEqual([70, ''])
    expect(stderr).toMatch(/numpy, all 18 reductions of 65536 bytes of float32: expected 18 numbers, got 1\n$/)
    // Numbers enough, and one that is off.
    const close =
      "echo 9.9; while read -r line; do printf '0.1'; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do printf '\\t1'; done; echo; done"
    const off = await among(close, '--quick')
    expect([off.code, off.stdout]).toEqual([70, ''])
    expect(off.stderr).toMatch(/numpy, all 18 reductions .*: min: expected -1\.\d+, got 1\n$/)
    // It ends without an answer.
    expect((await among('echo 9.9; exit', '--quick')).stderr).toMatch(/expected 18 numbers, got 0\n$/)
  })

  it.runIf(existsSync('node_modules/@tensorflow/tfjs-core'))('has ratios of all that are there, as JSON', async () => {
    const { code, stdout } = await trialscan('bench', '--quick', '--json')
    expect(code).toBe(0)
    const { machine, kernels } = JSON.parse(stdout)
    const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
    expect(machine).toMatchObject({ trialscan: version, node: process.versions.node, tfjs: expect.any(String) })
    expect(kernels).toHaveLength(9)
    for (const { bytes, contenders } of kernels) {
      expect(contenders[0]).toMatchObject({ engine: 'trialscan', ratio: 1 })
      expect(contenders[1]).toMatchObject({ engine: 'plain JS' })
      for (const { ms, gbPerSecond } of contenders) expect(gbPerSecond / (bytes / ms / 1e6)).toBeCloseTo(1, 2)
    }
    expect(kernels[0].contenders.at(-1)).toMatchObject({ engine: 'tfjs' })
  })

  it('says where the time of a scan goes', async () => {
    const { code, stdout, stderr } = await trialscan('bench', PLAIN, '--threads', '0', '--json')
    expect([code, stderr]).toEqual([0, ''])
    const [result] = objects(stdout)
    expect(result).toMatchObject({ trial: PLAIN, tensors: 5, records: 15, threads: 0, failedRows: 0 })
    // Of so few bytes no rate would mean anything.
    expect(result).toMatchObject({ pageCacheRate: null, diskRate: null, uncachedBoundBy: null })
    const spent = result!.spentSeconds as Record<string, number>
    expect(Object.keys(spent)).toEqual(['read', 'decode', 'reduce', 'text'])
    const most = Math.max(...Object.values(spent))
    expect(most).toBeGreaterThan(0)
    expect(spent[result!.boundBy as string]).toBe(most)
    const table = (await trialscan('bench', PLAIN)).stdout
    expect(table).toContain(`${PLAIN}: 5 tensors, 15 records, `)
    for (const part of Object.keys(spent)) expect(table).toMatch(new RegExp(`^  ${part} +\\d+\\.\\d{3} s +\\d+ %`, 'm'))
    expect(table).toMatch(/^ {2}page cache +not measured$/m)
    expect(table).toContain('\nNot measured: its event files have less than 1 MiB.\n')
    expect(table).toMatch(/\nBound by (read|decode|reduce|text): \d+ % of the threads' time\.\n$/)
  })

  it('exits as other commands do where there is no trial, or none that is whole', async () => {
    const damaged = join(scratch, 'damaged')
    copyTrial(PLAIN, damaged)
    writeFileSync(join(damaged, 'events/000000000001/000000000001_worker_0.tfevents'), 'nothing')
    const outcome = await trialscan('bench', damaged)
    expect(outcome.code).toBe(4)
    expect(outcome.stderr).toBe('trialscan: 5 rows could not be had: trialscan verify tells why\n')
    const empty = join(scratch, 'empty')
    mkdirSync(empty)
    expect((await trialscan('bench', empty)).code).toBe((await trialscan('ls', empty)).code)
    expect((await trialscan('bench', join(scratch, 'nowhere'))).code).toBe(3)
    expect((await trialscan('bench', '--fast')).code).toBe(2)
    expect((await trialscan('bench', '--quick', '--s3-anonymous')).code).toBe(2)
    expect((await trialscan('bench', PLAIN, PLAIN)).code).toBe(2)
  })
})
