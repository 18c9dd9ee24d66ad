/** Where hostile trials lead to: links, files that shrink, files that are written to, commands and caches. */

import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { crc32 } from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import { closePools, createTrial, type GlobalStep, StoreError, type Trial, verifyTrial } from '#dist/index.js'
import { IndexColumns } from '#dist/scan/catalog/columns/index-columns.js'
import { decodeIndexCache, encodeIndexCache } from '#dist/scan/catalog/load/index-cache.js'
import { LocalStore } from '#dist/storage/local/local-store.js'
import { collectionsFileText, frameRecord, TrialWriter } from '../../fixtures/event-writer.js'
import { trialscan } from '../cli/run.js'
import { isLong, part } from '../support/part.js'
import { plainRows, rejectionOf, rowsOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'
import { concat, eventOf, field, utf8, write, writeCollections, writeStep } from './museum.js'

const scratch = scratchDirectory('places')
let made = 0

afterAll(closePools)

/** A new directory, of a name that needs quoting everywhere. */
function place(): string {
  const directory = join(scratch, `t${made++} $'&"`)
  mkdirSync(directory)
  return directory
}

/** A good trial of three steps. */
function goodTrial(): string {
  const directory = place()
  writeCollections(directory)
  for (const step of [0, 1, 2]) writeStep(directory, step)
  writeFileSync(join(directory, 'training_job_end.ts'), '')
  return directory
}

/** Moves something to a place outside of the trial, and leaves a link to it. */
function moveOut(directory: string, path: string): string {
  const outside = join(place(), 'outside')
  renameSync(join(directory, path), outside)
  symlinkSync(outside, join(directory, path))
  return outside
}

describe('a link out of the trial', () => {
  const places = ['index', 'index/000000000', 'collections', 'training_job_end.ts']
  it.each(part(places, path => path === 'collections'))(
    'at %s is refused when the trial is opened, unless links are allowed',
    async path => {
      const directory = goodTrial()
      const good = plainRows(await rowsOf(await createTrial(directory)))
      moveOut(directory, path)
      expect(await rejectionOf(createTrial(directory))).toMatchObject({ name: 'StoreError', code: 'Denied' })
      for (const command of ['ls', 'scan', 'check']) {
        const { code, stdout, stderr } = await trialscan(command, directory)
        expect([code, stdout]).toEqual([3, ''])
        expect(stderr).toContain('a symbolic link that leads out of it')
      }
      const allowed = await createTrial(directory, { allowSymlinks: true })
      expect(plainRows(await rowsOf(allowed, { threads: 2 }))).toEqual(good)
    },
  )

  it('or round in circles ends where the trial is itself behind a link', async () => {
    const directory = goodTrial()
    const good = plainRows(await rowsOf(await createTrial(directory)))
    symlinkSync('..', join(directory, 'index/loop'))
    symlinkSync('../..', join(directory, 'events/000000000000/loop'))
    const alias = join(place(), 'alias')
    symlinkSync(directory, alias)
    expect(plainRows(await rowsOf(await createTrial(alias)))).toEqual(good)
    const { ok, stats } = await verifyTrial(alias)
    expect([ok, stats.indexFiles, stats.eventFiles]).toEqual([true, 3, 3])
  })

  it.each(['.', '..', '../..', 'loop'])('or round in circles (%s) ends', async target => {
    const directory = goodTrial()
    symlinkSync(target, join(directory, 'index/loop'))
    symlinkSync('000000000', join(directory, 'index/again'))
    for (const allowSymlinks of [false, true]) {
      const opened = await createTrial(directory, { allowSymlinks }).catch((error: unknown) => error)
      if (opened instanceof StoreError) expect(opened.code).toBe('Denied')
      else expect((opened as Trial).steps()).toEqual([0, 1, 2])
    }
  })

  it('is not followed by --out, --npy or reindex', async () => {
    const directory = goodTrial()
    const precious = write(join(place(), 'precious'), 'mine')
    const hook = join(directory, 'rows')
    symlinkSync(precious, hook)
    symlinkSync(dirname(precious), join(directory, 'sub'))
    const files = isLong ? [hook, join(directory, 'sub/precious')] : [hook]
    for (const file of files) {
      for (const command of [
        ['scan', directory, '--out', file],
        ['check', directory, '--rule', 'AllZero,tensor_regex=.*', '--out', file],
        ['show', directory, 'good', '--step', '0', '--npy', file],
      ]) {
        const { code, stderr } = await trialscan(...command)
        expect([code, stderr]).toEqual([3, expect.stringMatching(/cannot write .*: a symbolic link in the trial/)])
      }
    }
    for (const file of files) expect((await trialscan('verify', directory, '--out', file)).code).toBe(2)
    expect(readFileSync(precious, 'utf8')).toBe('mine')
    // A link of one's own, outside of the trial, is followed as ever.
    const own = join(place(), 'own')
    symlinkSync(precious, own)
    expect((await trialscan('scan', directory, '--out', own)).code).toBe(0)
    expect(readFileSync(precious, 'utf8')).toContain('"tensor":"good"')
  })

  it('to a directory is not gone through by what makes one, whatever the trial is called', async () => {
    const directory = goodTrial()
    const victim = place()
    symlinkSync(victim, join(directory, 'out'))
    const alias = join(place(), 'alias')
    symlinkSync(directory, alias)
    const [some, more] = [
      join(directory, 'out/new'),
      [join(directory, 'out'), join(alias, 'out'), join(alias, 'out/a/b')],
    ]
    for (const trial of isLong ? [directory, alias] : [alias]) {
      for (const out of isLong ? [some, ...more] : [some]) {
        for (const command of ['repair', 'reindex']) {
          const { code, stderr } = await trialscan(command, trial, '--out', out)
          expect([code, stderr]).toEqual([2, expect.stringContaining('outside of the trial')])
        }
      }
      const { code } = await trialscan('scan', trial, '--out', join(alias, 'out', 'rows'))
      expect(code).toBe(3)
    }
    expect(readdirSync(victim)).toEqual([])
    // What leads there from elsewhere is one's own.
    const own = join(place(), 'own')
    symlinkSync(victim, own)
    expect((await trialscan('repair', directory, '--out', join(own, 'new'))).code).toBe(0)
    expect(readdirSync(victim)).toEqual(['new'])
  })

  it('in the directory for new index files is not followed either', async () => {
    const directory = goodTrial()
    const before = readFileSync(join(directory, 'index/000000000/000000000001_worker_0.json'), 'utf8')
    const paths = ['index', 'index/000000000', 'index/000000000/000000000001_worker_0.json']
    for (const path of isLong ? paths : paths.slice(-1)) {
      const target = join(directory, path)
      const out = place()
      mkdirSync(dirname(join(out, path)), { recursive: true })
      symlinkSync(target, join(out, path))
      const { code, stderr } = await trialscan('reindex', directory, '--out', out)
      expect([code, stderr]).toEqual([3, expect.stringMatching(/cannot write .*: a symbolic link leads to/)])
    }
    const inside = place()
    symlinkSync(directory, join(inside, 'link'))
    expect((await trialscan('reindex', directory, '--out', join(inside, 'link', 'new'))).code).toBe(2)
    expect(readFileSync(join(directory, 'index/000000000/000000000001_worker_0.json'), 'utf8')).toBe(before)
  })
})

describe('a file that shrinks', () => {
  it('before it is read costs what is gone', async () => {
    const directory = goodTrial()
    const trial = await createTrial(directory)
    const good = plainRows(await rowsOf(trial))
    const { eventFile } = writeStep(directory, 1)
    truncateSync(eventFile, 150)
    for (const threads of [0, 2]) {
      const rows = await rowsOf(trial, { threads })
      expect(rows.map(({ error }) => error?.code)).toEqual([
        undefined,
        undefined,
        undefined,
        'TruncatedRecord',
        undefined,
        undefined,
      ])
      expect(plainRows(rows.filter(({ error }) => !error))).toEqual(good.filter((_, i) => i !== 3))
    }
    truncateSync(eventFile, 0)
    const codes = (await rowsOf(trial)).flatMap(({ error }) => error?.code ?? [])
    expect(codes).toEqual(['TruncatedRecord', 'TruncatedRecord'])
    expect(await rejectionOf(trial.tensor('good').value(1))).toMatchObject({ code: 'TruncatedRecord' })
  })

  it.each(part([0, 2], threads => threads === 2))(
    'while it is scanned costs what was not read yet, at %d threads',
    async threads => {
      // Of 40 MB, in records that are jobs of their own and in one that is read in parts.
      const directory = place()
      const writer = new TrialWriter(directory)
      const values = new Array(1 << 20).fill(1)
      const small = Array.from({ length: 6 }, (_, i) => ({ name: `t${i}`, dtype: 'float32', shape: [1 << 20], values }))
      writer.step({ step: 0, tensors: small as never })
      writer.end()
      const trial = await createTrial(directory)
      const file = join(directory, 'events/000000000000/000000000000_worker_0.tfevents')
      const rows = []
      for await (const row of trial.scan({ threads, memory: 4 << 20, checkLevel: 'full' })) {
        if (rows.length === 0) truncateSync(file, 100)
        rows.push(row)
      }
      expect(rows.map(({ tensor }) => tensor)).toEqual(small.map(({ name }) => name))
      expect(rows[0]!.error).toBeUndefined()
      for (const { error, reductions } of rows) {
        if (error) expect(error.code).toBe('TruncatedRecord')
        else expect(reductions.sum).toBe(1 << 20)
      }
      expect(rows.at(-1)!.error?.code).toBe('TruncatedRecord')
    },
  )

  it('as it is read, an index file and a file without one', async () => {
    // As if the file had lost its second half between fstat and read.
    const directory = goodTrial()
    const path = 'index/000000000/000000000001_worker_0.json'
    const store = new LocalStore({ kind: 'local', root: directory })
    const bytes = await store.read(path, { maxByteLength: 1 << 20 })
    truncateSync(join(directory, path), bytes.length >> 1)
    const trial = await createTrial(directory)
    expect(trial.problems.map(({ code }) => code)).toEqual(['BadIndexFile'])
    rmSync(join(directory, 'index'), { recursive: true })
    truncateSync(join(directory, 'events/000000000001/000000000001_worker_0.tfevents'), 170)
    const unindexed = await createTrial(directory)
    expect(unindexed.problems.map(({ code }) => code)).toEqual(['TruncatedRecord'])
    expect((await rowsOf(unindexed)).filter(({ error }) => !error).length).toBe(5)
    await store.close()
  })
})

describe('a collection', () => {
  const patterns: [string, string | readonly string[]][] = [
    ['that backtracks in Python', '^(a+)+$'],
    ['that backtracks in another way', '(a|aa)+$'],
    ['of ten megabytes', 'a'.repeat(10_000_000)],
    ['of escapes', '\\.'.repeat(1_000_000)],
    ['of many groups', `${'('.repeat(199)}${'a.'.repeat(10_000)}${')'.repeat(199)}`],
    ['nested a million deep', '('.repeat(1_000_000)],
    ['that repeats repetitions', '((((a{10}){10}){10}){10}){10}'],
    ['that is none', '['],
    ['a hundred thousand times', Array.from({ length: 100_000 }, (_, i) => `x.${i}`)],
    ['that refers back', '(a)\\1'],
  ]

  const isQuick = ([what]: (typeof patterns)[number]) => what === 'that backtracks in Python' || what === 'that is none'
  it.each(part(patterns, isQuick))('with a pattern %s costs no more than itself', async (_, includeRegex) => {
    const directory = goodTrial()
    const name = 'a'.repeat(5000)
    writeStep(directory, 3, { tensor: `${name}!` })
    const regexes = typeof includeRegex === 'string' ? [includeRegex] : includeRegex
    writeCollections(
      directory,
      collectionsFileText(
        { evil: { includeRegex: regexes }, __proto__: { includeRegex: ['^good$'] }, all: { includeRegex: ['.*'] } },
        1,
      ),
    )
    const startedAt = performance.now()
    const { code, stdout, stderr } = await trialscan('ls', directory, '--json')
    expect(performance.now() - startedAt).toBeLessThan(30_000)
    expect([0, 4]).toContain(code)
    expect(stderr.length).toBeLessThan(2000)
    const { collections } = JSON.parse(stdout)
    const members = new Map(collections.map((one: { name: string; members: string[] }) => [one.name, one.members]))
    expect((members.get('all') as string[]).length).toBe(3)
    const trial = await createTrial(directory)
    const failure = await rowsOf(trial, { collection: 'evil' }).catch((error: unknown) => error)
    if (code === 4) expect(failure).toMatchObject({ name: 'UsageError' })
    expect((await rowsOf(trial)).filter(({ error }) => error).length).toBe(0)
  })

  it('called __proto__, constructor, or something to be printed', async () => {
    const directory = goodTrial()
    const names = ['__proto__', 'constructor', 'c\x1b[2J\n\u202e']
    const entries = names.map(name => [name, { include_regex: ['^good$'] }])
    writeCollections(directory, JSON.stringify({ collections: Object.fromEntries(entries) }))
    const trial = await createTrial(directory)
    expect([...trial.collections().keys()].sort()).toEqual([...names].sort())
    for (const collection of names) expect((await rowsOf(trial, { collection })).length).toBe(3)
    const { code, stdout } = await trialscan('ls', directory)
    expect([code, stdout.includes('\x1b')]).toEqual([0, false])
    expect(stdout).toContain('c\\x1b[2J\\n\\u202e')
    const missing = await trialscan('scan', directory, '--collection', 'c\x1b[2J')
    expect([missing.code, missing.stderr.includes('\x1b')]).toEqual([5, false])
  })
})

it('what a command is told of a finding is no part of it', async () => {
  const directory = place()
  const canary = join(place(), 'canary')
  const names = [
    `$(touch ${canary})`,
    `\`touch ${canary}\``,
    `'; touch ${canary}; '`,
    `"; touch ${canary}; "`,
    '-x',
    'a=b',
  ]
  writeCollections(directory)
  const zero = { dtype: 'float32', shape: [2], values: [0, 0] } as const
  new TrialWriter(directory).step({ step: 0, tensors: names.map(name => ({ name, ...zero })) })
  const told = join(place(), 'told')
  const command = `cat >> '${told.replaceAll("'", "'\\''")}'; printf '%s\\n' "$TRIALSCAN_MESSAGE" >&2`
  const rules = write(
    join(place(), 'rules.json'),
    JSON.stringify([
      {
        RuleConfigurationName: 'zero',
        RuleParameters: {
          rule_to_invoke: 'AllZero',
          tensor_regex: '.*',
          action_json: JSON.stringify([{ name: 'command', command }]),
        },
      },
    ]),
  )
  const { code } = await trialscan('check', directory, '--rules', rules)
  expect(code).toBe(1)
  const firing = JSON.parse(readFileSync(told, 'utf8'))
  expect(firing.findings.map(({ tensor }: { tensor: string }) => tensor)).toEqual(expect.arrayContaining(names))
  expect(existsSync(canary)).toBe(false)
})

it('an error that quotes a path does so as it is', async () => {
  // `$'` and `$&` mean something in replacements, and the URL of the directory is replaced by its path.
  const directory = goodTrial()
  write(join(directory, 'index/000000000/000000000001_worker_0.json'), 'x')
  const { stderr } = await trialscan('scan', directory)
  expect(stderr).toContain(`${directory}/index/000000000/000000000001_worker_0.json`)
})

describe('the index cache', () => {
  it('keeps names with a NUL, a newline and half a surrogate pair apart', async () => {
    const directory = place()
    writeCollections(directory)
    const names = ['a\0b', 'b', '\ud800', 'c\n', '__proto__']
    const zero = { dtype: 'float32', shape: [1] } as const
    new TrialWriter(directory).step({ step: 0, tensors: names.map((name, i) => ({ name, ...zero, values: [i] })) })
    const cache = join(place(), 'cache')
    const first = await rowsOf(await createTrial(directory, { indexCache: cache }))
    const second = await rowsOf(await createTrial(directory, { indexCache: cache }))
    expect(second.map(({ tensor, reductions, error }) => [tensor, reductions.sum, error])).toEqual(
      names.map((name, i) => [name, i, undefined]),
    )
    expect(plainRows(second)).toEqual(plainRows(first))
  })

  /** A cache of one index file, with one change to it and a checksum that is right. */
  function forged(change: (header: Record<string, unknown>, numbers: DataView) => void): Uint8Array {
    const content = {
      mode: 'TRAIN' as const,
      modeStep: 0,
      eventFile: 'events/x',
      tensors: [{ name: 'a', startByte: 0, byteLength: 50 }],
      shapes: [],
    }
    const columns = new IndexColumns()
    const row = columns.listed(columns.add(0 as GlobalStep, 'w', content))
    const files = [{ path: 'index/x', stamp: Float64Array.of(1, 2, 3), row }]
    const bytes = Buffer.from(encodeIndexCache('t', { files, columns }))
    const end = bytes.indexOf(0x0a)
    const { crc, ...header } = JSON.parse(bytes.subarray(0, end).toString())
    expect(crc).toEqual(expect.any(Number))
    const body = Buffer.from(bytes.subarray(end + 1))
    change(header, new DataView(body.buffer, body.byteOffset))
    const sum = crc32(body, crc32(JSON.stringify(header)))
    return concat(utf8(`${JSON.stringify({ ...header, crc: sum })}\n`), body)
  }

  it('is believed in nothing that can not be, whatever its checksum says', () => {
    expect(
      decodeIndexCache(
        't',
        forged(() => {}),
      )?.paths,
    ).toEqual(['index/x'])
    // Stamps (3), mode, mode step, event file, list, count, name, start, length: a number each.
    const columns = { mode: 3, modeStep: 4, eventFile: 5, list: 6, count: 7, name: 8, start: 9, length: 10 }
    for (const at of Object.values(columns)) {
      for (const number of [-1, 0.5, 1e9, 1e300, Number.NaN, Number.POSITIVE_INFINITY]) {
        const isPossible =
          (number === 1e9 && (at === columns.start || at === columns.length || at === columns.modeStep)) ||
          (number === -1 && at === columns.modeStep)
        const decoded = decodeIndexCache(
          't',
          forged((_, numbers) => numbers.setFloat64(at * 8, number, true)),
        )
        expect([at, number, decoded?.paths.length ?? null]).toEqual([at, number, isPossible ? 1 : null])
      }
    }
    for (const sections of [[], [-8, 8], [1e15], 'x', null, new Array(14).fill(0)]) {
      expect(
        decodeIndexCache(
          't',
          forged(header => Object.assign(header, { sections })),
        ),
      ).toBe(null)
    }
    const escaped = Buffer.from(forged(() => {}))
    expect(escaped.includes('events/x')).toBe(true)
    for (const bytes of [utf8('null\n'), utf8('\n'), utf8('[]\n'), new Uint8Array(0)]) {
      expect(decodeIndexCache('t', bytes)).toBe(null)
    }
  })

  it('is no file: a FIFO, a device, a directory', async () => {
    const directory = goodTrial()
    const fifo = join(place(), 'fifo')
    execFileSync('mkfifo', [fifo])
    const link = join(place(), 'zero')
    symlinkSync('/dev/zero', link)
    for (const cache of [fifo, link]) {
      expect((await createTrial(directory, { indexCache: cache })).steps()).toEqual([0, 1, 2])
    }
    const trial = await createTrial(directory, { indexCache: place() })
    expect(trial.steps()).toEqual([0, 1, 2])
    expect(trial.scan().problems).toMatchObject([{ code: 'Unavailable' }])
  })
})

it('names that are no UTF-8, or hold anything a path can, cost themselves', async () => {
  const directory = goodTrial()
  const index = join(directory, 'index/000000000')
  writeFileSync(
    Buffer.concat([Buffer.from(`${index}/000000000003_w`), Buffer.of(0xff, 0xfe), Buffer.from('.json')]),
    '{}',
  )
  writeFileSync(join(index, '000000000004_a\x1b[2J\n.json'), '{}')
  writeFileSync(join(index, '99999999999999999999999_w.json'), '{}')
  writeFileSync(join(index, '1e3_w.json'), '{}')
  writeFileSync(join(index, '-1_w.json'), '{}')
  const trial = await createTrial(directory)
  expect(trial.steps()).toEqual([0, 1, 2, 3, 4])
  expect((await rowsOf(trial)).map(({ error }) => error?.code)).toEqual([
    ...new Array(6).fill(undefined),
    'NotFound',
    'BadIndexFile',
  ])
  const { code, stderr } = await trialscan('scan', directory, '--format', 'csv')
  expect([code, stderr.includes('\x1b')]).toEqual([4, false])
})

it('an Event of a million empty Values, and one that is nested a million deep, are walked and no more', async () => {
  const directory = place()
  const many = Buffer.alloc(2_000_000, Uint8Array.of(0x0a, 0x00))
  const groups = new Uint8Array(1_000_000).fill(0x0b)
  const events = [
    eventOf(0, 'good', field(8, concat(Uint8Array.of(8, 1), field(4, new Uint8Array(4))))),
    concat(Uint8Array.of(16, 0), field(5, many)),
    concat(Uint8Array.of(16, 0), groups),
  ]
  const frames = events.map(event => frameRecord(event))
  write(join(directory, 'events/000000000000/000000000000_worker_0.tfevents'), concat(...frames))
  writeCollections(directory)
  const trial = await createTrial(directory)
  expect(trial.problems.map(({ code }) => code)).toEqual(['MalformedEvent'])
  expect((await rowsOf(trial)).map(({ tensor, error }) => [tensor, error])).toEqual([['good', undefined]])
})
