/** What a process may take, and does: address space under `ulimit -v`, threads, and trials of a million of everything. */

import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  encodeEvent,
  eventFilePath,
  frameRecord,
  indexFilePath,
  indexFileText,
  TrialWriter,
} from '../../fixtures/event-writer.js'
import { CLI, type Outcome, PLAIN } from '../cli/run.js'
import { bytesOf, distributedMetadata, pickled, tensor, torchZip } from '../support/pickles.js'
import { measured } from './measured.js'

const MIB = 2 ** 20

describe.runIf(process.platform === 'linux')('a limit on the address space', () => {
  /** Runs a command with so many GB of it. */
  function within(gb: number, args: readonly string[], options = ''): Promise<Outcome> {
    return run(gb, [CLI, ...args], options)
  }
  function run(gb: number, args: readonly string[], options = ''): Promise<Outcome> {
    const script = `ulimit -v ${gb * 1e6}; exec "$@"`
    const env = { ...process.env, NODE_OPTIONS: options }
    return new Promise(resolve => {
      const child = execFile('/bin/sh', ['-c', script, 'sh', process.execPath, ...args], { env }, (_, stdout, stderr) =>
        resolve({ code: child.exitCode, stdout, stderr }),
      )
    })
  }
  const scratch = mkdtempSync(join(tmpdir(), 'trialscan-space-'))
  afterAll(() => rmSync(scratch, { recursive: true, force: true }))
  const commands = [['ls'], ['scan'], ['check'], ['verify'], ['show', 'loss', '--step', '0']]
  const given = (limit: number) => commands.map(([command, ...flags]) => [limit, command!, flags] as const)

  it.each(given(13))('%d GB are enough for a small trial: %s', async (gb, command, flags) => {
    const hasThreads = command !== 'ls' && command !== 'show'
    const free = await within(1000, [command, PLAIN, ...flags, ...(hasThreads ? ['--threads', '0'] : [])])
    for (const threads of hasThreads ? [[], ['--threads', '2'], ['--threads', '500']] : [[]]) {
      const { code, stdout, stderr } = await within(gb, [command, PLAIN, ...flags, ...threads])
      expect([code, stderr.replace(/.*--threads.*\n/, '')]).toEqual([free.code, free.stderr])
      expect(withoutTimes(stdout)).toBe(withoutTimes(free.stdout))
    }
  })

  it.each([13, 25])('%d GB are enough to write a trial', async gb => {
    const [script, out] = [join(scratch, `write-${gb}.mjs`), join(scratch, `written-${gb}`)]
    writeFileSync(
      script,
      `import { createWriter } from ${JSON.stringify(join(dirname(CLI), 'index.js'))}
      const writer = await createWriter(${JSON.stringify(out)}, { checksums: true, saveConfig: { saveInterval: 1 }, reductionConfig: { saveRawTensor: true, reductions: ['max'] } })
      for (let step = 0; step < 3; step++) {
        await writer.step()
        for (let i = 0; i < 30; i++) await writer.save('tensor' + i, new Float32Array(10_000).fill(step))
      }
      await writer.close()`,
    )
    const { code, stderr } = await run(gb, [script])
    expect([code, stderr]).toEqual([0, ''])
    const verified = await within(1000, ['verify', out, '--deep'])
    expect([verified.code, verified.stderr]).toEqual([0, expect.not.stringContaining('rror')])
  })

  // Where it can't be reserved, newer versions of V8 check bounds in the code instead.
  const isReserved = Number(process.versions.node.split('.')[0]) < 24

  it.each(given(4))(
    '%d GB are too few on Node.js 20, which is no bug, and do on 24: %s',
    async (gb, command, flags) => {
      const { code, stdout, stderr } = await within(gb, [command, PLAIN, ...flags])
      if (!isReserved) {
        const free = await within(1000, [command, PLAIN, ...flags])
        expect([code, stderr, withoutTimes(stdout)]).toEqual([free.code, free.stderr, withoutTimes(free.stdout)])
        return
      }
      expect(code).toBe(3)
      expect(stderr).toMatch(
        /expected 10 GiB of address space .* got a limit of 3\.8 GiB \(ulimit -v\): raise the limit/,
      )
      expect(stderr.trimEnd().split('\n').length).toBe(1)
    },
  )

  it('and enough where Node.js reserves none', async () => {
    const { code, stdout } = await within(4, ['scan', PLAIN], '--disable-wasm-trap-handler')
    expect(code).toBe(0)
    expect(stdout).toBe((await within(1000, ['scan', PLAIN])).stdout)
  })
})

function withoutTimes(text: string): string {
  return text.replace(/"(?:elapsed_ms|seconds|threads)":[\d.]+,?|\d+(?:\.\d+)? m?s\b/g, '')
}

it('threads by the hundred are not started', async () => {
  const trial = fileURLToPath(new URL('../../fixtures/trials/dtypes', import.meta.url))
  for (const command of ['scan', 'check', 'verify']) {
    const { peak, code } = await measured(command, trial, '--threads', '500')
    expect(code).toBeLessThan(70)
    expect(peak).toBeLessThan((250 + 30 * availableParallelism()) * MIB)
  }
})

describe('very many', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'trialscan-many-'))
  const weights = join(scratch, 'weights')
  const million = join(scratch, 'million')
  const steps = join(scratch, 'steps')
  const files = join(scratch, 'files')
  const data = new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer)

  beforeAll(() => {
    const ofWeights = new TrialWriter(weights)
    const tensors = Array.from({ length: 100_000 }, (_, i) => ({ name: `layer_${i}.weight`, shape: [4], data }))
    ofWeights.step({ step: 0, mode: 'TRAIN', tensors })
    ofWeights.end()
    writeMillion(million)
    writeFiles(files)
    const ofSteps = new TrialWriter(steps)
    for (let step = 0; step < 10_000; step++) {
      const scalars = ['loss', 'accuracy', 'learning_rate'].map(name => ({
        name,
        shape: [1],
        data: data.subarray(0, 4),
      }))
      ofSteps.step({ step, mode: 'TRAIN', tensors: scalars })
    }
    ofSteps.end()
  }, 300_000)

  /** Copies of one record under a million names: of those that the hook writes the checksum is a constant. */
  function writeMillion(directory: string): void {
    const count = 1_000_000
    const writer = new TrialWriter(directory)
    const tensors = [{ name: 'layer_0000000.weight', shape: [4], data }]
    const index = writer.step({ step: 0, mode: 'TRAIN', tensors })
    writer.end()
    const eventFile = join(directory, eventFilePath(0, 'worker_0'))
    const record = readFileSync(eventFile)
    const digits = record.indexOf('0000000.weight')
    const records = Buffer.alloc(count * record.length)
    const payload = Array.from({ length: count }, (_, i) => {
      const number = String(i).padStart(7, '0')
      const start = i * record.length
      record.copy(records, start)
      records.write(number, start + digits)
      return { tensorname: `layer_${number}.weight`, start_idx: start, length: record.length }
    })
    writeFileSync(eventFile, records)
    writeFileSync(join(directory, indexFilePath(0, 'worker_0')), indexFileText({ ...index, tensor_payload: payload }))
  }

  /** A tensor at each step, a thousand steps in an event file. */
  function writeFiles(directory: string): void {
    const writer = new TrialWriter(directory, { numWorkers: 1 })
    const tensor = { dtype: 'float32', shape: [1], content: data.subarray(0, 4) } as const
    for (let first = 0; first < 100_000; first += 1000) {
      const eventFile = eventFilePath(first, 'worker_0')
      const records: Uint8Array[] = []
      mkdirSync(dirname(join(directory, indexFilePath(first, 'worker_0'))), { recursive: true })
      for (let step = first, start = 0; step < first + 1000; step++) {
        const event = {
          wallTime: 1.7e9,
          step,
          values: [{ tag: 'loss', mode: 'TRAIN', modeStep: step, tensor }],
        } as const
        const record = frameRecord(encodeEvent(event), { checksum: 'constant' })
        const index = indexFileText({
          meta: { mode: 'TRAIN', mode_step: step, event_file_name: eventFile },
          tensor_payload: [{ tensorname: 'loss', start_idx: start, length: record.length }],
          shape_payload: [],
        })
        writeFileSync(join(directory, indexFilePath(step, 'worker_0')), index)
        records.push(record)
        start += record.length
      }
      mkdirSync(dirname(join(directory, eventFile)), { recursive: true })
      writeFileSync(join(directory, eventFile), Buffer.concat(records))
    }
    writer.end()
  }

  afterAll(() => rmSync(scratch, { recursive: true, force: true }))

  const commands = ['ls', 'scan', 'check', 'verify'] as const

  // A check that takes time by the square of them does not end before the test does.
  it.each(commands)('100,000 weights in one index file: %s', { timeout: 300_000 }, async command => {
    const { code, peak } = await measured(command, weights)
    expect(code).toBe(0)
    expect(peak).toBeLessThan(450 * MIB)
  })

  // What threads take besides is bounded above.
  it.each(commands)('1,000,000 weights in one index file: %s', { timeout: 300_000 }, async command => {
    const { code, peak } = await measured(command, million, ...(command === 'ls' ? [] : ['--threads', '0']))
    expect(code).toBe(0)
    expect(peak).toBeLessThan(1e9)
  })

  // Each index file lists another place. What threads take besides is bounded above.
  it.each([
    ['ls', 350],
    ['scan', 400],
    ['check', 550],
    ['verify', 350],
  ] as const)('100,000 index files: %s takes less than %d MiB', { timeout: 300_000 }, async (command, limit) => {
    const { code, peak } = await measured(command, files, ...(command === 'ls' ? [] : ['--threads', '2']))
    expect(code).toBe(command === 'check' ? 1 : 0)
    expect(peak).toBeLessThan(limit * MIB)
  })

  it.each(commands)('10,000 steps: %s', { timeout: 300_000 }, async command => {
    const { code, peak } = await measured(command, steps)
    // All steps have the same numbers, which is a finding.
    expect(code).toBe(command === 'check' ? 1 : 0)
    expect(peak).toBeLessThan(450 * MIB)
  })
})

it.each([
  [1000, 200, 400],
  // A tensor has a name, a place in an index of names, and a line.
  [100_000, 1, 450],
])(
  'a distributed checkpoint of %d tensors, of %d chunks each, takes less than %d MiB',
  { timeout: 600_000 },
  async (tensors, chunks, limit) => {
    const directory = mkdtempSync(join(tmpdir(), 'trialscan-chunks-'))
    try {
      const [ranks, columns] = [8, 64]
      const chunk = torchZip({
        'data.pkl': pickled(tensor({ count: columns, size: [1, columns], stride: [columns, 1] })),
        'data/0': new Uint8Array(4 * columns),
        version: bytesOf('3\n'),
      })
      const pieces = Array.from({ length: tensors }, (_, t) => {
        const rows = Array.from({ length: chunks }, (_, c) => {
          const at = t * chunks + c
          const place = { file: `__${at % ranks}_0.distcp`, start: Math.floor(at / ranks) * chunk.length }
          return { offsets: [c, 0], sizes: [1, columns], place: { ...place, length: chunk.length } }
        })
        return [`layers.${t}.weight`, { size: [chunks, columns], chunks: rows }] as const
      })
      writeFileSync(join(directory, '.metadata'), distributedMetadata(Object.fromEntries(pieces)))
      for (let rank = 0; rank < ranks; rank++) {
        const path = join(directory, `__${rank}_0.distcp`)
        writeFileSync(path, chunk)
        truncateSync(path, (chunk.length * tensors * chunks) / ranks)
      }
      const { code, stdout, stderr, peak } = await measured('ls', directory, '--json')
      expect([code, stderr.replace(/\npeak.*/, '')]).toEqual([0, ''])
      expect(stdout).toContain(`layers.${tensors - 1}.weight`)
      // Up to 300 MB were seen of both, of which 65 are those of a process that does nothing; objects of all chunks would take several times that.
      expect(peak).toBeLessThan(limit * MIB)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  },
)
