/** `trialscan dump`: every value as the library reads it, in an archive and in a directory; and archives larger than 32 bits. */

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import { ZipWriter } from '#dist/cli/format/zip.js'
import { createTrial, readValues } from '#dist/index.js'
import { npyChunks } from '#dist/table/npy.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { isRequired, ROOT } from '../support/golden.js'
import { objects, trialscan } from './run.js'

const TRIALS = join(ROOT, 'fixtures/trials')
const directory = mkdtempSync(join(tmpdir(), 'trialscan-dump-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const python = ['/usr/bin/python3', 'python3'].find(path => {
  try {
    execFileSync(path, ['-c', 'import numpy'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})

const digest = (chunks: Iterable<Uint8Array>) => {
  const hash = createHash('sha256')
  for (const chunk of chunks) hash.update(chunk)
  return hash.digest('hex')
}

/** Digests of the .npy of every value, by name, each read by itself. */
async function expectedOf(path: string): Promise<Map<string, string>> {
  const trial = await createTrial(path, { requireCollections: false })
  const expected = new Map<string, string>()
  for await (const { tensor, step, worker } of trial.scan({ reductions: [] })) {
    try {
      const value = await trial.tensor(tensor!).value(step, { worker })
      const name = [...(trial.workers().length > 1 ? [worker] : []), step, tensor].join('/')
      expected.set(name, digest(npyChunks(value)))
    } catch {
      // Only reductions were saved.
    }
  }
  await trial.close()
  return expected
}

/** The members of an archive that is not ZIP64, by their names. */
function membersOf(archive: Buffer): Map<string, Buffer> {
  const end = archive.length - 22
  expect(archive.readUInt32LE(end)).toBe(0x06054b50)
  const members = new Map<string, Buffer>()
  let at = archive.readUInt32LE(end + 16)
  for (let i = 0; i < archive.readUInt16LE(end + 10); i++) {
    const [size, nameLength, extraLength, offset] = [
      archive.readUInt32LE(at + 24),
      archive.readUInt16LE(at + 28),
      archive.readUInt16LE(at + 30),
      archive.readUInt32LE(at + 42),
    ]
    const name = archive.toString('utf8', at + 46, at + 46 + nameLength)
    const start = offset + 30 + archive.readUInt16LE(offset + 26) + archive.readUInt16LE(offset + 28)
    const content = archive.subarray(start, start + size)
    // The checksum stands before the content, too.
    expect([archive.readUInt32LE(at + 16), archive.readUInt32LE(offset + 14)]).toEqual([crc32(content), crc32(content)])
    members.set(name, content)
    at += 46 + nameLength + extraLength
  }
  return members
}

it('a directory takes one dump: its list would not be that of both', async () => {
  const out = join(directory, 'twice/')
  const [first, second] = readdirSync(TRIALS).map(name => join(TRIALS, name)) as [string, string]
  expect((await trialscan('dump', first, '--out', out)).code).toBe(0)
  const { code, stderr } = await trialscan('dump', second, '--out', out)
  expect([code, stderr]).toEqual([2, expect.stringContaining('index.jsonl lists what was dumped there before')])
})

it('a directory that holds anything else, such as /, gets no dump', async () => {
  const out = join(directory, 'held')
  mkdirSync(out)
  writeFileSync(join(out, 'other'), '')
  const { code, stderr } = await trialscan('dump', join(TRIALS, 'dtypes'), '--out', out)
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining('expected a new or an empty directory, got one that has other'),
  ])
  expect(readdirSync(out)).toEqual(['other'])
})

it('a directory that is a file gets no dump', async () => {
  const out = join(directory, 'file')
  writeFileSync(out, '')
  const { code, stderr } = await trialscan('dump', join(TRIALS, 'dtypes'), '--out', `${out}/`)
  expect([code, stderr]).toEqual([
    3,
    expect.stringMatching(/^trialscan: cannot list .*file.*: a part of its path is not a directory/),
  ])
})

describe.each(readdirSync(TRIALS))('of %s', name => {
  const path = join(TRIALS, name)

  it('an archive has every value, and so has a directory', async () => {
    const expected = await expectedOf(path)
    const archive = join(directory, `${name}.npz`)
    const { code, stderr } = await trialscan('dump', path, '--out', archive)
    expect(stderr).toContain(`${expected.size} array`)
    expect(code).toBe(0)
    const members = [...membersOf(readFileSync(archive))]
    expect(new Map(members.map(([file, bytes]) => [file.replace(/\.npy$/, ''), digest([bytes])]))).toEqual(expected)

    const out = join(directory, `${name}/`)
    expect((await trialscan('dump', path, '--out', out)).code).toBe(0)
    const files = objects(readFileSync(join(out, 'index.jsonl'), 'utf8'))
    expect(files).toHaveLength(expected.size)
    for (const { file, tensor, step, worker } of files) {
      const known = expected.get(`${step}/${tensor}`) ?? expected.get(`${worker}/${step}/${tensor}`)
      expect(digest([readFileSync(join(out, String(file)))]), String(file)).toBe(known)
    }
  })

  it.runIf(python !== undefined || isRequired('numpy'))('numpy reads the archive', () => {
    const script =
      'import numpy, sys\nd = numpy.load(sys.argv[1])\nprint(len(d.files), sum(d[k].size for k in d.files))'
    const told = execFileSync(python!, ['-c', script, join(directory, `${name}.npz`)], { encoding: 'utf8' })
    expect(Number(told.split(' ')[0])).toBeGreaterThan(0)
  })
})

describe('arrays without elements', () => {
  it('have checksums like all others, whatever their dtype and shape', async () => {
    const path = join(directory, 'empty')
    const writer = new TrialWriter(path)
    const dtypes = ['float32', 'bool', 'bfloat16', 'int64'] as const
    const tensors = [[0], [0, 3], [3, 0]].flatMap(shape => {
      return dtypes.map(dtype => ({ name: `${dtype} ${shape}`, dtype, shape, values: [] }) as const)
    })
    writer.step({
      step: 0,
      mode: 'TRAIN',
      tensors: [...tensors, { name: 'full', dtype: 'float32', shape: [1], values: [1] }],
    })
    writer.end()
    const out = join(directory, 'empty.npz')
    expect((await trialscan('dump', path, '--out', out)).code).toBe(0)
    expect([...membersOf(readFileSync(out)).keys()]).toHaveLength(13)
  })
})

describe('names', () => {
  const path = join(directory, 'hostile')
  const names = ['../../up', 'a/b', '..', 'CON', 'x'.repeat(300), 'é ü*?:"<>|', 'a%2Fb']

  it('of any tensor are files of the directory', async () => {
    const writer = new TrialWriter(path)
    const tensors = names.map((name, i) => ({ name, dtype: 'float32', shape: [1], values: [i] }) as const)
    writer.step({ step: 0, mode: 'TRAIN', tensors })
    writer.end()
    const out = join(directory, 'safe/')
    expect((await trialscan('dump', path, '--out', out)).code).toBe(0)
    const files = objects(readFileSync(join(out, 'index.jsonl'), 'utf8'))
    expect(files.map(({ tensor }) => tensor)).toEqual(names)
    expect(new Set(files.map(({ file }) => file)).size).toBe(names.length)
    expect(readdirSync(join(out, '0')).sort()).toEqual(files.map(({ file }) => String(file).slice(2)).sort())
    expect(existsSync(join(directory, 'up.npy'))).toBe(false)
  })
})

describe('what can not be had', () => {
  it('is named, and all else is written', async () => {
    const path = join(directory, 'damaged')
    cpSync(join(TRIALS, 'mlp-vanishing'), path, { recursive: true })
    const folder = join(path, 'events', readdirSync(join(path, 'events'))[0]!)
    const file = join(folder, readdirSync(folder)[0]!)
    const bytes = readFileSync(file)
    writeFileSync(file, bytes.subarray(0, bytes.length >> 1))
    const out = join(directory, 'damaged.npz')
    const { code, stderr } = await trialscan('dump', path, '--out', out)
    expect(code).toBe(4)
    expect(stderr).toMatch(/\d+ of 206 values could not be had/)
    expect(stderr).toContain(readdirSync(folder)[0]!)
    const [, failed] = /(\d+) of 206/.exec(stderr)!
    expect(membersOf(readFileSync(out)).size).toBe(206 - Number(failed))
  })

  it.each([
    ['x.csv', 2, 'expected --out to be a file .npz, or a directory'],
    [join(TRIALS, 'mlp-vanishing/values/'), 2, 'outside of the trial'],
  ])('a place %s', async (out, code, message) => {
    const outcome = await trialscan('dump', join(TRIALS, 'mlp-vanishing'), '--out', out)
    expect([outcome.code, outcome.stderr]).toEqual([code, expect.stringContaining(message)])
  })

  it('nothing was selected, or nothing said where to', async () => {
    const out = join(directory, 'nothing.npz')
    const outcome = await trialscan('dump', join(TRIALS, 'mlp-vanishing'), '--tensor', 'no such', '--out', out)
    expect([outcome.code, outcome.stderr]).toEqual([5, expect.stringContaining('nothing is there: no tensor')])
    expect((await trialscan('dump', join(TRIALS, 'mlp-vanishing'))).code).toBe(2)
  })
})

it('readValues ends with its signal, and tells tensors of which only reductions were saved', async () => {
  const trial = await createTrial(join(TRIALS, 'cnn-raw-and-reductions'), { requireCollections: false })
  const seen = []
  for await (const { value, error } of readValues(trial)) seen.push([value === null, error])
  expect(seen).toContainEqual([false, undefined])
  await expect(readValues(trial, { signal: AbortSignal.abort(new Error('enough')) }).next()).rejects.toThrow('enough')
  await trial.close()
})

describe('an archive', () => {
  it('of more than 32 bits is ZIP64', async () => {
    // 5 GiB that nobody keeps: only what is no zeros is, with its place.
    const zeros = new Uint8Array(1 << 30)
    const kept: { readonly at: number; readonly bytes: Buffer }[] = []
    let at = 0
    const zip = new ZipWriter(async bytes => {
      if (bytes !== zeros) kept.push({ at, bytes: Buffer.from(bytes) })
      at += bytes.length
    })
    await zip.add('large', [zeros, zeros, zeros, zeros, zeros])
    await zip.add('small', [Buffer.from('abc')])
    await zip.finish()
    const tail = kept.at(-1)!.bytes
    const end = tail.length - 22
    expect(tail.readUInt32LE(end + 16)).toBe(0xffff_ffff)
    expect(tail.readUInt32LE(end - 20)).toBe(0x07064b50)
    const record = Number(tail.readBigUInt64LE(end - 12)) - kept.at(-1)!.at
    expect([tail.readUInt32LE(record), Number(tail.readBigUInt64LE(record + 32))]).toEqual([0x06064b50, 2])
    const central = Number(tail.readBigUInt64LE(record + 48)) - kept.at(-1)!.at
    expect([tail.readUInt32LE(central), tail.readUInt32LE(central + 24)]).toEqual([0x02014b50, 0xffff_ffff])
    expect(Number(tail.readBigUInt64LE(central + 46 + 'large'.length + 4))).toBe(5 * 2 ** 30)
  })

  it.runIf(python !== undefined || isRequired('numpy'))('of more than 65,535 members is read by Python', async () => {
    const chunks: Buffer[] = []
    const zip = new ZipWriter(async bytes => {
      chunks.push(Buffer.from(bytes))
    })
    for (let i = 0; i < 70_000; i++) await zip.add(`${i}`, [Buffer.from(String(i))])
    await zip.finish()
    const path = join(directory, 'members.zip')
    writeFileSync(path, Buffer.concat(chunks))
    const script =
      'import zipfile, sys\nz = zipfile.ZipFile(sys.argv[1])\nprint(len(z.namelist()), z.testzip(), z.read("69999"))'
    expect(execFileSync(python!, ['-c', script, path], { encoding: 'utf8' })).toBe("70000 None b'69999'\n")
  })
})
