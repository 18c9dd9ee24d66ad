/** Threads that die, at any moment and for any reason: rows are right or say by name why not, and nothing ever hangs. */

import { appendFileSync, existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import { closePools, createTrial, evaluate, reindexTrial, type Trial } from '#dist/index.js'
import { UnchangedTensor } from '#dist/rules/builtin/unchanged-tensor.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { normals } from '../../fixtures/random.js'
import { ROOT } from '../support/golden.js'
import { part, whenLong } from '../support/part.js'
import { plainRows, rejectionOf, rowsOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'
import { packageWithThread, runModule, Threads } from '../support/threads.js'

const scratch = scratchDirectory('threads')
const directory = join(scratch, 'trial')
let trial: Trial
let whole: unknown[]
let threads: Threads

const STEPS = 6
const TENSORS = 20
const ROWS = STEPS * TENSORS

beforeAll(async () => {
  // 6 steps of 20 records of 0.36 MB, and one of 20 MB, which is cut into parts: 63 MB in 8 jobs.
  const writer = new TrialWriter(directory, { checksum: 'true' })
  const bytes = new Uint8Array(Float32Array.from(normals(110_000, 1)).buffer)
  const large = new Uint8Array(20 << 20)
  for (let at = 0; at < large.length; at += 400_000)
    large.set(bytes.subarray(0, Math.min(400_000, large.length - at)), at)
  for (let step = 0; step < STEPS; step++) {
    const tensors = Array.from({ length: TENSORS }, (_, i) => {
      const data = step === 2 && i === 7 ? large : bytes.subarray(i * 4000, i * 4000 + 360_000)
      return { name: `t${i}`, dtype: 'float32', shape: [data.length / 4], data } as const
    })
    writer.step({ step, mode: 'TRAIN', tensors })
  }
  writer.end()
  trial = await createTrial(directory)
  whole = plainRows(await rowsOf(trial, { threads: 0, checkLevel: 'full' }))
})

beforeEach(async () => {
  await closePools()
  threads = new Threads()
})

afterEach(async () => {
  threads.stop()
  await closePools()
})

async function expectWhole(): Promise<void> {
  expect(plainRows(await rowsOf(trial, { threads: 2, checkLevel: 'full' }))).toEqual(whole)
}

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}

describe('a thread that is killed while a scan runs', () => {
  // While the pool starts, while rows flow, and towards the end; on a machine of any speed.
  const moments = Array.from({ length: 8 }, (_, i) => i * 18)
  it.each(part(moments, (_, i) => i % 4 === 1))('after %d ms, of a new pool and of one that was there', async ms => {
    for (let round = 0; round < 2; round++) {
      const rows = rowsOf(trial, { threads: 2, checkLevel: 'full' })
      await pause(ms)
      void threads.kill(round)
      expect(plainRows(await rows)).toEqual(whole)
    }
  })

  const places = Array.from({ length: 8 }, (_, i) => i * 15)
  it.each(part(places, (_, i) => i % 4 === 2))('when row %d is handed out', async at => {
    const rows: unknown[] = []
    for await (const row of trial.scan({ threads: 2, checkLevel: 'full' })) {
      if (rows.length === at) void threads.kill(at)
      rows.push(...plainRows([row]))
    }
    expect(rows).toEqual(whole)
  })

  it('and whose successor is killed before it is ready, again and again', async () => {
    // Piscina makes no successor for such a one; so many in a row, and no thread would be left.
    await expectWhole()
    for (let killed = 1; killed <= 4; killed++) {
      let left = killed
      threads.onStart = worker => {
        if (left-- > 0) void worker.terminate()
      }
      const rows = rowsOf(trial, { threads: 2, checkLevel: 'full' })
      await pause(5)
      void threads.kill(0)
      expect(plainRows(await rows)).toEqual(whole)
    }
  })

  it('together with all the others, of which no successor starts: the scan is an error, the next one whole', async () => {
    await expectWhole()
    threads.onStart = worker => void worker.terminate()
    const rows = rejectionOf(rowsOf(trial, { threads: 2, checkLevel: 'full' }))
    for (const worker of threads.living) void worker.terminate()
    expect(await rows).toMatchObject({ name: 'ThreadError', code: 'ThreadsNotStarted' })
    threads.onStart = () => {}
    await expectWhole()
  })

  it('while it has nothing to do', async () => {
    await expectWhole()
    for (let round = 0; round < 3; round++) {
      await threads.kill(round)
      await expectWhole()
    }
    expect(threads.started).toBe(2 + 3)
  })
})

describe('a pool whose start fails', () => {
  it.each(part([1, 2, 3], deaths => deaths === 2))(
    'because of %d threads that die at birth is started again',
    async deaths => {
      let left = deaths
      threads.onStart = worker => {
        if (left-- > 0) void worker.terminate()
      }
      await expectWhole()
    },
  )

  it('for good is an error; the next scan has a new one', async () => {
    threads.onStart = worker => void worker.terminate()
    for (let round = 0; round < 2; round++) {
      const failure = await rejectionOf(rowsOf(trial, { threads: 2 }))
      expect(failure).toMatchObject({ name: 'ThreadError', code: 'ThreadsNotStarted' })
      expect(await rejectionOf(trial.tensor('t1').value(0, { threads: 2 }))).toMatchObject({
        code: 'ThreadsNotStarted',
      })
    }
    threads.onStart = () => {}
    await expectWhole()
  })
})

describe('a scan that is aborted', () => {
  const moments = Array.from({ length: 6 }, (_, i) => i * 15)
  it.each(part(moments, (_, i) => i % 3 === 1))('after %d ms leaves a pool that works', async ms => {
    const controller = new AbortController()
    const reason = new Error('enough')
    const scanning = rowsOf(trial, { threads: 2, checkLevel: 'full', signal: controller.signal }).then(
      () => reason,
      error => error,
    )
    await pause(ms)
    controller.abort(reason)
    void threads.kill(ms)
    expect(await scanning).toBe(reason)
    await expectWhole()
  })
})

describe('closing the pools', () => {
  it.each(part([0, 5, 15, 40], ms => ms === 5))(
    '%d ms into a scan ends it with an error that says so, or comes too late',
    async ms => {
      const scanning = rowsOf(trial, { threads: 2, checkLevel: 'full' }).then(
        rows => plainRows(rows),
        error => error,
      )
      await pause(ms)
      await closePools()
      const outcome = await scanning
      if (Array.isArray(outcome)) expect(outcome).toEqual(whole)
      else expect(outcome).toMatchObject({ name: 'ThreadError', code: 'ThreadsClosed' })
      await expectWhole()
    },
  )
})

/** Statements that end a thread, each in its way. */
const DEATHS = {
  'that exits': 'process.exit(3)',
  'with an exception that nothing catches':
    "setImmediate(() => { throw new Error('nothing catches this') }); await new Promise(() => {})",
  'with a rejection that nothing catches':
    "Promise.reject(new Error('nothing catches this')); await new Promise(() => {})",
  // Of small objects: by arrays Node.js 24 now and then ends as a process, whatever the program does.
  'of a full heap': 'const all = []; for (;;) all.push({ number: Math.random() })',
} as const

// Quick, of a thread that dies of a job: test/pool.test.ts.
describe.each(whenLong)('a job that costs every thread its life', () => {
  /** In a package whose threads die of one tensor. */
  const poisoned = (name: string, death: string, condition: string, body: string, head = '') =>
    runModule(
      `
      import { closePools, createTrial, evaluate, repairTrial, verifyTrial } from ${JSON.stringify(
        packageWithThread(
          join(scratch, name),
          source =>
            head +
            source.replace(
              /export default async function run\(job\) \{/,
              `export default async function run(job) { if (${condition}) { ${death} }`,
            ),
        ),
      )}
      const trial = await createTrial(${JSON.stringify(directory)})
      ${body}`,
      ['--max-old-space-size=128'],
    )

  const rows = `
    const rows = []
    for await (const { tensor, step, error, reductions } of trial.scan({ threads: 2, reductions: ['l2'] })) {
      rows.push([tensor, step, reductions.l2 ?? null, error ? error.toJSON() : null])
    }
    console.log(JSON.stringify(rows))`

  type Row = [string, number, number | null, Record<string, unknown> | null]

  it.each(Object.entries(DEATHS))('%s: its records fail by name, all others stand', async (how, death) => {
    const condition =
      "job.kind === 'scan' && job.records.step.some((step, i) => step === 4 && job.tags[job.records.tag[i]] === 't3')"
    const got = (await poisoned(how, death, condition, rows)) as Row[]
    const right = await rowsOf(trial, { threads: 0, reductions: ['l2'] })
    expect(got.length).toBe(ROWS)
    let failed = 0
    for (const [i, [tensor, step, l2, error]] of got.entries()) {
      expect([tensor, step]).toEqual([right[i]!.tensor, right[i]!.step])
      if (error === null) expect(l2).toBe(right[i]!.reductions.l2)
      else {
        failed++
        const url = pathToFileURL(
          join(directory, `events/00000000000${step}/00000000000${step}_worker_0.tfevents`),
        ).href
        const offset = expect.any(Number) as number
        expect(error).toMatchObject({ name: 'ThreadError', code: 'ThreadDied', fields: { url, offset, tensor, step } })
        expect(error.message).toContain(`tensor "${tensor}" at step ${step}: its thread died: `)
      }
    }
    // Of all records of its job, it alone.
    expect(failed).toBe(1)
  })

  it('as text: its line has the error, all others are written by threads', async () => {
    const condition =
      "job.kind === 'scan' && job.records.step.some((step, i) => step === 4 && job.tags[job.records.tag[i]] === 't3')"
    const body = `
      let text = ''
      for await (const lines of trial.scan({ threads: 2, reductions: ['l2'] }).lines('jsonl')) text += Buffer.from(lines)
      console.log(JSON.stringify(text))`
    const got = ((await poisoned('lines', DEATHS['that exits'], condition, body)) as string).split('\n')
    let right = ''
    for await (const lines of trial.scan({ threads: 0, reductions: ['l2'] }).lines('jsonl')) right += Buffer.from(lines)
    const wrong = right.split('\n').flatMap((line, i) => (line === got[i] ? [] : [got[i]!]))
    expect([got.length, wrong.length]).toEqual([ROWS + 1, 1])
    expect(JSON.parse(wrong[0]!)).toMatchObject({ tensor: 't3', step: 4, error: { code: 'ThreadDied' } })
  })

  it('again and again: a scan gives up the halving, and ends', async () => {
    const got = (await poisoned(
      'all',
      DEATHS['that exits'],
      "job.kind === 'scan' && job.tags.length > 0",
      rows,
    )) as Row[]
    const failed = got.filter(([, , , error]) => error)
    // The large one is no such job.
    expect([got.length, failed.length]).toEqual([ROWS, ROWS - 1])
    for (const [tensor, step, , error] of failed) expect(error).toMatchObject({ fields: { tensor, step } })
  })

  it('which is a part of a large record: that one fails, all others stand', async () => {
    const got = (await poisoned('part', DEATHS['that exits'], "job.kind === 'part' && job.part === 1", rows)) as Row[]
    const failed = got.filter(([, , , error]) => error)
    expect([got.length, failed.length]).toEqual([ROWS, 1])
    expect(failed[0]).toMatchObject(['t7', 2, null, { code: 'ThreadDied', fields: { tensor: 't7', step: 2 } }])
  })

  it('which is one of a rule’s: what it lacks is told, the rest is judged', async () => {
    const body = `
      const { UnchangedTensor } = await import(${JSON.stringify(pathToFileURL(join(scratch, 'rule', 'dist/rules/builtin/unchanged-tensor.js')).href)})
      const { findings, missing, problems = [] } = await evaluate(
        [new UnchangedTensor(trial, { tensor_regex: '^t[135]$', num_steps: 2 })], { threads: 2 })
      console.log(JSON.stringify({
        findings: findings.map(({ tensor, step }) => [tensor, step]), missing, problems }))`
    const condition = "job.kind === 'measure' && job.tags.includes('t3')"
    const got = (await poisoned('rule', DEATHS['that exits'], condition, body)) as Record<string, unknown>
    const right = await evaluate([new UnchangedTensor(trial, { tensor_regex: '^t[135]$', num_steps: 2 })])
    expect(right.findings.length).toBeGreaterThan(3)
    expect(JSON.stringify(got)).toContain('ThreadDied')
    expect((got.findings as [string, number][]).filter(([tensor]) => tensor === 't3')).toEqual([])
  })

  it('which verifies a file: that file can not be read, all others are verified, and repaired', async () => {
    const out = join(scratch, 'without-poison')
    const body = `
      const { problems, stats } = await verifyTrial(${JSON.stringify(directory)}, { threads: 2 })
      const { records } = await repairTrial(${JSON.stringify(directory)}, ${JSON.stringify(out)}, { threads: 2 })
      console.log(JSON.stringify([problems, stats.eventFiles, records.leftOut > 0 && records.kept > 0]))`
    const condition = "job.kind === 'verify' && job.ranges.some(range => range.path.includes('000000000004_'))"
    const [problems, eventFiles, isRepaired] = (await poisoned('verify', DEATHS['that exits'], condition, body)) as [
      { code: string; file: string }[],
      number,
      boolean,
    ]
    expect(problems.map(({ code, file }) => [code, file.includes('000000000004_')])).toEqual([['Unreadable', true]])
    expect(eventFiles).toBe(trial.steps().length - 1)
    expect(isRepaired).toBe(true)
  })

  const repair = (out: string): string => `
      const { records, leftOut } = await repairTrial(${JSON.stringify(directory)}, ${JSON.stringify(out)}, { threads: 2 })
      const { ok } = await verifyTrial(${JSON.stringify(out)})
      console.log(JSON.stringify([records, leftOut.map(({ file, code }) => [file, code]), ok]))`

  it('which repairs index files: that one is made anew', async () => {
    const condition = "job.kind === 'index' && job.paths.some(path => path.includes('000000000004_'))"
    const body = repair(join(scratch, 'new-index'))
    expect(await poisoned('repair-index', DEATHS['that exits'], condition, body)).toEqual([
      { kept: ROWS, leftOut: 0 },
      [['index/000000000/000000000004_worker_0.json', 'BadIndexFile']],
      true,
    ])
  })

  it.each(['index', 'verify', 'copy'])('but once, while it repairs (%s): nothing is lost', async kind => {
    const out = join(scratch, `once-${kind}`)
    const mark = JSON.stringify(`${out}.died`)
    const death = `fs.writeFileSync(${mark}, ''); process.exit(3)`
    const condition = `job.kind === '${kind}' && !fs.existsSync(${mark})`
    const got = await poisoned(`repair-once-${kind}`, death, condition, repair(out), "import fs from 'node:fs'\n")
    expect(got).toEqual([{ kept: ROWS, leftOut: 0 }, [], true])
    expect(existsSync(`${out}.died`)).toBe(true)
  })

  it('which reads a value: the error names the record', async () => {
    const body = `
      const failed = await trial.tensor('t3').value(4, { threads: 2 }).catch(error => error.toJSON())
      const { shape } = await trial.tensor('t4').value(4, { threads: 2 })
      console.log(JSON.stringify([failed, shape]))`
    const condition = "job.kind === 'value' && job.tags.includes('t3')"
    expect(await poisoned('value', DEATHS['that exits'], condition, body)).toMatchObject([
      {
        code: 'ThreadDied',
        fields: { tensor: 't3', step: 4 },
        message: expect.stringContaining('tensor "t3" at step 4'),
      },
      [90_000],
    ])
  })
})

describe.each(whenLong)('a heap that one file fills', () => {
  const many = join(scratch, 'many')
  beforeAll(() => {
    const writer = new TrialWriter(many, {})
    for (let step = 0; step < 1100; step++) {
      const tensors = [{ name: 'loss', dtype: 'float32', shape: [1], values: [step] } as const]
      writer.step({ step, mode: 'TRAIN', tensors })
    }
    writer.end()
  })

  it('costs a step its index file, and no other', async () => {
    // 15 MB of entries, some 75 MB as objects: more than the threads below have.
    const path = join(many, 'index/000000000/000000000700_worker_0.json')
    const text = readFileSync(path, 'utf8')
    const entry =
      '{"tensorname": "aaaaaaaaaaaaaaaaaaaaaaaaaa", "start_idx": 0, "length": 1, "b": [[], [], [], [], {}, {}, {}]}'
    const start = text.indexOf('"tensor_payload": [') + '"tensor_payload": ['.length
    writeFileSync(path, text.slice(0, start))
    for (let i = 0; i < 150; i++) appendFileSync(path, `${Array.from({ length: 1000 }, () => entry).join(', ')}, `)
    appendFileSync(path, text.slice(start))
    const script = `
      import { createTrial } from ${JSON.stringify(pathToFileURL(join(ROOT, 'dist/index.js')).href)}
      const trial = await createTrial(${JSON.stringify(many)}, { threads: 2 })
      let rows = 0
      const failed = []
      for await (const { step, reductions, error } of trial.scan({ threads: 2, reductions: ['max'] })) {
        rows++
        if (error) failed.push([step, error.code, error.message])
        else if (reductions.max !== step) failed.push([step, 'wrong'])
      }
      console.log(JSON.stringify([rows, failed]))`
    const [rows, failed] = await runModule<[number, [number, string, string][]]>(script, ['--max-old-space-size=64'])
    expect(rows).toBe(1100)
    expect(failed).toEqual([
      [700, 'ThreadDied', expect.stringContaining('000000000700_worker_0.json: its thread died')],
    ])
    writeFileSync(path, text)
  })

  it('without an index: the event files that kill are named, all others are read', async () => {
    const bare = join(scratch, 'bare')
    const writer = new TrialWriter(bare, {})
    for (let step = 0; step < 100; step++) {
      const tensors = [{ name: 'loss', dtype: 'float32', shape: [1], values: [step] } as const]
      writer.step({ step, mode: 'TRAIN', tensors })
    }
    writer.end()
    rmSync(join(bare, 'index'), { recursive: true })
    const condition = "job.kind === 'survey' && job.files.some(({ path }) => /0000(17|50)_worker/.test(path))"
    const index = packageWithThread(join(scratch, 'events'), source =>
      source.replace(
        /export default async function run\(job\) \{/,
        `export default async function run(job) { if (${condition}) process.exit(1)`,
      ),
    )
    const script = `
      import { createTrial } from ${JSON.stringify(index)}
      const trial = await createTrial(${JSON.stringify(bare)}, { threads: 2 })
      const rows = []
      for await (const { step, error } of trial.scan()) rows.push([step, error?.code, error?.message])
      console.log(JSON.stringify(rows))`
    const rows = await runModule<[number, string | null, string | null][]>(script)
    expect(rows.map(([step]) => step)).toEqual(Array.from({ length: 100 }, (_, step) => step))
    expect(rows.filter(([, code]) => code)).toEqual(
      [17, 50].map(step => [step, 'ThreadDied', expect.stringContaining(`${step}_worker_0.tfevents: its thread died`)]),
    )
  })

  it('index files are read by the threads that are left when one is killed', async () => {
    for (const ms of [0, 5, 10, 20, 40, 80]) {
      const opening = createTrial(many, { threads: 2 })
      await pause(ms)
      void threads.kill(0)
      const opened = await opening
      expect(opened.steps().length).toBe(1100)
      expect(opened.tensor('loss').steps().length).toBe(1100)
    }
    const indexing = reindexTrial(many, { threads: 2 })
    await pause(5)
    void threads.kill(1)
    expect((await indexing).length).toBe(readdirSync(join(many, 'events')).length)
  })
})

test.each(part(['is missing', 'is cut off'], how => how === 'is missing'))(
  'a core that %s is no fault of the trial',
  async how => {
    const copy = join(scratch, `core-${how}`)
    const index = packageWithThread(copy, source => source)
    if (how === 'is missing') rmSync(join(copy, 'build/release.wasm'))
    else truncateSync(join(copy, 'build/release.wasm'), 1000)
    const out = JSON.stringify(join(scratch, 'without-core'))
    const path = JSON.stringify(directory)
    const errors = await runModule<{ name: string; code: string; message: string }[]>(`
    const { createTrial, reindexTrial, repairTrial, verifyTrial } = await import(${JSON.stringify(index)})
    const errors = []
    for (const threads of [0, 2]) {
      for (const work of [
        () => createTrial(${path}, { threads }), () => verifyTrial(${path}, { threads }),
        () => reindexTrial(${path}, { threads }), () => repairTrial(${path}, ${out}, { threads }),
      ]) errors.push(await work().then(() => ({}), error => error.toJSON()))
    }
    console.log(JSON.stringify(errors))`)
    expect(errors).toHaveLength(8)
    for (const error of errors) {
      expect(error).toMatchObject({
        name: 'EngineError',
        code: 'NoCore',
        message: expect.stringContaining('release.wasm'),
      })
    }
  },
)

// Node.js 20 aborts the process when a thread is ended while it is at `require` of an ES module.
test.each(part(['dist/index.js', 'dist/bundle/index.js'], () => false))(
  'threads of %s can be ended while they load',
  async file => {
    const ended = await runModule<number>(`
    const { closePools, createTrial } = await import(${JSON.stringify(join(ROOT, file))})
    const trial = await createTrial(${JSON.stringify(directory)})
    let ended = 0
    for (let round = 0; round < 80; round++) {
      const rows = (async () => { for await (const row of trial.scan({ threads: 2, reductions: ['min'] })) void row })()
      rows.catch(error => { ended += error.code === 'ThreadsClosed' })
      await new Promise(resolve => setTimeout(resolve, 20 + (round * 7) % 50))
      await closePools()
    }
    console.log(ended)`)
    expect(ended).toBeGreaterThan(30)
  },
)
