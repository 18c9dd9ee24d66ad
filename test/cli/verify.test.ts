/** `trialscan verify`: what it prints, and its exit codes. */

import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { verdictOf } from '#dist/cli/format/ci/report.js'
import { verifyJsonl } from '#dist/cli/format/verify-lines.js'
import { verifyTable } from '#dist/cli/format/verify-table.js'
import { colorsFor, widthOf } from '#dist/cli/terminal.js'
import type { Verification, VerifyProblem } from '#dist/index.js'
import { copyTrial, corruptions } from '../../fixtures/corrupt.js'
import { fixtureTrial } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'
import { objects, PLAIN, trialscan } from './run.js'

const scratch = scratchDirectory('verify-cli')

const KEYS = ['severity', 'code', 'file', 'offset', 'tensor', 'step', 'expected', 'found', 'lost', 'advice', 'message']
const EVENTS = 'events/000000000001/000000000001_worker_0.tfevents'

function corrupted(name: string): string {
  const directory = join(scratch, name.replace(/\W+/g, '-'))
  rmSync(directory, { recursive: true, force: true })
  copyTrial(PLAIN, directory)
  corruptions.find(corruption => corruption.name === name)!.apply(directory)
  return directory
}

describe('trialscan verify', () => {
  it('exits with 0 where nothing is wrong, and says what it has read', async () => {
    const { code, stdout, stderr } = await trialscan('verify', PLAIN)
    expect([code, stderr]).toEqual([0, ''])
    const [summary, ...others] = objects(stdout)
    expect(others).toEqual([])
    expect(summary).toMatchObject({ summary: true, trial: PLAIN, ok: true, problems: {}, notes: {} })
    expect(summary).toMatchObject({ event_files: 3, index_files: 3, records: 15, tensors: 15, bytes: 1799 })
    expect(summary).toMatchObject({ records_without_checksum: 0 })
  })

  it('exits with 4 where something is, a problem a line and the summary last', async () => {
    const directory = corrupted('event file cut inside a payload')
    const { code, stdout, stderr } = await trialscan('verify', directory, '--format', 'jsonl', '--threads', '1')
    expect([code, stderr]).toEqual([4, ''])
    const [problem, summary, ...others] = objects(stdout)
    expect(others).toEqual([])
    expect(Object.keys(problem!)).toEqual(KEYS)
    expect(problem).toMatchObject({ severity: 'problem', code: 'TruncatedRecord', file: EVENTS, offset: 401 })
    expect(problem!.lost).toBe('tensors "count", "loss" at step 1')
    expect(summary).toMatchObject({ summary: true, ok: false, problems: { TruncatedRecord: 1 }, threads: 1 })
  })

  it('prints a table for people: file, offset, expected, found, lost, what to do', async () => {
    const directory = corrupted('wrong checksum of the length')
    const { code, stdout } = await trialscan('verify', directory, '--format', 'table')
    expect(code).toBe(4)
    const lines = stdout.split('\n')
    expect(lines[0]).toContain('1 problem in 1 file')
    expect(lines).toContain(EVENTS)
    expect(lines).toContain('  BadLengthChecksum  offset 203, step 1')
    expect(lines.find(line => line.startsWith('    expected'))).toContain("of the record's length")
    expect(lines.find(line => line.startsWith('    found'))).toContain('0x')
    expect(lines).toContain('    lost        tensor "fc.bias" at step 1')
    expect(lines.some(line => line.startsWith('    what to do'))).toBe(true)
    expect(stdout).toMatch(/Checked 3 event files, 3 index files, 14 records, 14 tensors, .* GB\/s/s)
  })

  it('says of how many values nobody can know, in every format', async () => {
    const { directory } = fixtureTrial('dtypes')
    const { stdout } = await trialscan('verify', directory, '--format', 'table')
    const [, without, records] =
      /^(\d+) of (\d+) records carry no payload checksum: their values cannot be verified$/m.exec(stdout)!
    expect([Number(without), Number(without) > 0]).toEqual([Number(records), true])
    const [summary] = objects((await trialscan('verify', directory)).stdout).slice(-1)
    expect(summary).toMatchObject({ records: Number(records), records_without_checksum: Number(records) })
    expect((await trialscan('verify', PLAIN, '--format', 'table')).stdout).not.toContain('payload checksum')
  })

  it('takes notes for no harm', async () => {
    const directory = corrupted('event file without index file')
    const { code, stdout } = await trialscan('verify', directory, '--format', 'table')
    expect(code).toBe(0)
    expect(stdout).toContain('nothing is wrong; 1 note')
    expect(stdout).toContain('EmptyEventFile')
  })

  it('writes to a file that is there when it is whole', async () => {
    const out = join(scratch, 'problems.jsonl')
    const { code, stdout } = await trialscan('verify', corrupted('index file cut'), '--out', out, '--deep')
    expect([code, stdout]).toEqual([4, ''])
    expect(objects(readFileSync(out, 'utf8')).map(({ code }) => code)).toEqual(['BadIndexFile', undefined])
    const missing = await trialscan('verify', join(scratch, 'nowhere'), '--out', join(scratch, 'nothing.jsonl'))
    expect(missing.code).toBe(3)
    expect(readdirSync(scratch).some(name => name.includes('nothing'))).toBe(false)
  })

  it('writes nothing into the trial', async () => {
    const directory = corrupted('index file cut')
    symlinkSync(directory, join(scratch, 'link'))
    for (const out of [join(directory, 'report'), join(scratch, 'link', 'report')]) {
      const { code, stderr } = await trialscan('verify', directory, '--out', out)
      expect([code, stderr]).toEqual([2, expect.stringContaining('outside of the trial')])
      expect(existsSync(out)).toBe(false)
    }
  })

  it('says what is no trial, and what is no option', async () => {
    expect((await trialscan('verify', join(PLAIN, 'index', '000000000'))).code).toBe(5)
    expect((await trialscan('verify', PLAIN, '--memory', '1')).code).toBe(2)
    expect((await trialscan('verify', PLAIN, '--format', 'npy')).code).toBe(2)
    const help = await trialscan('verify', '--help')
    expect(help.code).toBe(0)
    expect(help.stdout).toContain('docs/verify.md')
  })
})

describe('the formats', () => {
  const problem: VerifyProblem = {
    severity: 'problem',
    code: 'TagMismatch',
    file: 'index/\x1b[2J\u202e.json',
    offset: 1_234_567,
    tensor: 'a\x07b',
    step: 7,
    expected: 'a record\n of that tensor',
    found: 'one of "\x1b]0;title\x07"',
    lost: 'a word that is long enough to need another line, since there is more of it than a line of the table takes',
    advice: 'Nothing.',
    message: 'of all that',
  }
  const verification: Verification = {
    ok: false,
    problems: [problem],
    notes: [{ ...problem, severity: 'note', code: 'NoIndex' }],
    problemCounts: { TagMismatch: 1001 },
    noteCounts: { NoIndex: 3 },
    stats: {
      eventFiles: 1,
      indexFiles: 2,
      records: 3,
      recordsWithoutChecksum: 2,
      tensors: 4,
      readBytes: 5_000_000,
      values: null,
      digests: null,
      seconds: 0.5,
      threads: 0,
      traffic: { listRequests: 0, getRequests: 0, receivedBytes: 0, retries: 0 },
    },
  }

  it('let nothing through to a terminal that could do harm', () => {
    const table = verifyTable(true, 80, colorsFor(null)).end('/tmp/\x1b[31m', verification, verdictOf(4, ''))
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    expect(table).not.toMatch(/[\x00-\x09\x0b-\x1f\u202e]/)
    for (const line of table.split('\n')) expect(widthOf(line)).toBeLessThanOrEqual(80)
    const jsonl = verifyJsonl(true, true).line('trial', problem)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    expect(jsonl.slice(0, -1)).not.toMatch(/[\x00-\x1f\u202e]/)
    expect(JSON.parse(jsonl)).toEqual(problem)
  })

  it('count what was not told one by one', () => {
    const table = verifyTable(true, 80, colorsFor(null)).end('trial', verification, verdictOf(4, ''))
    expect(table).toContain('1,001 problems in 1 file; 3 notes')
    expect(table).toContain('TagMismatch: 1,000 more')
    expect(table).toContain('2 of 3 records carry no payload checksum: their values cannot be verified')
    expect(table).toContain('NoIndex, 3 times, the first')
  })
})
