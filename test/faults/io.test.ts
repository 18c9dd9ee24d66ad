/** Reads and writes that fail: what is lost is named, nothing else is lost, and no half of a file is left. */

import fs, {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { closePools, createTrial, repairTrial, type Verification, verifyTrial } from '#dist/index.js'
import { RangeCache } from '#dist/storage/local/cache.js'
import { LocalStore } from '#dist/storage/local/local-store.js'
import { isTemporaryName, OutputFile, writeAtOnce } from '#dist/storage/local/output.js'
import { copyTrial } from '../../fixtures/corrupt.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { objects, PLAIN } from '../cli/run.js'
import { isLong, part } from '../support/part.js'
import { plainRows, rejectionOf, rowsOf } from '../support/scanning.js'
import { shell } from '../support/shell.js'

// Five thousand files are made sooner in memory.
const scratch = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'trialscan-io-'))
const many = join(scratch, 'many')
const bare = join(scratch, 'bare')
const STEPS = isLong ? 1250 : 250
const FILES = STEPS * 4

function write(directory: string, steps: number): void {
  const writer = new TrialWriter(directory, { numWorkers: 4 })
  for (let step = 0; step < steps; step++) {
    const tensors = [{ name: 'loss', dtype: 'float32', shape: [1], values: [step] } as const]
    for (let worker = 0; worker < 4; worker++) writer.step({ step, mode: 'TRAIN', worker, tensors })
  }
  writer.end()
}

beforeAll(() => {
  write(many, STEPS)
  write(bare, 150)
  rmSync(join(bare, 'index'), { recursive: true })
})

afterAll(async () => {
  await closePools()
  rmSync(scratch, { recursive: true, force: true })
})

// Windows has neither ulimit nor /dev/full.
const isUnix = process.platform !== 'win32'
const isLinux = process.platform === 'linux'

describe.runIf(isUnix)('with descriptors for little more than Node.js itself', () => {
  const scans = [64, 48].flatMap(limit => [0, 2].map(threads => ({ limit, threads })))

  const isQuick = ({ limit, threads }: (typeof scans)[number]) => limit === 48 && threads === 2
  it.each(part(scans, isQuick))(
    '%o: thousands of event files are scanned without losing one',
    async ({ limit, threads }) => {
      const line = `ulimit -n ${limit}; trialscan scan "$1" --reductions max --threads ${threads}`
      const { code, stdout, stderr } = await shell(line, [many])
      expect([code, stderr]).toEqual([0, ''])
      const rows = objects(stdout)
      expect(rows.length).toBe(FILES)
      expect(rows.every(({ step, max }) => step === max)).toBe(true)
    },
  )

  const others: [string, string, number][] = [
    ['scan without an index', 'trialscan scan "$2" --threads 2 --reductions max', 600],
    ['ls', 'trialscan ls "$1" --json', 1],
    ['check', 'trialscan check "$1" --rule AllZero,tensor_regex=loss --threads 2 --format jsonl', 4],
    ['reindex', 'trialscan reindex "$2" --out "$3" --threads 2 >&2; ls "$3"/index/*', 600],
  ]
  it.each(part(others, (_, i) => i === 0))('%s works as well', async (name, line, lines) => {
    const { stdout, stderr } = await shell(`ulimit -n 56; ${line}`, [many, bare, join(scratch, 'rebuilt')])
    expect(stderr).not.toMatch(/EMFILE|Error/)
    expect([name, stdout.trim().split('\n').length]).toEqual([name, lines])
  })

  it.each([30, 36])('and %i of them, a scan loses no row without saying so, and is no crash', async limit => {
    const line = `ulimit -n ${limit}; trialscan scan "$1" --threads 16 --reductions max`
    const { code, stdout, stderr } = await shell(line, [many])
    expect(stderr).not.toContain('    at ')
    const rows = objects(stdout)
    const lost = rows.filter(({ error }) => error).length
    // It depends on which threads have started whether there is room for files.
    const outcomes: Readonly<Record<number, boolean>> = {
      0: rows.length === FILES && lost === 0,
      4: rows.length === FILES && lost > 0,
      70: rows.length === 0,
    }
    expect([code, outcomes[code ?? -1]]).toEqual([code, true])
  })

  it('is an error in one line where not even threads can be had, and no crash', async () => {
    // Of a command whose own thread does not work: scan, check and diff go on without the others.
    const line = 'ulimit -n 30; trialscan verify "$1" --threads 16 --format jsonl'
    const { code, stdout, stderr } = await shell(line, [many])
    expect([code, stdout]).toEqual([70, ''])
    // How many threads are asked for depends on the machine's cores, and is said where it is fewer than 16.
    expect(stderr).toMatch(
      /^(trialscan: --threads 16: .*\n)?trialscan: (expected \d+ threads to (start|stay alive), but they|EMFILE: too many open files).*\n(.*--threads 0.*\n)?$/,
    )
    expect(stderr).not.toContain('    at ')
  })
})

/** A write that fails for want of room, on standard output and on a file. */
describe.runIf(existsSync('/dev/full'))('on a full device', () => {
  const commands = {
    'scan --format jsonl': 'scan "$1" --format jsonl',
    'scan --format csv': 'scan "$1" --format csv --threads 2',
    'scan --format table': 'scan "$1" --format table',
    ls: 'ls "$1"',
    'ls --json': 'ls "$1" --json',
    show: 'show "$1" loss --step 1',
    check: 'check "$1" --rule AllZero,tensor_regex=loss,threshold=0',
    'check --format jsonl': 'check "$1" --rule AllZero,tensor_regex=loss,threshold=0 --format jsonl',
    'rule-invoker': 'rule-invoker --trial-dir "$1" --rule-name AllZero --tensor_regex loss --threshold 0',
  }
  const isQuick = ([name]: readonly [string, string]) => name === 'scan --format csv'
  it.each(part(Object.entries(commands), isQuick))('%s says so, with exit code 3', async (_, command) => {
    const { code, stderr } = await shell(`trialscan ${command} > /dev/full`, [PLAIN])
    expect([code, stderr]).toEqual([3, 'trialscan: cannot write standard output: no space left on the device\n'])
  })

  const written = [
    'scan "$1" --out /dev/full',
    'scan "$1" --format csv --out /dev/full',
    'scan "$1" --format table --out /dev/full',
    'check "$1" --rule AllZero,tensor_regex=loss,threshold=0 --out /dev/full',
    'show "$1" loss --step 1 --npy /dev/full',
  ]
  it.each(part(written, (_, i) => i === 0))('%s does so too', async command => {
    const { code, stderr } = await shell(`trialscan ${command}`, [PLAIN])
    expect([code, stderr]).toEqual([3, 'trialscan: cannot write /dev/full: no space left on the device\n'])
  })

  it('help has an exit code, and messages that nobody can read change nothing', async () => {
    expect((await shell('trialscan --help > /dev/full')).code).toBe(3)
    const { code, stdout } = await shell('trialscan scan "$1" --stats 2> /dev/full', [PLAIN])
    expect([code, objects(stdout).length]).toEqual([0, 15])
  })
})

describe.runIf(isUnix)('a file that may not grow so long', () => {
  const out = join(scratch, 'out')
  beforeAll(() => mkdirSync(out))

  const cut: [string, string, string][] = [
    ['scan', 'trialscan scan "$1" --out "$2/rows"', 'rows'],
    ['scan --format csv on threads', 'trialscan scan "$1" --format csv --threads 2 --out "$2/rows"', 'rows'],
    ['scan --format table', 'trialscan scan "$1" --format table --out "$2/rows"', 'rows'],
    [
      'check',
      'trialscan check "$1" --rule AllZero,tensor_regex=loss,threshold=0 --format jsonl --out "$2/rows"',
      'rows',
    ],
    ['show --npy', 'ulimit -f 0; trialscan show "$1" loss --step 1 --npy "$2/rows" > /dev/null', 'rows'],
  ]
  it.each(part(cut, (_, i) => i === 1))(
    '%s: what was there stays, and no temporary file is left',
    async (_, command, name) => {
      writeFileSync(join(out, name), 'what was there')
      const limit = command.startsWith('ulimit') ? '' : 'ulimit -f 4; '
      const { code, stderr } = await shell(`${limit}${command}`, [many, out])
      expect(stderr).toMatch(/^trialscan: cannot write .*rows: EFBIG: file too large, write\n$/)
      expect([code, readdirSync(out), readFileSync(join(out, name), 'utf8')]).toEqual([3, [name], 'what was there'])
    },
  )

  it('reindex: the files that are there are whole', async () => {
    const { code, stderr } = await shell('ulimit -f 0; trialscan reindex "$1" --out "$2/rebuilt"', [bare, out])
    expect([code, readdirSync(join(out, 'rebuilt/index/000000000'))]).toEqual([3, []])
    expect(stderr).toMatch(/^trialscan: cannot write .*000000000000_worker_0.json: EFBIG/)
  })
})

it('an index cache that can’t be written costs nothing but itself', async () => {
  const directory = join(scratch, 'cached')
  mkdirSync(directory)
  const spy = vi.spyOn(fs, 'writeSync').mockImplementation(() => fail('ENOSPC'))
  syncBuiltinESMExports()
  const trial = await createTrial(many, { indexCache: join(directory, 'cache') })
  spy.mockRestore()
  syncBuiltinESMExports()
  expect(trial.steps().length).toBe(STEPS)
  expect(trial.scan().problems).toMatchObject([{ code: 'Unavailable', message: expect.stringContaining('ENOSPC') }])
  expect(readdirSync(directory)).toEqual([])
})

it.each(['mkdirSync', 'writeSync', 'renameSync'] as const)(
  'a cache of ranges whose %s fails costs nothing but itself',
  async name => {
    const directory = join(scratch, `ranges-${name}`)
    mkdirSync(directory)
    const cache = new RangeCache(directory, 1 << 20)
    await cache.open()
    const bytes = Uint8Array.of(1, 2, 3)
    await cache.write('an object', 0, 3, bytes)
    const spy = vi.spyOn(fs, name as 'mkdirSync').mockImplementation(() => fail('ENOSPC'))
    syncBuiltinESMExports()
    await cache.write('another', 0, 3, bytes)
    spy.mockRestore()
    syncBuiltinESMExports()
    // It is left alone from then on, and what was there is still of use.
    await cache.write('a third', 0, 3, bytes)
    const kept = ['an object', 'another', 'a third'].map(key => cache.read(key, 0, 3))
    expect(kept.map(read => read && [...read])).toEqual([[1, 2, 3], null, null])
    const left = readdirSync(directory, { recursive: true, encoding: 'utf8' })
    expect(left.filter(path => path.endsWith('.tmp'))).toEqual([])
  },
)

it.runIf(isUnix)('a file whose mode can’t be kept is closed again, and what is there stays', async () => {
  const path = join(scratch, 'without-modes')
  writeFileSync(path, 'what was there')
  const probe = await fs.promises.open(path)
  const prototype = Object.getPrototypeOf(probe) as typeof probe
  await probe.close()
  const spy = vi.spyOn(prototype, 'chmod').mockImplementation(async () => fail('EPERM'))
  const error = await OutputFile.create(path).catch(error => error)
  const handles = spy.mock.contexts.map(handle => (handle as typeof probe).fd)
  spy.mockRestore()
  expect([error.code, handles]).toEqual(['Denied', [-1]])
  expect(readFileSync(path, 'utf8')).toBe('what was there')
  expect(readdirSync(scratch).filter(isTemporaryName)).toEqual([])
})

it.runIf(isUnix)('what replaces a file of its owner alone is no one else’s while it is written', () => {
  const path = join(scratch, 'private')
  writeFileSync(path, '', { mode: 0o600 })
  const spy = vi.spyOn(fs, 'openSync')
  syncBuiltinESMExports()
  const isWritten = writeAtOnce(path, [Uint8Array.of(1)])
  const modes = spy.mock.calls.map(([, , mode]) => mode)
  spy.mockRestore()
  syncBuiltinESMExports()
  expect([isWritten, modes]).toEqual([true, [0o600]])
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

function fail(code: string): never {
  throw Object.assign(new Error(`${code}: made up`), { code })
}

type Patched = 'openSync' | 'readSync' | 'fstatSync'

/** Lets a call of node:fs fail, where a function of its arguments says so. */
function failing<K extends Patched>(name: K, code: string, when: (...args: readonly unknown[]) => boolean): void {
  const real = fs[name] as (...args: readonly unknown[]) => unknown
  vi.spyOn(fs, name).mockImplementation(((...args: readonly unknown[]) => {
    if (when(...args)) fail(code)
    return real(...args)
  }) as never)
  syncBuiltinESMExports()
}

describe('an error of the disk', () => {
  afterEach(() => {
    vi.restoreAllMocks()
    syncBuiltinESMExports()
  })

  const EVENTS = /000000000001_worker_0\.tfevents$/
  const INDEX = /000000000001_worker_0\.json$/
  /** Descriptors of files whose path matches. */
  const opened = (pattern: RegExp): ReadonlySet<unknown> => {
    const files = new Set<unknown>()
    const real = fs.openSync
    vi.spyOn(fs, 'openSync').mockImplementation((path, ...rest) => {
      const file = real(path, ...rest)
      if (pattern.test(String(path))) files.add(file)
      else files.delete(file)
      return file
    })
    syncBuiltinESMExports()
    return files
  }

  for (const code of ['EIO', 'ESTALE', 'EOVERFLOW', 'ENOMEM']) {
    it.each(['openSync', 'fstatSync', 'readSync'] as const)(
      `${code} of %s costs an event file its rows`,
      async name => {
        const trial = await createTrial(PLAIN)
        const right = plainRows(await rowsOf(trial, { threads: 0 }))
        const files = name === 'openSync' ? null : opened(EVENTS)
        failing(name, code, path => files?.has(path) ?? EVENTS.test(String(path)))
        const rows = await rowsOf(trial, { threads: 0 })
        for (const { step, error } of rows) {
          if (step === 1) {
            expect(error).toMatchObject({ name: 'StoreError', code: 'Unavailable', retryable: code === 'EIO' })
            expect(error!.message).toMatch(new RegExp(`000000000001_worker_0.tfevents: ${code}`))
          } else expect(error).toBeUndefined()
        }
        expect(rows.filter(({ error }) => error).length).toBe(5)
        vi.restoreAllMocks()
        syncBuiltinESMExports()
        expect(plainRows(await rowsOf(trial, { threads: 0 }))).toEqual(right)
      },
    )

    it.each(['openSync', 'readSync'] as const)(`${code} of %s costs an index file its step`, async name => {
      const files = name === 'openSync' ? null : opened(INDEX)
      failing(name, code, path => files?.has(path) ?? INDEX.test(String(path)))
      const trial = await createTrial(PLAIN)
      const rows = await rowsOf(trial, { threads: 0 })
      const failed = rows.filter(({ error }) => error)
      expect(rows.length).toBe(11)
      expect(failed).toMatchObject([{ step: 1, tensor: null, error: { name: 'StoreError', code: 'Unavailable' } }])
      // What can't be read is read again at the next look.
      vi.restoreAllMocks()
      syncBuiltinESMExports()
      expect((await rowsOf(await createTrial(PLAIN))).length).toBe(15)
    })
  }

  it.each(['EIO', 'EACCES', 'ENOMEM'])('%s of a listing is the error of the trial', async code => {
    vi.spyOn(fs.promises, 'readdir').mockImplementation(() => Promise.reject(Object.assign(new Error(code), { code })))
    const failure = await rejectionOf(createTrial(PLAIN))
    expect(failure).toMatchObject({ name: 'StoreError', code: code === 'EACCES' ? 'Denied' : 'Unavailable' })
  })

  it.each(['EMFILE', 'ENFILE'])('%s of a listing passes: it is waited for', async code => {
    const real = fs.promises.readdir
    let left = 4
    const spy = vi
      .spyOn(fs.promises, 'readdir')
      .mockImplementation(((...args: Parameters<typeof real>) =>
        left-- > 0 ? Promise.reject(Object.assign(new Error(code), { code })) : real(...args)) as never)
    expect((await rowsOf(await createTrial(PLAIN))).length).toBe(15)
    expect(spy.mock.calls.length).toBeGreaterThan(5)
  })

  it.each(['EMFILE', 'ENFILE'])(
    '%s of a file passes: files that are kept open are given back, then it is waited',
    async code => {
      const trial = await createTrial(PLAIN)
      const release = vi.spyOn(LocalStore.prototype, 'release')
      let left = 4
      failing('openSync', code, path => EVENTS.test(String(path)) && left-- > 0)
      const rows = await rowsOf(trial, { threads: 0 })
      expect([rows.length, rows.filter(({ error }) => error).length]).toEqual([15, 0])
      expect(release).toHaveBeenCalled()
    },
  )

  const CALLS = ['openSync', 'readSync', 'readdir'] as const
  const failures = CALLS.flatMap(name => ['EIO', 'EACCES'].map(code => [code, name] as const))
  it.each(part(failures, (_, i) => i % 4 === 0))(
    '%s of any %s ends a repair without a copy, and is all that verifying tells of',
    async (code, name) => {
      const trial = join(scratch, `repair-${code}-${name}`)
      copyTrial(PLAIN, trial)
      const index = join(trial, 'index/000000000/000000000001_worker_0.json')
      writeFileSync(index, readFileSync(index, 'utf8').replace('mode_step', 'mode'))
      const parent = `${trial}-copies`
      mkdirSync(parent)
      let calls = 0
      let failing = 0
      const isIn = (path: unknown): boolean => String(path).startsWith(trial) && !String(path).startsWith(parent)
      /** Paths by descriptors. */
      const files = new Map<unknown, unknown>()
      /** What fails once fails from then on: an index file that can't be read at once is read once more. */
      let spoiltPath: unknown
      const spoilt =
        (real: (...args: readonly unknown[]) => unknown) =>
        (...args: readonly unknown[]): unknown => {
          const path = name === 'readSync' ? files.get(args[0]) : isIn(args[0]) ? args[0] : undefined
          if (path !== undefined && ++calls === failing) spoiltPath = path
          if (path !== undefined && path === spoiltPath) fail(code)
          return real(...args)
        }
      const begin = (): void => {
        calls = 0
        spoiltPath = undefined
      }
      const { openSync, readSync } = fs
      const { readdir } = fs.promises
      vi.spyOn(fs, 'openSync').mockImplementation(((...args: readonly unknown[]) => {
        const file = name === 'openSync' ? spoilt(openSync as never)(...args) : openSync(...(args as [string, string]))
        if (isIn(args[0])) files.set(file, args[0])
        else files.delete(file)
        return file
      }) as never)
      if (name === 'readSync') vi.spyOn(fs, 'readSync').mockImplementation(spoilt(readSync as never) as never)
      if (name === 'readdir') {
        vi.spyOn(fs.promises, 'readdir').mockImplementation((async (...args: readonly unknown[]) =>
          spoilt(readdir as never)(...args)) as never)
      }
      syncBuiltinESMExports()
      const count = async (work: () => Promise<unknown>): Promise<number> => {
        begin()
        await work()
        return calls
      }
      const out = join(parent, 'copy')
      const repair = () => repairTrial(trial, out, { threads: 0 })
      const repairing = await count(repair)
      expect(repairing).toBeGreaterThan(4)
      rmSync(out, { recursive: true })
      for (failing = 1; failing <= repairing; failing++) {
        begin()
        expect(await rejectionOf(repair()), `call ${failing}`).toMatchObject({ name: 'StoreError' })
        expect(readdirSync(parent)).toEqual([])
      }
      failing = 0
      const told = ({ problems, notes }: Verification) => [...problems, ...notes].map(({ message }) => message)
      let whole: string[] = []
      const verifying = await count(async () => {
        whole = told(await verifyTrial(trial, { threads: 0 }))
      })
      for (failing = 1; failing <= verifying; failing++) {
        begin()
        const found = await verifyTrial(trial, { threads: 0 }).catch((error: unknown) => {
          expect(error).toMatchObject({ name: 'StoreError' })
          return null
        })
        if (found === null) continue
        expect(found.problemCounts.Unreadable, `call ${failing}`).toBeGreaterThan(0)
        const readable = found.problems.filter(({ code }) => code === 'Unreadable').map(({ message }) => message)
        expect(told(found).filter(message => !whole.includes(message) && !readable.includes(message))).toEqual([])
      }
    },
  )

  it.runIf(isLinux)('is told on threads too: a file whose pages can’t be read', async () => {
    // Page 0 of a process's memory can't be read by anybody: a real EIO.
    const trial = join(scratch, 'memory')
    copyTrial(PLAIN, trial)
    const path = join(trial, 'events/000000000001/000000000001_worker_0.tfevents')
    rmSync(path)
    symlinkSync('/proc/self/mem', path)
    const opened = await createTrial(trial, { allowSymlinks: true })
    for (const threads of [0, 2]) {
      const rows = await rowsOf(opened, { threads })
      const failed = rows.filter(({ error }) => error)
      expect([rows.length, failed.length]).toEqual([15, 5])
      for (const { step, error } of failed) {
        expect([step, error!.name]).toEqual([1, 'StoreError'])
        expect(error!.message).toMatch(/000000000001_worker_0\.tfevents: EIO: i\/o error, read$/)
      }
    }
  })

  it('is told of a directory in place of an event file', async () => {
    const trial = join(scratch, 'directory')
    copyTrial(PLAIN, trial)
    const path = join(trial, 'events/000000000001/000000000001_worker_0.tfevents')
    rmSync(path)
    mkdirSync(path)
    for (const threads of [0, 2]) {
      const rows = await rowsOf(await createTrial(trial), { threads })
      expect(rows.filter(({ error }) => error).map(({ step, error }) => [step, error!.code])).toEqual(
        Array.from({ length: 5 }, () => [1, 'NotAFile']),
      )
    }
  })
})
