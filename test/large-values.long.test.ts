/** Values of more than 2 GiB, of each element size: files that are almost all holes. */

import { execFile, spawn } from 'node:child_process'
import { closeSync, ftruncateSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  collectionsFileText,
  crc32c,
  crc32cOfZeros,
  DTYPES,
  type DTypeName,
  elementBytes,
  eventFilePath,
  indexFilePath,
  indexFileText,
  masked,
  varint,
} from '../fixtures/event-writer.js'
import { CLI, trialscan } from './cli/run.js'
import { concat, dimensions, field, utf8 } from './hostile/museum.js'
import { ROOT } from './support/golden.js'
import { scratchDirectory } from './support/scratch.js'

const GB = 1e9
const ENDING = [1, 0, 1, 1]
const scratch = scratchDirectory('large-values')

it('the checksum of zeros is that of zeros', () => {
  const head = Buffer.from('head')
  for (const count of [0, 1, 7, 256, 100_003]) {
    expect(crc32cOfZeros(count, crc32c(head))).toBe(crc32c(Buffer.concat([head, Buffer.alloc(count)])))
  }
})

/** As numbers: real and imaginary parts of complex ones. */
function endingOf(dtype: DTypeName): number[] {
  return DTYPES[dtype].parts === 2 ? ENDING.flatMap(element => [element, 0]) : ENDING
}

/**
 * A trial of one tensor of zeros that ends in ENDING, in tensor_content or, packed, in float_val.
 * @param count of elements
 */
function sparseTrial(name: string, dtype: DTypeName, count: number, place: 'content' | 'packed' = 'content'): string {
  const { number, byteLength: size } = DTYPES[dtype]
  const ending = elementBytes(dtype, endingOf(dtype))
  const byteLength = count * size
  // Nothing lies behind the elements: each field is a head and what it claims to hold.
  const content = field(place === 'content' ? 4 : 5, new Uint8Array(0), byteLength)
  const tensor = concat(varint(8), varint(number), field(2, dimensions(count)), content)
  const value = concat(field(1, utf8('big')), field(8, tensor, tensor.length + byteLength))
  const summary = field(1, value, value.length + byteLength)
  const head = concat(varint(16), varint(0), field(5, summary, summary.length + byteLength))
  const payloadLength = head.length + byteLength
  const header = Buffer.alloc(12)
  header.writeBigUInt64LE(BigInt(payloadLength))
  header.writeUInt32LE(masked(crc32c(header.subarray(0, 8))), 8)
  const footer = Buffer.alloc(4)
  footer.writeUInt32LE(masked(crc32c(ending, crc32cOfZeros(byteLength - ending.length, crc32c(head)))))

  const directory = join(scratch, name)
  const path = (inside: string): string => {
    mkdirSync(dirname(join(directory, inside)), { recursive: true })
    return join(directory, inside)
  }
  const file = openSync(path(eventFilePath(0, 'worker_0')), 'w')
  const end = header.length + payloadLength + footer.length
  ftruncateSync(file, end)
  writeSync(file, concat(header, head), 0, null, 0)
  writeSync(file, concat(ending, footer), 0, null, end - footer.length - ending.length)
  closeSync(file)
  writeFileSync(
    path(indexFilePath(0, 'worker_0')),
    indexFileText({
      meta: { mode: 'TRAIN', mode_step: 0, event_file_name: eventFilePath(0, 'worker_0') },
      tensor_payload: [{ tensorname: 'big', start_idx: 0, length: end }],
      shape_payload: [],
    }),
  )
  writeFileSync(path('collections/000000000/worker_0_collections.json'), collectionsFileText({}, 1))
  writeFileSync(path('training_job_end.ts'), '')
  return directory
}

/** What the library says, in a process of its own, and its peak of memory. */
async function told(directory: string): Promise<Record<string, unknown>> {
  const script = `
    import { createTrial, closePools } from ${JSON.stringify(join(ROOT, 'dist/index.js'))}
    const trial = await createTrial(${JSON.stringify(directory)})
    const tensor = trial.tensor('big')
    const sum = await tensor.reductionValue(0, 'sum')
    let row
    for await (const { error, moments } of trial.scan({ checkLevel: 'full' })) row = error?.message ?? moments.nonzeroCount ?? moments.count - moments.zeroCount
    const value = await tensor.value(0, { checkLevel: 'full' }).catch(error => error)
    const { dtype, shape, data, bytes } = value
    const said = value instanceof Error
      ? { error: value.code, message: value.message }
      : { dtype, shape, length: data.length, byteLength: bytes.byteLength, ending: [...data.subarray(-8)].map(Number) }
    await closePools()
    const peak = process.resourceUsage().maxRSS * 1024
    console.log(JSON.stringify({ sum, row, peak, ...said }))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
  return JSON.parse(stdout)
}

/** What a line of the shell writes to standard output and error. A test that waits does not keep its thread from answering. */
async function shell(line: string): Promise<{ readonly stdout: Buffer; readonly stderr: string }> {
  const child = spawn('bash', ['-c', line], { stdio: ['ignore', 'pipe', 'pipe'] })
  const chunks: Buffer[] = []
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve))
  return { stdout: Buffer.concat(chunks), stderr }
}

/** For each size of an element almost as much as the core can have of memory, and once just above 2^31 bytes, where a signed number of 32 bits ends. */
describe.each([
  ['int8', 4.1 * GB],
  ['bool', 2.2 * GB],
  ['uint16', 4.1 * GB],
  ['float32', 4.1 * GB],
  ['float64', 4.1 * GB],
  ['complex128', 4.1 * GB],
  // Twice as many bytes as a value, since it is widened.
  ['float16', 2 ** 30 + 2 ** 20],
] as const)('a tensor of %s', (dtype, byteLength) => {
  const count = Math.floor(byteLength / DTYPES[dtype].byteLength)
  let directory: string

  beforeAll(() => {
    directory = sparseTrial(dtype, dtype, count)
    return () => rmSync(directory, { recursive: true })
  })

  it('is handed out, reduced and scanned', { timeout: 900_000 }, async () => {
    const ending = endingOf(dtype)
    const { peak, ...rest } = await told(directory)
    expect(rest).toEqual({
      // Complex numbers are summed by their mean.
      sum: dtype === 'complex128' ? { re: expect.closeTo(3, 10), im: 0 } : 3,
      row: 3,
      dtype,
      shape: [count],
      length: dtype === 'complex128' ? 2 * count : count,
      byteLength: count * DTYPES[dtype].byteLength,
      ending: [...new Array(8 - ending.length).fill(0), ...ending],
    })
    const widened = dtype === 'float16' ? count * 4 : 0
    expect(peak).toBeLessThan(byteLength + widened + GB)
  })

  // It takes a minute: once for each element size.
  if (dtype === 'bool') return
  it('is shown, and written for numpy', { timeout: 900_000 }, async () => {
    const { code, stdout, stderr } = await trialscan('show', directory, 'big', '--npy', '/dev/null')
    expect([code, stderr]).toEqual([0, 'trialscan: wrote /dev/null\n'])
    expect(stdout).toContain(`${dtype} [${count}], `)
    // What a pipe takes are bytes, whatever the size of an element.
    if (dtype !== 'float64') return
    const tail = elementBytes(dtype, endingOf(dtype)).length
    const piped = `"${process.execPath}" "${CLI}" show "${directory}" big --format npy | tee >(wc -c >&2) | tail -c ${tail}`
    const { stdout: end, stderr: counted } = await shell(`${piped}; wait`)
    expect([Number(counted), Buffer.compare(end, elementBytes(dtype, endingOf(dtype)))]).toEqual([
      128 + count * DTYPES[dtype].byteLength,
      0,
    ])
  })
})

it('float16 that is 4 GiB and more when it is widened is refused as a value, and reduced', {
  timeout: 900_000,
}, async () => {
  const directory = sparseTrial('widened', 'float16', 2 ** 30)
  const { peak, ...rest } = await told(directory)
  expect(rest).toMatchObject({ sum: 3, row: 3, error: 'ValueTooLarge' })
  rmSync(directory, { recursive: true })
})

it('values that lie one by one are refused, with what can be done', { timeout: 900_000 }, async () => {
  const directory = sparseTrial('packed', 'float32', 1_025_000_000, 'packed')
  const { code, stderr } = await trialscan('show', directory, 'big', '--step', '0')
  expect([code, stderr]).toEqual([4, expect.stringContaining('tensor_content')])
  rmSync(directory, { recursive: true })
})

it('as much memory as can be asked for is used', async () => {
  // 2^31, which is a negative number of 32 bits.
  const directory = sparseTrial('memory', 'float32', 8 << 20)
  for (const command of ['scan', 'verify']) {
    const { code, stdout, stderr } = await trialscan(
      command,
      directory,
      ...['--memory', '2048', '--threads', '0', '--format', 'jsonl'],
    )
    expect([command, code, stderr]).toEqual([command, 0, ''])
    expect(JSON.parse(stdout)).toMatchObject(command === 'scan' ? { tensor: 'big' } : { ok: true })
  }
})
