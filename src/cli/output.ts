/** The output of data: standard output, or a file that appears whole or not at all. */

import { fstatSync } from 'node:fs'
import type { Transform } from 'node:stream'
import { StoreError, UsageError } from '../base/errors.js'
import { turnsWhenDue } from '../base/turns.js'
import { OutputFile, writeWhole } from '../storage/local/output.js'
import { compressionOf } from './format/formats.js'
import { expectNoInput } from './input-file.js'

type Chunk = string | Uint8Array

/** The target of chunks. */
interface Target {
  write(chunk: Chunk): Promise<void>
  /** Called when all is written. */
  commit(): Promise<void>
  /** Called after an error. */
  discard(): Promise<void>
}

const FLUSH_LENGTH = 1 << 16
/** Larger chunks of bytes are written in pieces of this size. */
const WRITTEN_BYTES = 16 << 20
/** The longest that a row waits in the buffer. */
const FLUSH_MS = 100

/**
 * Writes to standard output, or to the file if one is named. After an error, or if the signal is aborted, standard output keeps
 * the lines so far, and no file is made.
 */
export async function writeTo<T>(
  path: string | undefined,
  work: (output: Output) => T | Promise<T>,
  { signal, isPlain = false }: { readonly signal?: AbortSignal; readonly isPlain?: boolean } = {},
): Promise<T> {
  const output = await Output.open(path, isPlain)
  try {
    const result = await work(output)
    await (signal?.aborted ? output.discard() : output.end())
    return result
  } catch (error) {
    await output.discard()
    throw error
  }
}

/** Takes lines. */
export interface LineSink {
  /** Writes lines. @returns a promise if the caller has to wait */
  write(lines: string): Promise<void> | undefined
  flush(): Promise<void>
}

/** Writes lines one after another, for callers that can't wait. */
export class Lines {
  readonly #output: LineSink
  readonly #isPrompt: boolean
  #last: Promise<void> = Promise.resolve()

  /** @param isPrompt flush every line, since somebody may be waiting for it */
  constructor(output: LineSink, isPrompt = false) {
    this.#output = output
    this.#isPrompt = isPrompt
  }

  /** Writes a text. @returns when it is written; rejects once a write has failed */
  write(text: string): Promise<void> {
    if (text === '') return this.#last
    this.#last = this.#last.then(async () => {
      await this.#output.write(text)
      if (this.#isPrompt) await this.#output.flush()
    })
    return this.#last
  }

  /** Waits for all writes. @throws the error of a write that failed */
  done(): Promise<void> {
    return this.#last
  }
}

/** Buffers lines. Only whole lines are passed on. */
export class Output implements LineSink {
  readonly #target: Target
  #lines = ''
  #failure: unknown = null
  #flushedAt = performance.now()
  /** A file, and a pipe with room, take what is written at once: signals would wait for the last line. */
  readonly #turnWhenDue = turnsWhenDue()

  private constructor(target: Target) {
    this.#target = target
  }

  /** Standard output, or the file if one is named. */
  static async open(path?: string, isPlain = false): Promise<Output> {
    if (path === undefined) return new Output(stdout)
    const compression = isPlain ? undefined : compressionOf(path)
    // The coder comes before the file, since this Node.js may not have it.
    const coder = compression && (await coderOf(compression))
    const file = await fileTarget(path)
    return new Output(coder ? compressed(file, coder) : file)
  }

  /** Writes lines. @returns a promise if the caller has to wait for the reader or the disk */
  write(lines: string): Promise<void> | undefined {
    this.#lines += lines
    if (this.#lines.length < FLUSH_LENGTH && performance.now() - this.#flushedAt < FLUSH_MS) return undefined
    return this.flush()
  }

  async writeBytes(bytes: Uint8Array): Promise<void> {
    await this.flush()
    // A single write can't take 2 GiB.
    for (let at = 0; at < bytes.length; at += WRITTEN_BYTES) {
      await this.#put(bytes.subarray(at, at + WRITTEN_BYTES))
    }
  }

  async writeAll(pieces: Iterable<Chunk>): Promise<void> {
    for (const piece of pieces) {
      const written = typeof piece === 'string' ? this.write(piece) : this.writeBytes(piece)
      if (written) await written
    }
  }

  async flush(): Promise<void> {
    const lines = this.#lines
    this.#lines = ''
    // Lines that arrive meanwhile wait for the next flush.
    this.#flushedAt = performance.now()
    if (lines !== '') await this.#put(lines)
    await this.#turnWhenDue()
  }

  /** The error of a write. Null: none has failed. */
  get failure(): unknown {
    return this.#failure
  }

  async #put(chunk: Chunk): Promise<void> {
    try {
      await this.#target.write(chunk)
    } catch (error) {
      this.#failure = error
      throw error
    }
  }

  /** Writes what is left. A file then gets its name. */
  async end(): Promise<void> {
    await this.flush()
    await this.#target.commit()
  }

  /** After an error: standard output keeps the lines so far, and no file is made. */
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
      // Waits until a piece is taken: Node.js would join it with the next one into a single write.
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
    // The output is a console on Windows.
    return false
  }
}

function awaitWrite(write: (done: (error?: Error | null) => void) => void): Promise<void> {
  return new Promise((done, failed) => {
    write(error => (error ? failed(stdoutError(error)) : done()))
  })
}

/** PIPE_BUF: a write of this size gets into a pipe whole or not at all. */
const PIPE_BYTES = 4096

/**
 * Whole lines, as many as fit into a pipe at once. So a process that is ended while nobody reads leaves no partial line
 * there. Only a longer line can be cut.
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

// If the process ends early, nothing is left of any file, unless it is killed.
process.on('exit', () => OutputFile.removeAll())

async function fileTarget(path: string): Promise<Target> {
  await expectNoInput(path)
  const file = await OutputFile.create(path)
  return {
    write: chunk => file.write(chunk),
    async commit() {
      // Some inputs are read only while the output is written.
      await expectNoInput(path)
      await file.commit()
    },
    discard: () => file.discard(),
  }
}

/** @throws UsageError for zstd where Node.js does not have it */
async function coderOf(compression: 'gz' | 'zst'): Promise<Transform> {
  const zlib: typeof import('node:zlib') & { createZstdCompress?: () => Transform } = await import('node:zlib')
  if (compression === 'gz') return zlib.createGzip()
  if (zlib.createZstdCompress) return zlib.createZstdCompress()
  throw new UsageError(
    `.zst is written by Node.js 22.15 and newer, and this is ${process.versions.node}: expected a name that ends in .gz`,
  )
}

/** A target whose chunks are compressed. */
function compressed(target: Target, coder: Transform): Target {
  const drained = (async () => {
    for await (const bytes of coder) await target.write(bytes as Uint8Array)
  })()
  // The caller of `write` or `commit` gets the error.
  drained.catch(() => {})
  return {
    async write(chunk) {
      const written = new Promise<void>((done, failed) => coder.write(chunk, error => (error ? failed(error) : done())))
      await written.catch(async error => {
        await drained
        throw error
      })
    },
    async commit() {
      coder.end()
      await drained
      await target.commit()
    },
    async discard() {
      coder.destroy()
      await drained.catch(() => {})
      await target.discard()
    },
  }
}

/** Writes a file of pieces, and makes its directory. @throws UsageError if the command reads it, StoreError */
export async function writeFile(path: string, pieces: Iterable<Chunk> | AsyncIterable<Chunk>): Promise<void> {
  await expectNoInput(path)
  const work = async (file: OutputFile): Promise<void> => {
    for await (const piece of pieces) await file.write(piece)
  }
  await writeWhole(path, work, { makesDirectory: true })
}

function stdoutError(cause: NodeJS.ErrnoException): StoreError {
  const reason = cause.code === 'ENOSPC' ? 'no space left on the device' : cause.message
  return new StoreError('Unavailable', `cannot write standard output: ${reason}`, { url: 'file:///dev/stdout' }, cause)
}
