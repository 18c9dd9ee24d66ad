import { execFileSync } from 'node:child_process'
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openStore } from '#dist/storage/open.js'
import type { Store } from '#dist/storage/store.js'

let outside: string
let root: string
let store: Store

beforeEach(() => {
  outside = mkdtempSync(join(tmpdir(), 'trialscan-'))
  root = join(outside, 'trial #1')
  mkdirSync(root)
  store = openStore({ kind: 'local', root })
})

afterEach(async () => {
  await store.close()
  rmSync(outside, { recursive: true })
})

function write(path: string, content: string | Uint8Array = path): void {
  mkdirSync(join(root, path, '..'), { recursive: true })
  writeFileSync(join(root, path), content)
}

function storeError(code: string, retryable = false) {
  return expect.objectContaining({
    name: 'StoreError',
    code,
    retryable,
    url: expect.stringMatching(/^file:\/\/\/.*trial%20%231/),
    message: expect.stringMatching(/^\/.*trial #1/),
  })
}

/** What all ways to a file's bytes answer. */
async function allWays(path: string): Promise<unknown[]> {
  const read = store.read(path, { maxByteLength: 100 })
  const readInto = Promise.resolve().then(() => store.readInto(path, 0, new Uint8Array(1)))
  const results = await Promise.allSettled([read, readInto, store.byteLength(path)])
  return results.map(result => (result.status === 'rejected' ? result.reason : result.value))
}

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

describe('open', () => {
  it('is content with a directory', async () => {
    await expect(store.open()).resolves.toBeUndefined()
  })

  it('tells what is wrong with anything else', async () => {
    await expect(openStore({ kind: 'local', root: join(root, 'none') }).open()).rejects.toThrow(storeError('NotFound'))
    write('file')
    await expect(openStore({ kind: 'local', root: join(root, 'file') }).open()).rejects.toThrow(
      storeError('NotADirectory'),
    )
  })
})

it('urls are encoded', () => {
  expect(store.url('a b/c?.json')).toMatch(/^file:\/\/\/.*\/trial%20%231\/a%20b\/c%3F\.json$/)
})

describe('list', () => {
  it('gives sorted paths relative to the trial', async () => {
    for (const path of ['index/1/b', 'index/1/a', 'index/0/z', 'index/top', 'other']) write(path)
    expect(await store.list('index', { recursive: true })).toEqual(['index/0/z', 'index/1/a', 'index/1/b', 'index/top'])
    expect(await store.list('index/')).toEqual(['index/top'])
    expect(await store.list('index', { recursive: false })).toEqual(['index/top'])
    expect(await store.list('')).toEqual(['other'])
    expect(await store.list('', { recursive: true })).toHaveLength(5)
  })

  it('a missing directory has no files, a file is no directory', async () => {
    expect(await store.list('none', { recursive: true })).toEqual([])
    write('file')
    await expect(store.list('file')).rejects.toThrow(storeError('NotADirectory'))
  })

  it('lists regular files only', async () => {
    write('d/file')
    execFileSync('mkfifo', [join(root, 'd/fifo')])
    symlinkSync('nowhere', join(root, 'd/dangling'))
    symlinkSync('loop', join(root, 'd/loop'))
    symlinkSync('file', join(root, 'd/link'))
    expect(await store.list('d', { recursive: true })).toEqual(['d/file', 'd/link'])
  })

  it('does not go round in circles', async () => {
    write('d/e/file')
    symlinkSync('..', join(root, 'd/e/up'))
    symlinkSync('e', join(root, 'd/again'))
    symlinkSync('../d', join(root, 'd/self'))
    expect(await store.list('d', { recursive: true })).toEqual(['d/again/file', 'd/e/file'])
  })

  it('is quick with many directories', async () => {
    for (let i = 0; i < 300; i++) write(`events/${i}/${i}_worker_0.tfevents`, '')
    expect(await store.list('events', { recursive: true })).toHaveLength(300)
  })
})

describe('exists', () => {
  it('is about regular files', async () => {
    write('d/file')
    symlinkSync('nowhere', join(root, 'dangling'))
    expect(
      await Promise.all(['d/file', 'd', 'd/none', 'd/file/x', 'dangling'].map(path => store.exists(path))),
    ).toEqual([true, false, false, false, false])
  })
})

describe('read', () => {
  it('gives the whole file', async () => {
    write('a', 'hello')
    write('empty', '')
    expect(text(await store.read('a', { maxByteLength: 5 }))).toBe('hello')
    expect(await store.read('empty', { maxByteLength: 0 })).toHaveLength(0)
  })

  it('refuses more than was asked for', async () => {
    write('a', 'hello')
    await expect(store.read('a', { maxByteLength: 4 })).rejects.toThrow(storeError('TooLarge'))
  })
})

describe('readInto', () => {
  it('fills the view, and is short only at the end', () => {
    write('a', 'hello world')
    const bytes = new Uint8Array(12).fill(46)
    expect(store.readInto('a', 6, bytes.subarray(2, 7))).toBe(5)
    expect(text(bytes)).toBe('..world.....')
    expect(store.readInto('a', 9, bytes)).toBe(2)
    expect(store.readInto('a', 11, bytes)).toBe(0)
    expect(store.readInto('a', 2 ** 52, bytes)).toBe(0)
    expect(store.readInto('a', 0, new Uint8Array(0))).toBe(0)
  })

  it('reads into WASM memory', () => {
    write('a', 'hello')
    const memory = new WebAssembly.Memory({ initial: 1 })
    expect(store.readInto('a', 0, new Uint8Array(memory.buffer, 65_531, 5))).toBe(5)
    expect(text(new Uint8Array(memory.buffer, 65_531, 5))).toBe('hello')
  })

  it('reads beyond 4 GiB', async () => {
    const startByte = 2 ** 32 + 7
    const file = openSync(join(root, 'sparse'), 'w')
    writeSync(file, 'far', startByte)
    closeSync(file)
    const bytes = new Uint8Array(3)
    expect(store.readInto('sparse', startByte, bytes)).toBe(3)
    expect(text(bytes)).toBe('far')
    expect(await store.byteLength('sparse')).toBe(startByte + 3)
  })

  it('refuses impossible offsets', () => {
    write('a')
    for (const offset of [-1, 0.5, Number.NaN, 2 ** 53]) {
      expect(() => store.readInto('a', offset, new Uint8Array(1))).toThrow(/expected a byte offset/)
    }
  })

  it('keeps a few files open, and lets go of them', async () => {
    const openFiles = () => readdirSync('/proc/self/fd').length
    for (let i = 0; i < 100; i++) write(`f${i}`, `${i}`)
    const before = openFiles()
    const bytes = new Uint8Array(2)
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < 100; i++) {
        expect(text(bytes.subarray(0, store.readInto(`f${i}`, 0, bytes) as number))).toBe(`${i}`)
      }
    }
    expect(openFiles() - before).toBe(16)
    await store.close()
    expect(openFiles()).toBe(before)
    expect(store.readInto('f1', 0, bytes)).toBe(1)
  })

  it('sees a file that grew, and one that took the place of another', () => {
    const bytes = new Uint8Array(5)
    write('a', 'he')
    expect(store.readInto('a', 0, bytes)).toBe(2)
    write('b', 'other')
    renameSync(join(root, 'b'), join(root, 'a'))
    expect(store.readInto('a', 0, bytes)).toBe(5)
    expect(text(bytes)).toBe('other')
    truncateSync(join(root, 'a'), 1)
    expect(store.readInto('a', 0, bytes)).toBe(1)
  })
})

describe('errors', () => {
  it('NotFound', async () => {
    expect(await allWays('none')).toEqual([storeError('NotFound'), storeError('NotFound'), storeError('NotFound')])
    expect(await allWays('none/x')).toEqual([storeError('NotFound'), storeError('NotFound'), storeError('NotFound')])
    await expect(store.byteLength('none')).rejects.toMatchObject({ cause: { code: 'ENOENT' } })
  })

  it('NotAFile: directories, FIFOs (without waiting), devices, sockets', async () => {
    mkdirSync(join(root, 'd'))
    execFileSync('mkfifo', [join(root, 'fifo')])
    for (const path of ['d', 'fifo', '']) {
      expect(await allWays(path)).toEqual([storeError('NotAFile'), storeError('NotAFile'), storeError('NotAFile')])
    }
    const devices = openStore({ kind: 'local', root: '/dev' })
    await expect(devices.read('null', { maxByteLength: 1 })).rejects.toThrow(
      expect.objectContaining({ code: 'NotAFile' }),
    )
  })

  it('NotADirectory: a file on the way', async () => {
    write('file')
    expect((await allWays('file/x')).map(error => (error as { code: string }).code)).toEqual(
      Array(3).fill('NotADirectory'),
    )
  })

  it('Denied: paths that leave the root', async () => {
    write('in')
    writeFileSync(join(outside, 'secret'), 'x')
    mkdirSync(join(outside, 'trial #1 too'))
    writeFileSync(join(outside, 'trial #1 too/x'), 'x')
    for (const path of ['../secret', 'a/../../secret', '/etc/passwd', join(root, 'in'), '../trial #1 too/x', 'a\0b']) {
      expect(await allWays(path)).toEqual([storeError('Denied'), storeError('Denied'), storeError('Denied')])
      await expect(store.list(path)).rejects.toThrow(storeError('Denied'))
      await expect(store.exists(path)).rejects.toThrow(storeError('Denied'))
    }
    expect(text(await store.read('a/../in', { maxByteLength: 9 }))).toBe('in')
  })

  it('Unavailable, and worth another try, when there are no file descriptors left but the one it has itself, or another keeps open', () => {
    const script = `
      import { openSync } from 'node:fs'
      import { openStore } from ${JSON.stringify(new URL('../../dist/storage/open.js', import.meta.url).href)}
      const [store, other] = [0, 1].map(() => openStore({ kind: 'local', root: ${JSON.stringify(root)} }))
      store.readInto('a', 0, new Uint8Array(1))
      try { for (;;) openSync('/dev/null') } catch {}
      console.log(store.readInto('b', 0, new Uint8Array(1)))
      store.release(true)
      console.log(other.readInto('a', 0, new Uint8Array(1)))
      other.release()
      openSync('/dev/null')
      const started = performance.now()
      for (let i = 0; i < 100; i++) {
        try { store.readInto('a', 0, new Uint8Array(1)) } catch (error) {
          if (i === 0) console.log(error.code, error.retryable, error.cause.code)
        }
      }
      // The first waits a quarter of a second, the others don't wait long for what did not come.
      console.log(performance.now() - started < 15_000)`
    write('a')
    write('b')
    const command = `ulimit -n 64; exec "$0" --input-type=module -e "$1"`
    const output = execFileSync('bash', ['-c', command, process.execPath, script], { encoding: 'utf8' })
    expect(output.trim().split('\n')).toEqual(['1', '1', 'Unavailable true EMFILE', 'true'])
  })
})

describe('symbolic links', () => {
  beforeEach(() => {
    write('real/file', 'inside')
    mkdirSync(join(outside, 'other'))
    writeFileSync(join(outside, 'other/file'), 'outside')
    symlinkSync('real/file', join(root, 'link'))
    symlinkSync('real', join(root, 'directory'))
    symlinkSync(join(outside, 'other/file'), join(root, 'out'))
    symlinkSync('../other', join(root, 'out-directory'))
  })

  it('are followed within the root', async () => {
    for (const path of ['link', 'directory/file']) {
      expect(text(await store.read(path, { maxByteLength: 9 }))).toBe('inside')
      expect(store.readInto(path, 0, new Uint8Array(2))).toBe(2)
      expect(await store.byteLength(path)).toBe(6)
      expect(await store.exists(path)).toBe(true)
    }
  })

  it('are refused when they lead out', async () => {
    for (const path of ['out', 'out-directory/file']) {
      expect(await allWays(path)).toEqual([storeError('Denied'), storeError('Denied'), storeError('Denied')])
    }
    await expect(store.list('out-directory')).rejects.toThrow(storeError('Denied'))
    await expect(store.list('', { recursive: true })).rejects.toThrow(storeError('Denied'))
    expect(await store.list('')).toEqual(['link', 'out'])
  })

  it('are refused when they lead out of a directory that a link led to, or of one below', async () => {
    mkdirSync(join(root, 'real/below'))
    symlinkSync('../../../other', join(root, 'real/below/out'))
    symlinkSync('below', join(root, 'real/again'))
    write('real/below/file', 'inside')
    expect(text(await store.read('directory/again/file', { maxByteLength: 9 }))).toBe('inside')
    for (const path of ['real/below/out/file', 'directory/below/out/file', 'directory/again/out/file']) {
      expect(await allWays(path)).toEqual([storeError('Denied'), storeError('Denied'), storeError('Denied')])
    }
  })

  it('cost one call for each directory, and no real path where there is none', () => {
    for (let step = 0; step < 100; step++) write(`events/${step}/file`, 'inside')
    const script = `
      import fs from 'node:fs'
      import { syncBuiltinESMExports } from 'node:module'
      const calls = { lstatSync: 0, realpathSync: 0 }
      for (const name of Object.keys(calls)) {
        const own = fs[name]
        fs[name] = (...given) => (calls[name]++, own(...given))
      }
      syncBuiltinESMExports()
      const { openStore } = await import('${new URL('../../dist/storage/open.js', import.meta.url)}')
      const store = openStore({ kind: 'local', root: ${JSON.stringify(root)} })
      // Modules are found by real paths.
      calls.realpathSync = calls.lstatSync = 0
      for (let step = 0; step < 100; step++) store.readInto('events/' + step + '/file', 0, new Uint8Array(6))
      const reading = { ...calls }
      for (let step = 0; step < 100; step++) await store.byteLength('events/' + step + '/file')
      console.log(JSON.stringify([reading, calls]))`
    const output = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
    // 'events', and each of the directories below; then each of the files.
    expect(JSON.parse(output)).toEqual([
      { lstatSync: 101, realpathSync: 0 },
      { lstatSync: 201, realpathSync: 0 },
    ])
  })

  it('may lead out if the spec says so', async () => {
    const free = openStore({ kind: 'local', root, allowSymlinks: true })
    for (const path of ['out', 'out-directory/file']) {
      expect(text(await free.read(path, { maxByteLength: 9 }))).toBe('outside')
    }
    expect(await free.list('out-directory')).toEqual(['out-directory/file'])
    expect(await free.list('', { recursive: true })).toContain('out-directory/file')
    await expect(free.read('../other/file', { maxByteLength: 9 })).rejects.toThrow(storeError('Denied'))
  })

  it('the root itself may be one', async () => {
    symlinkSync(root, join(outside, 'alias'))
    const alias = openStore({ kind: 'local', root: join(outside, 'alias') })
    await alias.open()
    expect(text(await alias.read('link', { maxByteLength: 9 }))).toBe('inside')
  })
})
