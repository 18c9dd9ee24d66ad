/** Where data goes: standard output, or a file that is there as a whole or not at all. */

import { randomBytes } from 'node:crypto'
import { fstatSync, rmSync } from 'node:fs'
import { type FileHandle, open, realpath, rename, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { StoreError } from '../index.js'

type Chunk = string | Uint8Array

/** What chunks are written to. */
interface Target {
  write(chunk: Chunk): Promise<void>
  /** All is written. */
  commit(): Promise<void>
  /** Something went wrong. */
  discard(): Promise<void>
}

const FLUSH_LENGTH = 1 << 16
/** What is written at once of what is bytes already. */
const PIECE_BYTES = 16 << 20
/** A row waits no longer than this for others to fill the buffer. */
const FLUSH_MS = 100

/** Gathers lines to chunks worth writing. Nothing but whole lines is handed on. */
export class Output {
  readonly #target: Target
  #lines = ''
  #flushedAt = performance.now()

  private constructor(target: Target) {
    this.#target = target
  }

  /** Standard output, or the file if one is named. */
  static async open(path?: string): Promise<Output> {
    return new Output(path === undefined ? stdout : await fileTarget(path))
  }

  /** @returns a promise where the caller has to wait for the reader, or the disk */
  write(lines: string): Promise<void> | undefined {
    this.#lines += lines
    if (this.#lines.length < FLUSH_LENGTH && performance.now() - this.#flushedAt < FLUSH_MS) return undefined
    return this.flush()
  }

  async writeBytes(bytes: Uint8Array): Promise<void> {
    await this.flush()
    // No write takes 2 GiB.
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      await this.#target.write(bytes.subarray(at, at + PIECE_BYTES))
    }
  }

  async flush(): Promise<void> {
    const lines = this.#lines
    this.#lines = ''
    if (lines !== '') await this.#target.write(lines)
    this.#flushedAt = performance.now()
  }

  /** Writes what is left; a file then gets its name. */
  async end(): Promise<void> {
    await this.flush()
    await this.#target.commit()
  }

  /** After an error: standard output keeps the lines so far, a file is not made. */
  async discard(): Promise<void> {
    if (this.#target === stdout) await this.flush()
    await this.#target.discard()
  }
}

const stdout: Target = {
  async write(chunk) {
    const { stdout } = process
    isFile ??= isRegularFile(stdout.fd)
    if (isFile) return awaitWrite(done => stdout.write(chunk, done))
    const writes: Promise<void>[] = []
    for (const piece of wholeLines(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)) {
      writes.push(awaitWrite(done => stdout.write(piece, done)))
      // What was not taken at once is waited for: Node.js would put what comes next into one write with it.
      if (stdout.writableLength > 0) await Promise.all(writes)
    }
    await Promise.all(writes)
  },
  commit: async () => {},
  discard: async () => {},
}

let isFile: boolean | undefined

function isRegularFile(descriptor: number): boolean {
  try {
    return fstatSync(descriptor).isFile()
  } catch {
    // A console of Windows.
    return false
  }
}

function awaitWrite(write: (done: (error?: Error | null) => void) => void): Promise<void> {
  return new Promise((done, failed) => {
    write(error => (error ? failed(writeError('standard output', error)) : done()))
  })
}

/** As much as a pipe takes as a whole or not at all: PIPE_BUF. */
const PIPE_BYTES = 4096

/**
 * Whole lines, so many at a time that they get into a pipe together or not at all. So a process that is ended while nobody
 * reads leaves no half of a line there; only a line that is longer can be cut.
 */
function* wholeLines(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; ) {
    let end = bytes.length
    if (end - at > PIPE_BYTES) {
      const last = bytes.lastIndexOf(0x0a, at + PIPE_BYTES - 1)
      end = (last >= at ? last : bytes.indexOf(0x0a, at + PIPE_BYTES)) + 1 || bytes.length
    }
    yield bytes.subarray(at, end)
    at = end
  }
}

/** A temporary file beside the one that is meant; devices and pipes are written to as they are. */
async function fileTarget(path: string): Promise<Target> {
  const wrap = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      throw writeError(path, error)
    }
  }
  return wrap(async () => {
    const real = await realpath(path).catch(() => resolve(path))
    const there = await stat(real).catch(() => null)
    const isSpecial = there !== null && !there.isFile()
    const temporary = join(dirname(real), `.${basename(real).slice(0, 100)}.${randomBytes(4).toString('hex')}.tmp`)
    const file = isSpecial ? await open(real, 'w') : await open(temporary, 'wx', there?.mode ?? 0o666)
    // However the process ends, short of being killed, no temporary file is left.
    const remove = () => rmSync(temporary, { force: true })
    if (!isSpecial) process.once('exit', remove)
    return {
      write: chunk => wrap(() => writeWhole(file, chunk)),
      commit: () =>
        wrap(async () => {
          await file.close()
          if (isSpecial) return
          await rename(temporary, real)
          process.removeListener('exit', remove)
        }),
      discard: async () => {
        await file.close().catch(() => {})
        if (!isSpecial) remove()
      },
    }
  })
}

async function writeWhole(file: FileHandle, chunk: Chunk): Promise<void> {
  const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
  for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at)).bytesWritten
}

const WRITE_FAULTS: Readonly<
  Record<string, readonly [StoreError['code'] & ('Denied' | 'NotFound' | 'NotAFile'), string]>
> = {
  EACCES: ['Denied', 'permission denied'],
  EPERM: ['Denied', 'not permitted'],
  EROFS: ['Denied', 'the file system is read-only'],
  ENOENT: ['NotFound', 'its directory does not exist'],
  ENOTDIR: ['NotFound', 'its directory is none'],
  EISDIR: ['NotAFile', 'it is a directory'],
}

export function writeError(path: string, cause: unknown): StoreError {
  if (cause instanceof StoreError) return cause
  const { code = '', message } = cause as NodeJS.ErrnoException
  const [kind, reason] = WRITE_FAULTS[code] ?? [
    'Unavailable',
    code === 'ENOSPC' ? 'no space left on the device' : message,
  ]
  const url = pathToFileURL(path).href
  return new StoreError(kind as 'Unavailable', `cannot write ${path}: ${reason}`, { url }, cause)
}
