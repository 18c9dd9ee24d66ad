/** Checkpoints beside lists of digests: as `scan` and `verify --record` write them, made elsewhere, and hostile. */

import { createHash } from 'node:crypto'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import {
  compareDigests,
  createTrial,
  type DigestComparison,
  type DigestListSource,
  type DigestOptions,
  UsageError,
  verifyTrial,
} from '#dist/index.js'
import { counting, safetensors, tensorOf, writeFile } from '../../fixtures/checkpoint-writer.js'
import { copyTrial, corruptions } from '../../fixtures/corrupt.js'
import { objects, PLAIN, trialscan } from '../cli/run.js'
import { FIXTURES } from '../support/checkpoints.js'
import { ENVIRONMENT, HAS_S3, makeBucket, put } from '../support/s3.js'
import { rejectionOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('digest-lists')
const TENSORS = [counting('a', [2, 2]), counting('b', [3]), counting('c', [4], 'I32')]
const one = join(scratch, 'one/model.safetensors')
writeFile(one, safetensors(TENSORS))
const DTYPES: Readonly<Record<string, string>> = { F32: 'float32', I32: 'int32' }

/** The lines that any program would write of tensors. */
const LINES = TENSORS.map(({ name, dtype, shape, bytes }) => ({
  tensor: name,
  dtype: DTYPES[dtype]!,
  shape,
  sha256: createHash('sha256').update(bytes).digest('hex'),
}))

const textOf = (lines: readonly unknown[]): string =>
  lines.map(line => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('')

async function compared(list: DigestListSource, place = one, options?: DigestOptions): Promise<DigestComparison> {
  const trial = await createTrial(place, { refresh: 'manual', threads: 0 })
  try {
    return await compareDigests(trial, list, options)
  } finally {
    await trial.close()
  }
}

async function listOf(place: string): Promise<string> {
  const lines: string[] = []
  await verifyTrial(place, { onDigest: line => void lines.push(line) })
  return lines.join('')
}

describe('compareDigests', () => {
  it('refuses what is longer than any list, as little compressed bytes may be', async () => {
    function* pieces(piece: string): Generator<string> {
      for (;;) yield piece
    }
    await expect(compared(pieces('x'.repeat(2 ** 24)))).rejects.toThrow('at most 2147483648 characters, got more')
    await expect(compared(pieces('\n'.repeat(2 ** 20)))).rejects.toThrow('at most 10000000 lines, got more')
  })

  it('finds equal what a list made elsewhere has, in pieces of any length', async () => {
    const expected = {
      digests: ['sha256'],
      compared: 3,
      equal: 3,
      counts: {},
      differences: [],
      faults: [],
      faultCount: 0,
    }
    const text = textOf(LINES)
    const bytes = Buffer.from(text)
    for (const list of [text, [text], text.split(''), [bytes.subarray(0, 99), bytes.subarray(99)], text.trimEnd()])
      expect(await compared(list)).toEqual({ ...expected, notes: [] })
  })

  it('tells elements, dtypes and shapes that differ, what is missing and what is not listed', async () => {
    const [a, b, c] = LINES as [(typeof LINES)[0], (typeof LINES)[0], (typeof LINES)[0]]
    const wrong = '0'.repeat(64)
    const told: unknown[] = []
    const lines = [
      { ...a, shape: [4] },
      { ...c, dtype: 'float32' },
      { ...a, tensor: 'd' },
    ]
    const found = await compared(textOf(lines), one, { onDifference: ({ kind, tensor }) => told.push([kind, tensor]) })
    expect(found.differences).toEqual([
      { kind: 'shape', tensor: 'a', step: 0, worker: 'worker_0', line: 1, expected: '4', got: '2x2' },
      {
        kind: 'unlisted',
        tensor: 'b',
        step: 0,
        worker: 'worker_0',
        line: null,
        expected: 'none',
        got: `sha256 ${b.sha256}`,
      },
      { kind: 'dtype', tensor: 'c', step: 0, worker: 'worker_0', line: 2, expected: 'float32', got: 'int32' },
      { kind: 'missing', tensor: 'd', step: null, worker: null, line: 3, expected: `sha256 ${a.sha256}`, got: 'none' },
    ])
    expect(told).toEqual(found.differences.map(({ kind, tensor }) => [kind, tensor]))
    expect(found).toMatchObject({ compared: 2, equal: 0, counts: { shape: 1, unlisted: 1, dtype: 1, missing: 1 } })
    const [other] = (await compared(textOf([{ ...a, sha256: wrong }, b, c]))).differences
    expect(other).toMatchObject({ kind: 'sha256', tensor: 'a', expected: wrong, got: a.sha256 })
  })

  it('takes one that is right and one that is not for different', async () => {
    const [row] = objects(await listOf(one))
    const { counts, equal } = await compared(textOf([{ ...row, crc32c: '00000000' }, ...LINES.slice(1)]))
    expect([counts, equal]).toEqual([{ crc32c: 1 }, 2])
  })

  it('matches steps and workers by name, or where both have one', async () => {
    const root = join(scratch, 'steps')
    for (const step of [10, 20])
      writeFile(join(root, `step_${step}.safetensors`), safetensors([counting('w', [3], 'F32', step)]))
    const both = await listOf(root)
    expect(await compared(both, root)).toMatchObject({ compared: 2, equal: 2, counts: {} })
    const [first] = both.split('\n')
    expect((await compared(first!, root)).counts).toEqual({ unlisted: 1 })
    expect(await compared(both, root, { steps: [20] })).toMatchObject({ compared: 1, equal: 1, counts: {} })
    // A copy elsewhere, under another name.
    const copy = join(scratch, 'copy.safetensors')
    cpSync(join(root, 'step_10.safetensors'), copy)
    const renamed = first!.replace('worker_0', 'rank_3')
    expect(await compared(renamed, copy)).toMatchObject({
      equal: 1,
      counts: {},
      notes: ['the list is of step 10, the trial of step 0', 'the list is of "rank_3", the trial of "worker_0"'],
    })
    const { faults } = await compared(textOf([{ ...JSON.parse(first!), step: undefined }]), root)
    expect(faults).toEqual([{ line: 1, expected: 'step, since the trial has several', got: 'none' }])
  })

  it('compares what is selected, and nothing else', async () => {
    expect(await compared(textOf(LINES), one, { tensors: ['a'] })).toMatchObject({ compared: 1, equal: 1, counts: {} })
    expect(await compared(textOf([...LINES, { ...LINES[0], tensor: 'd' }]), one, { tensors: ['b'] })).toMatchObject({
      counts: {},
    })
  })

  it('tells what cannot be read', async () => {
    const place = join(scratch, 'cut')
    cpSync(join(FIXTURES, 'base'), place, { recursive: true })
    const list = await listOf(place)
    const file = join(place, 'model.safetensors')
    writeFileSync(file, readFileSync(file).subarray(0, -20))
    const { counts, equal } = await compared(list, place)
    expect(Object.keys(counts)).toEqual(['missing'])
    expect([counts.missing! > 0, counts.missing! + equal]).toEqual([true, 11])
    const path = join(scratch, 'of-cut.jsonl')
    writeFileSync(path, list)
    const { code, stderr } = await trialscan('diff', place, '--digests', path)
    expect([code, stderr]).toEqual([4, expect.stringContaining('model.safetensors')])
    const trial = join(scratch, 'cut-trial')
    copyTrial(PLAIN, trial)
    const whole = await listOf(trial)
    corruptions.find(({ name }) => name === 'event file cut inside a payload')!.apply(trial)
    const found = await compared(whole, trial)
    expect(found.differences[0]).toMatchObject({ kind: 'unreadable', got: expect.stringContaining('tfevents') })
    expect(found.equal).toBe(found.compared)
  })

  it('refuses what is no list', async () => {
    expect(await rejectionOf(compared(7 as never))).toBeInstanceOf(UsageError)
  })
})

describe('lists that lie', () => {
  const [a] = LINES as [(typeof LINES)[0]]
  const cases: readonly (readonly [name: string, line: unknown, expected: string, got: string])[] = [
    ['no JSON', '{"tensor":"a"', 'a JSON object', '"{\\"tensor\\":\\"a\\""'],
    ['binary', '\u0000\uFFFD\u001b[2J', 'a JSON object', expect.any(String) as never],
    ['an array', [1], 'a JSON object', '[1]'],
    ['null', 'null', 'a JSON object', 'null'],
    ['deep', `${'['.repeat(500_000)}`, 'a JSON object', expect.any(String) as never],
    ['no tensor', { ...a, tensor: undefined }, 'tensor, a name', 'none'],
    ['a name that is none', { ...a, tensor: 5 }, 'tensor, a name', '5'],
    ['no digest', { ...a, sha256: undefined }, 'crc32c or sha256', 'neither'],
    [
      'upper case',
      { ...a, sha256: 'A'.repeat(64) },
      'sha256, 64 hexadecimal digits in lower case',
      `"${'A'.repeat(59)}…`,
    ],
    ['short', { ...a, crc32c: 'abc' }, 'crc32c, 8 hexadecimal digits in lower case', '"abc"'],
    ['a number', { ...a, crc32c: 12345678 }, 'crc32c, 8 hexadecimal digits in lower case', '12345678'],
    ['no dtype', { ...a, dtype: undefined }, 'dtype, such as "float32"', 'none'],
    ['a shape that is none', { ...a, shape: [-1] }, 'shape, such as [3, 5]', '[-1]'],
    ['a text for a shape', { ...a, shape: '2x2' }, 'shape, such as [3, 5]', '"2x2"'],
    ['too many dimensions', { ...a, shape: Array(255).fill(1) }, 'shape, such as [3, 5]', expect.any(String) as never],
    ['a step that is none', { ...a, step: 1.5 }, 'step, a whole number', '1.5'],
    ['a worker that is none', { ...a, worker: {} }, 'worker, a name', '{}'],
    [
      'a failed row',
      { tensor: 'a', error: { code: 'X' } },
      'a digest',
      'a tensor that could not be read: {"code":"X"}',
    ],
    ['a long line', `"${'x'.repeat(3 << 20)}"`, 'at most 1048576 characters', 'more'],
  ]
  it.each(cases)('are told by line: %s', async (_, line, expected, got) => {
    const { faults, faultCount, equal } = await compared(textOf(['', line, ...LINES]))
    expect([faults, faultCount, equal]).toEqual([[{ line: 2, expected, got }], 1, 3])
  })

  it('each tensor counts once, the first', async () => {
    const { faults, equal, counts } = await compared(textOf([...LINES, { ...a, sha256: '0'.repeat(64) }]))
    expect(faults).toEqual([{ line: 4, expected: 'each tensor once', got: '"a" again, as in line 1' }])
    expect([equal, counts]).toEqual([3, {}])
  })

  it('names are names, whatever they look like', async () => {
    const names = ['../../etc/passwd', '__proto__', 'constructor', '\u001b[31mred', 'a\u0000b']
    const { counts, differences } = await compared(textOf([...LINES, ...names.map(tensor => ({ ...a, tensor }))]))
    expect([counts, differences.map(({ tensor }) => tensor)]).toEqual([{ missing: 5 }, names])
    const place = join(scratch, 'proto.safetensors')
    writeFile(place, Buffer.concat([safetensors([tensorOf('constructor', 'F32', [1], [1])])]))
    expect(await compared(await listOf(place), place)).toMatchObject({ equal: 1, counts: {} })
  })

  it('of very many lines the first are told, and all are counted', async () => {
    const line = textOf([{ ...a, tensor: 'x' }])
    function* many(): Generator<string> {
      yield textOf(LINES)
      for (let i = 0; i < 30; i++) yield line.repeat(1000) + 'nothing\n'.repeat(10)
    }
    const found = await compared(many())
    expect(found).toMatchObject({ equal: 3, counts: { missing: 30_000 }, faultCount: 300 })
    expect([found.differences.length, found.faults.length]).toEqual([10_000, 100])
  })

  it('strings and saved reductions have no digest, and are no fault', async () => {
    const lines = [
      { tensor: 's', dtype: 'string', shape: [1] },
      { tensor: 'm', dtype: null, shape: null, mean: 1, saved: true },
    ]
    expect(await compared(textOf([...lines, ...LINES]))).toMatchObject({ equal: 3, counts: {}, faultCount: 0 })
  })
})

describe('verify', () => {
  it('writes what scan writes', async () => {
    const place = join(FIXTURES, 'base')
    const { stdout } = await trialscan('scan', place, '--reductions', 'crc32c,sha256', '--format', 'jsonl')
    const list = join(scratch, 'base.jsonl')
    const { code } = await trialscan('verify', place, '--record', list)
    expect([code, readFileSync(list, 'utf8')]).toEqual([0, stdout])
  })

  it('holds a checkpoint against a list, beside its values', async () => {
    const list = await listOf(join(FIXTURES, 'base'))
    const path = join(scratch, 'list.jsonl')
    writeFileSync(path, `${list}{"tensor":"no such"}\n${list.split('\n')[0]!.replace('model.embed', 'lost')}\n`)
    expect((await trialscan('verify', join(FIXTURES, 'base'), '--digests', path, '--values')).code).toBe(4)
    const { code, stdout } = await trialscan('verify', join(FIXTURES, 'tuned'), '--digests', path, '--values')
    const found = objects(stdout)
    expect(code).toBe(4)
    expect(found.at(-1)).toMatchObject({
      problems: { DigestMismatch: 2, NotInTrial: 1, BadDigestList: 1 },
      values_read: 11,
      digests_equal: 9,
      digests_listed: 12,
    })
    expect(found[0]).toMatchObject({
      code: 'BadDigestList',
      expected: expect.stringContaining('line 12 of the digest list'),
    })
    const { ok, stats } = await verifyTrial(join(FIXTURES, 'base'), { digests: list })
    expect([ok, stats.digests, stats.values]).toEqual([true, { equal: 11, of: 11 }, null])
    const unlisted = await verifyTrial(join(FIXTURES, 'base'), { digests: list.split('\n').slice(1).join('\n') })
    expect(unlisted.problemCounts).toEqual({ NotInList: 1 })
  })

  it('does so for trials of smdebug', async () => {
    const list = await listOf(PLAIN)
    const { ok, stats } = await verifyTrial(PLAIN, { digests: list })
    expect([ok, stats.digests]).toEqual([true, { equal: objects(list).length, of: objects(list).length }])
    const { problemCounts } = await verifyTrial(PLAIN, { digests: list.replace(/"sha256":"./, '"sha256":"g') })
    expect(problemCounts).toEqual({ BadDigestList: 1, NotInList: 1 })
  })

  it('takes one trial, and a list that is there', async () => {
    const two = await trialscan(
      'verify',
      join(FIXTURES, 'base'),
      join(FIXTURES, 'tuned'),
      '--record',
      join(scratch, 'x'),
    )
    expect([two.code, two.stderr]).toEqual([2, expect.stringContaining('expected one trial beside --record, got 2')])
    const none = await trialscan('verify', join(FIXTURES, 'base'), '--digests', join(scratch, 'none'))
    expect([none.code, none.stderr]).toEqual([3, expect.stringContaining('--digests')])
    expect(none.stderr).toContain('no such file')
  })
})

describe('diff --digests', () => {
  const list = join(scratch, 'diff.jsonl')
  const diff = (place: string, ...flags: string[]) =>
    trialscan('diff', join(FIXTURES, place), '--digests', list, ...flags)

  it('says what differs, with the exit codes of diff', async () => {
    writeFileSync(list, await listOf(join(FIXTURES, 'base')))
    const equal = await diff('base')
    expect([equal.code, objects(equal.stdout)]).toEqual([0, [{ divergence: null, compared: 11, equal: 11 }]])
    const { code, stdout } = await diff('tuned')
    const [head, ...lines] = objects(stdout)
    expect([code, lines.length, head]).toEqual([1, 2, { divergence: lines[0], compared: 11, equal: 9 }])
    expect(Object.keys(lines[0]!)).toEqual(['kind', 'tensor', 'step', 'worker', 'line', 'expected', 'got'])
    const csv = (await diff('tuned', '--format', 'csv')).stdout.split('\n')
    expect([csv[0], csv.length]).toEqual(['kind,tensor,step,worker,line,expected,got', 4])
    const table = await diff('tuned', '--format', 'table')
    expect(table.stdout).toContain('2 of 11 tensors differ')
    expect((await diff('tuned', '--tensor', 'embed')).code).toBe(0)
    expect((await diff('tuned', '--tensor', 'no such')).code).toBe(5)
  })

  it('tells bad lines on standard error, with exit code 4', async () => {
    writeFileSync(list, `\u001b[2J{\n${await listOf(join(FIXTURES, 'base'))}`)
    const { code, stdout, stderr } = await diff('base')
    expect([code, objects(stdout)[0]]).toEqual([4, { divergence: null, compared: 11, equal: 11 }])
    expect(stderr).toContain('line 1: expected a JSON object, got')
    expect(stderr).not.toContain('\u001b')
    writeFileSync(list, 'nothing\n')
    expect((await diff('base', '--format', 'table')).stdout).toContain('nothing was compared')
    writeFileSync(list, '')
    expect((await diff('base')).code).toBe(5)
  })

  it('refuses what is about two runs, other formats, and to replace the list', async () => {
    writeFileSync(list, textOf(LINES))
    const flags = [['--rtol', '1'], ['--first'], ['--format', 'parquet'], ['--out', list]]
    for (const given of flags) expect((await diff('base', ...given)).code, given.join(' ')).toBe(2)
    expect((await trialscan('diff', FIXTURES, FIXTURES, '--digests', list)).code).toBe(2)
  })
})

describe.runIf(HAS_S3)('a list on S3', () => {
  it('is read from there, compressed or not, and told where it is missing', async () => {
    Object.assign(process.env, { ...ENVIRONMENT, AWS_S3_FORCE_PATH_STYLE: 'true' })
    const bucket = await makeBucket()
    const text = await listOf(join(FIXTURES, 'base'))
    await put(bucket, 'lists/base.jsonl', text)
    await put(bucket, 'lists/base.jsonl.gz', gzipSync(text))
    const [list, packed] = [`s3://${bucket}/lists/base.jsonl`, `s3://${bucket}/lists/base.jsonl.gz`]
    for (const digests of [list, packed]) {
      const { code, stdout } = await trialscan('diff', join(FIXTURES, 'tuned'), '--digests', digests)
      expect([code, objects(stdout)[0]]).toMatchObject([1, { compared: 11, equal: 9 }])
      expect((await trialscan('verify', join(FIXTURES, 'base'), '--digests', digests)).code).toBe(0)
    }
    const region = ['--s3-region', 'us-east-1']
    expect((await trialscan('diff', join(FIXTURES, 'base'), '--digests', list, ...region)).code).toBe(0)
    const none = await trialscan('diff', join(FIXTURES, 'base'), '--digests', `s3://${bucket}/lists/none`)
    expect([none.code, none.stderr]).toEqual([3, expect.stringContaining(`s3://${bucket}/lists/none`)])
  })
})
