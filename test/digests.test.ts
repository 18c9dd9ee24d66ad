/** Digests of tensors' elements: the same whatever the file, and text wherever rows go. */

import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { tableFromIPC } from 'apache-arrow'
import { parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import { afterAll, describe, expect, it } from 'vitest'
import {
  closePools,
  createTrial,
  diff,
  evaluate,
  exportTensorBoard,
  Rule,
  type TableFormatName,
  type Trial,
  tableBytes,
  UsageError,
} from '#dist/index.js'
import { crc32c as kernelCrc32c } from '#dist/kernels.js'
import { counting, npy, safetensors, writeFile, writeShards } from '../fixtures/checkpoint-writer.js'
import { TrialWriter } from '../fixtures/event-writer.js'
import { uniform } from '../fixtures/random.js'
import { DTYPES, objects, trialscan } from './cli/run.js'
import { crc32c } from './oracle/crc32c.js'
import { bytesOfTensor, contentsOf, FIXTURES, readContent } from './support/checkpoint-files.js'
import { dict, distributedMetadata, pickled, tensor, torchZip } from './support/pickles.js'
import { HAS_S3, makeBucket, OPTIONS, upload } from './support/s3.js'
import { rejectionOf, rowsOf } from './support/scanning.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('digests')
const BOTH = ['crc32c', 'sha256'] as const

afterAll(closePools)

/** @param crc the naive one takes a second for some megabytes */
function digestsOf(bytes: Uint8Array, crc: (bytes: Uint8Array) => number = crc32c) {
  return {
    crc32c: crc(bytes).toString(16).padStart(8, '0'),
    sha256: createHash('sha256').update(bytes).digest('hex'),
  }
}

function randomWords(count: number): Uint32Array<ArrayBuffer> {
  const random = uniform(5)
  const words = new Uint32Array(count)
  for (let i = 0; i < count; i++) words[i] = random() * 2 ** 32
  return words
}

const open = (place: string, threads = 0): Promise<Trial> => createTrial(place, { refresh: 'manual', threads })

async function digestsIn(place: string, threads = 0): Promise<Readonly<Record<string, unknown>>> {
  const trial = await open(place, threads)
  const rows = await rowsOf(trial, { reductions: [...BOTH] })
  await trial.close()
  return Object.fromEntries(rows.map(row => [row.tensor, row.error?.message ?? row.reductions]))
}

describe('digests are those of the elements in C order', () => {
  it.each([
    'torch/zip.pt',
    'torch/legacy.pt',
    'torch-2.13/new-dtypes.pt',
    'torch-2.13/protocol5.pt',
    'dcp/step-100/.metadata',
  ])('gathered one by one, of %s', async path => {
    const [directory, ...rest] = path.split('/')
    const root = join(FIXTURES, directory!)
    const { tensors } = await contentsOf(root, rest.join('/'))
    const expected = tensors.map(one => [one.name, digestsOf(bytesOfTensor(one, readContent(root)))])
    const place = path.endsWith('.metadata') ? join(FIXTURES, 'dcp/step-100') : join(FIXTURES, path)
    expect(await digestsIn(place)).toEqual(Object.fromEntries(expected))
  })

  it('in every container, in shards, in chunks and across strides', async () => {
    const [rows, columns] = [6, 10]
    const w = counting('w', [rows, columns])
    const floats = new Float32Array(w.bytes.buffer)
    const turned = Float32Array.from(floats, (_, i) => floats[(i % rows) * columns + Math.floor(i / rows)]!)
    const bytesOf = (of: Float32Array) => new Uint8Array(of.buffer)
    const saved = (size: readonly number[], stride: readonly number[], of: Float32Array) =>
      torchZip({
        'data.pkl': pickled(tensor({ count: of.length, size, stride })),
        'data/0': bytesOf(of),
        version: Buffer.from('3\n'),
      })
    const chunks = [0, 4].map(from => {
      const part = Float32Array.from({ length: rows * (from === 0 ? 4 : 6) }, (_, i) => {
        const width = from === 0 ? 4 : 6
        return floats[Math.floor(i / width) * columns + from + (i % width)]!
      })
      const sizes = [rows, from === 0 ? 4 : 6]
      return { offsets: [0, from], sizes, content: saved(sizes, [sizes[1]!, 1], part), file: `__${from}_0.distcp` }
    })
    const files: Readonly<Record<string, Uint8Array>> = {
      'a.safetensors': safetensors([counting('v', [3]), w]),
      'c.npy': npy(w),
      'fortran.npy': npy({ ...w, bytes: bytesOf(turned) }, 'Fortran'),
      'dense.pt': saved([rows, columns], [columns, 1], floats),
      'turned.pt': saved([rows, columns], [1, rows], turned),
      'named.pt': torchZip({
        'data.pkl': pickled(dict({ w: tensor({ count: floats.length, size: [rows, columns], stride: [columns, 1] }) })),
        'data/0': bytesOf(floats),
        version: Buffer.from('3\n'),
      }),
      'dcp/.metadata': distributedMetadata({
        w: {
          size: [rows, columns],
          chunks: chunks.map(({ offsets, sizes, content, file }) => ({
            offsets,
            sizes,
            place: { file, start: 0, length: content.length },
          })),
        },
      }),
    }
    const root = join(scratch, 'same')
    for (const [path, content] of Object.entries(files)) writeFile(join(root, path), content)
    for (const { file, content } of chunks) writeFile(join(root, 'dcp', file), content)
    writeShards(join(root, 'shards'), [[counting('v', [3])], [w]])
    const expected = digestsOf(w.bytes)
    for (const place of [...Object.keys(files).filter(path => !path.startsWith('dcp')), 'dcp', 'shards']) {
      const found = await digestsIn(join(root, place))
      expect(found.w ?? Object.values(found)[0], place).toEqual(expected)
    }
    for (const place of ['named.pt', 'dcp', 'shards']) {
      const { divergence, equal } = await diff(join(root, place), join(root, 'a.safetensors'), { tensors: '^w$' })
      expect([divergence, equal], place).toEqual([null, 1])
    }
  })

  it.each([0, 2])('of tensors that are read in parts, on %i threads', async threads => {
    // Three parts, the last of which is short; and the same across strides.
    const shape = [2500, 3579]
    const words = randomWords(2500 * 3579)
    const turned = new Uint32Array(words.length)
    for (let i = 0; i < words.length; i++) turned[(i % 3579) * 2500 + Math.floor(i / 3579)] = words[i]!
    const bytes = new Uint8Array(words.buffer)
    const directory = join(scratch, `large-${threads}`)
    const w = { name: 'w', dtype: 'F32', shape, bytes }
    writeFile(join(directory, 'c.safetensors'), safetensors([counting('v', [5]), w]))
    writeFile(join(directory, 'f.npy'), npy({ ...w, bytes: new Uint8Array(turned.buffer) }, 'Fortran'))
    const expected = digestsOf(bytes, kernelCrc32c)
    expect((await digestsIn(join(directory, 'c.safetensors'), threads)).w).toEqual(expected)
    expect(Object.values(await digestsIn(join(directory, 'f.npy'), threads))).toEqual([expected])
    const trial = await open(join(directory, 'c.safetensors'), threads)
    const [row] = await rowsOf(trial, { tensors: 'w', reductions: ['crc32c', 'count'], memory: 4 << 20 })
    expect(row!.reductions).toEqual({ crc32c: expected.crc32c, count: words.length })
    // What needs all elements in memory stands beside what streams.
    const [both] = await rowsOf(trial, {
      tensors: 'w',
      reductions: ['p0', 'sha256', 'crc32c', 'histogram:1', 'sketch'],
    })
    expect(both!.reductions).toMatchObject(expected)
    expect(await trial.tensor('w').reductionValue(0, 'sha256')).toBe(expected.sha256)
    await trial.close()
  })

  it('of every dtype of trials, however its values lie', async () => {
    const trial = await open(DTYPES)
    const rows = await rowsOf(trial, { reductions: [...BOTH] })
    expect(rows.length).toBeGreaterThan(10)
    for (const { tensor: name, step, dtype, reductions, error } of rows) {
      // Of others the value has wider numbers than the record.
      if (error || dtype === null || !/^(?:float(?:32|64)|u?int|bool|complex)/.test(dtype)) continue
      const value = await trial.tensor(name!).value(step)
      const data = value.data as Uint8Array
      expect(reductions, name!).toEqual(digestsOf(new Uint8Array(data.buffer, data.byteOffset, data.byteLength)))
    }
    await trial.close()
  })

  it('strings and what only has saved reductions have none', async () => {
    const directory = join(scratch, 'strings')
    const writer = new TrialWriter(directory, { checksum: 'true' })
    const tensors = [
      { name: 'text', dtype: 'string', shape: [1], strings: ['a'] },
      { name: 'saved', reductions: { mean: 2 } },
      { name: 'complex', dtype: 'complex64', shape: [1], values: [3, 1] },
    ] as const
    writer.step({ step: 0, tensors })
    writer.end()
    const { text, saved, complex } = await digestsIn(directory)
    expect([text, saved]).toEqual([{}, {}])
    expect(Object.keys(complex as object)).toEqual([...BOTH])
  })

  it.runIf(HAS_S3)('on S3', async () => {
    const bytes = new Uint8Array(randomWords(35 << 18).buffer)
    const directory = join(scratch, 's3')
    writeFile(
      join(directory, 'model.safetensors'),
      safetensors([{ name: 'w', dtype: 'U8', shape: [bytes.length], bytes }]),
    )
    const bucket = await makeBucket()
    await upload(directory, bucket, 'model/')
    const trial = await createTrial(`s3://${bucket}/model`, { refresh: 'manual', s3: OPTIONS })
    const expected = digestsOf(bytes, kernelCrc32c)
    for (const reductions of [['crc32c'], ['sha256'], [...BOTH]] as const) {
      const [row] = await rowsOf(trial, { reductions: [...reductions] })
      expect(row!.reductions).toEqual(Object.fromEntries(reductions.map(name => [name, expected[name]])))
    }
    await trial.close()
  })
})

describe('a digest is text', () => {
  const place = join(FIXTURES, 'tuned')
  const lines = async (...flags: string[]) =>
    (await trialscan('scan', place, '--reductions', 'crc32c,sha256', ...flags)).stdout.trimEnd().split('\n')

  it('in JSON Lines, CSV and tables for people', async () => {
    const expected = await digestsIn(place)
    const rows = objects((await lines('--format', 'jsonl')).join('\n'))
    expect(Object.fromEntries(rows.map(({ tensor, crc32c, sha256 }) => [tensor, { crc32c, sha256 }]))).toEqual(expected)
    const [head, ...others] = await lines('--format', 'csv')
    expect([head, others.length]).toEqual([expect.stringContaining('crc32c,sha256'), rows.length])
    for (const [i, { crc32c, sha256 }] of rows.entries()) expect(others[i]).toContain(`${crc32c},${sha256}`)
    // Of a table, what is too wide for the terminal is below the first columns.
    const words = (await lines('--format', 'table')).join(' ').split(/ +/)
    const expectedWords = rows.flatMap(({ crc32c, sha256 }) => [crc32c, sha256])
    expect(words.filter(word => expectedWords.includes(word))).toEqual(expectedWords)
  })

  it.each(['parquet', 'arrow'] as const)('in %s', async (format: TableFormatName) => {
    const trial = await open(place)
    const rows = await rowsOf(trial, { reductions: ['mean', ...BOTH] })
    const chunks: Uint8Array[] = []
    const scan = trial.scan({ reductions: ['mean', ...BOTH] })
    for await (const chunk of tableBytes(scan, format)) chunks.push(chunk)
    const bytes = Buffer.concat(chunks)
    const told =
      format === 'arrow'
        ? tableFromIPC(bytes)
            .toArray()
            .map(row => row!.toJSON())
        : await parquetReadObjects({ file: Uint8Array.from(bytes).buffer, compressors })
    expect(told.map(({ mean, crc32c, sha256 }) => ({ mean, crc32c, sha256 }))).toEqual(rows.map(row => row.reductions))
    await trial.close()
  })

  it('that --where compares, and that is no number for --by', async () => {
    const [row] = objects((await lines('--format', 'jsonl')).join('\n'))
    const { stdout } = await trialscan(
      'scan',
      place,
      '--where',
      `crc32c = '${row!.crc32c}'`,
      '--format',
      'csv',
      '--reductions',
      'count',
    )
    expect(stdout.trimEnd().split('\n').slice(1)).toEqual([expect.stringContaining(`${row!.tensor}`)])
    const { code, stderr } = await trialscan('top', place, '--by', 'sha256')
    expect([code, stderr]).toEqual([2, expect.stringContaining('sha256')])
  })

  it('that columns of numbers lack, and rows have', async () => {
    const trial = await open(place)
    for await (const columns of trial.scan({ reductions: ['count', 'crc32c'] }).columns()) {
      expect(columns.reductions.crc32c![0]).toBeNaN()
      expect(columns.row(0).reductions.crc32c).toMatch(/^[0-9a-f]{8}$/)
    }
    await trial.close()
  })

  it('that neither rules nor TensorBoard take', async () => {
    const trial = await open(place)
    class Asks extends Rule {
      override setRequiredTensors(step: number): void {
        this.reqTensors.add('model.norm.weight', [step], { reductions: ['crc32c'] })
      }
      invokeAtStep(): boolean {
        return false
      }
    }
    const told =
      'expected a reduction that a rule can ask for, got crc32c: trial.scan and tensor.reductionValue have digests'
    const outcome = await evaluate([new Asks(trial)]).catch((error: unknown) => error)
    expect(JSON.stringify(outcome) + String(outcome)).toContain(told)
    const exported = exportTensorBoard(trial, join(scratch, 'runs'), { reductions: ['sha256'] })
    expect(await rejectionOf(exported)).toBeInstanceOf(UsageError)
    await trial.close()
  })
})
