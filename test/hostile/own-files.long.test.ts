/** Nothing that is written takes the place of a file of the trial; and what is no file in a cache. */

import { execFileSync } from 'node:child_process'
import {
  cpSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { closePools, createTrial } from '#dist/index.js'
import { RangeCache } from '#dist/storage/local/cache.js'
import { PLAIN, trialscan } from '../cli/run.js'
import { rejectionOf } from '../support/scanning.js'

const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'trialscan-own-')))
let made = 0

afterAll(async () => {
  await closePools()
  rmSync(scratch, { recursive: true, force: true })
})

function copyOf(): string {
  const directory = join(scratch, `t${made++}`)
  cpSync(PLAIN, directory, { recursive: true })
  return directory
}

/** All files, with what is in them; of links where they lead. */
function contents(directory: string): Record<string, string> {
  const files = readdirSync(directory, { recursive: true, encoding: 'utf8' }).map(name => join(directory, name))
  return Object.fromEntries(
    files
      .filter(path => statSync(path).isFile())
      .map(path => [`${relative(directory, path)} ${lstatSync(path).isSymbolicLink()}`, readFileSync(path, 'latin1')]),
  )
}

const INDEX = 'index/000000000/000000000001_worker_0.json'
const EVENTS = 'events/000000000001/000000000001_worker_0.tfevents'
const RULE = ['--rule', 'AllZero,tensor_regex=.*']

describe('a file of the trial is not replaced', () => {
  const commands: Record<string, (trial: string, out: string) => readonly string[]> = {
    'scan --out': (trial, out) => ['scan', trial, '--out', out],
    'show --out': (trial, out) => ['show', trial, 'fc.weight', '--out', out],
    'show --npy': (trial, out) => ['show', trial, 'fc.weight', '--npy', out],
    'ls --out': (trial, out) => ['ls', trial, '--out', out],
    'check --out': (trial, out) => ['check', trial, ...RULE, '--out', out],
    'rule-invoker --out': (trial, out) => [
      'rule-invoker',
      '--trial-dir',
      trial,
      '--rule-name',
      'AllZero',
      '--out',
      out,
    ],
    'verify --out': (trial, out) => ['verify', trial, '--out', out],
  }

  it.each(Object.keys(commands))('by %s', { timeout: 120_000 }, async name => {
    const directory = copyOf()
    const before = contents(directory)
    const alias = join(scratch, `alias${made++}`)
    symlinkSync(directory, alias)
    const link = join(scratch, `link${made++}`)
    symlinkSync(join(directory, EVENTS), link)
    const targets = [
      join(directory, EVENTS),
      link,
      join(alias, 'events/../training_job_end.ts'),
      join(directory, 'index/000000000/000000000077_worker_0'),
    ]
    for (const out of targets) {
      const { code, stderr } = await trialscan(...commands[name]!(pathToFileURL(directory).href, out))
      expect([out, code, stderr]).toEqual([out, 2, expect.stringContaining('expected --')])
    }
    expect(contents(directory)).toEqual(before)
  })

  it('where a link of the trial leads to it', async () => {
    const directory = copyOf()
    const annex = join(directory, 'annex')
    renameSync(join(directory, EVENTS), annex)
    symlinkSync('../../annex', join(directory, EVENTS))
    const step = 'events/000000000000'
    const outside = join(scratch, `outside${made++}`)
    renameSync(join(directory, step), outside)
    symlinkSync(outside, join(directory, step))
    for (const out of [annex, join(outside, '000000000000_worker_0.tfevents')]) {
      const before = readFileSync(out)
      const { code, stderr } = await trialscan('scan', directory, '--out', out)
      expect([code, stderr]).toEqual([2, expect.stringContaining("none of the trial's own files")])
      expect(readFileSync(out)).toEqual(before)
    }
    const elsewhere = join(scratch, `elsewhere${made++}`)
    mkdirSync(elsewhere)
    renameSync(join(directory, 'index'), join(elsewhere, 'index'))
    symlinkSync(join(elsewhere, 'index'), join(directory, 'index'))
    expect((await trialscan('reindex', directory, '--out', elsewhere)).code).toBe(2)
  })

  it('before anything is read, even of a trial that is none', async () => {
    const directory = join(scratch, 'none')
    mkdirSync(directory)
    expect((await trialscan('scan', directory, '--out', join(directory, 'index/x.json'))).code).toBe(2)
  })

  it('but a file of another name in its directory is, and one that was linked to it', async () => {
    const directory = copyOf()
    const rows = join(directory, 'rows.jsonl')
    for (let i = 0; i < 2; i++) expect((await trialscan('scan', directory, '--out', rows)).code).toBe(0)
    const hard = join(scratch, `hard${made++}`)
    linkSync(join(directory, INDEX), hard)
    const before = readFileSync(hard)
    expect((await trialscan('scan', directory, '--out', hard)).code).toBe(0)
    expect(readFileSync(join(directory, INDEX))).toEqual(before)
  })

  it('by an index cache', async () => {
    const directory = copyOf()
    const before = contents(directory)
    for (const path of [INDEX, EVENTS, 'training_job_end.ts', 'events/../index/000000000/000000000000_worker_0.json']) {
      const opened = createTrial(directory, { indexCache: join(directory, path) })
      expect(await rejectionOf(opened)).toMatchObject({ name: 'UsageError' })
    }
    expect(contents(directory)).toEqual(before)
    const own = await createTrial(directory, { indexCache: join(directory, 'cache') })
    expect(own.problems).toEqual([])
  })
})

it('a FIFO, socket, directory or device in a cache of ranges is passed over without waiting', async () => {
  const directory = join(scratch, 'cache')
  const cache = new RangeCache(directory, 1 << 20)
  await cache.open()
  const bytes = Buffer.from('these bytes')
  await cache.write('object', 0, bytes.length, bytes)
  const [path] = readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .map(name => join(directory, name))
    .filter(path => statSync(path).isFile())
  const server = createServer()
  const socket = join(scratch, 'socket')
  await new Promise<void>(resolve => server.listen(socket, resolve))
  const kinds: Record<string, () => void> = {
    fifo: () => execFileSync('mkfifo', [path!]),
    device: () => symlinkSync('/dev/zero', path!),
    directory: () => void mkdirSync(path!),
    socket: () => renameSync(socket, path!),
    'too long': () => writeFileSync(path!, Buffer.alloc(1000)),
    'a dangling link': () => symlinkSync('nowhere', path!),
  }
  for (const [kind, make] of Object.entries(kinds)) {
    rmSync(path!, { recursive: true })
    make()
    const other = new RangeCache(directory, 1 << 20)
    await other.open()
    expect([kind, other.read('object', 0, bytes.length)]).toEqual([kind, null])
    await other.write('object', 0, bytes.length, bytes)
    const again = new RangeCache(directory, 1 << 20).read('object', 0, bytes.length)
    // In place of a directory nothing is put.
    expect([kind, again && Buffer.from(again)]).toEqual([kind, kind === 'directory' ? null : bytes])
  }
  server.close()
})
