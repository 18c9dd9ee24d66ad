/** numpy, in a Python process that answers a line for a line, if this machine has one. */

import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { PACKAGE } from '../version.js'

/** The program that runs numpy's kernels. It keeps its own time, so that no pipe is timed. */
export const NUMPY_KERNELS = fileURLToPath(new URL('python/kernels.py', PACKAGE))

/** The settings under which glibc keeps freed memory: else each new array of numpy costs page faults. */
export const KEEP_MEMORY = { MALLOC_MMAP_THRESHOLD_: '1073741824', MALLOC_TRIM_THRESHOLD_: '4294967296' }

export interface NumpyAnswer {
  readonly ms: number
  readonly numbers: readonly number[]
}

export class Numpy {
  readonly version: string
  readonly #child: ChildProcessByStdio<Writable, Readable, null>
  readonly #lines: AsyncIterator<string>

  private constructor(
    version: string,
    child: ChildProcessByStdio<Writable, Readable, null>,
    lines: AsyncIterator<string>,
  ) {
    this.version = version
    this.#child = child
    this.#lines = lines
  }

  /** Starts Python. @returns null if there is no python3, or no numpy in it */
  static async start(): Promise<Numpy | null> {
    const env = { ...process.env, ...KEEP_MEMORY }
    const child = spawn('python3', [NUMPY_KERNELS], { stdio: ['pipe', 'pipe', 'ignore'], env })
    // A process that can't be started, or has ended, answers with no line.
    child.on('error', () => {})
    child.stdin.on('error', () => {})
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const { done, value } = await lines.next()
    return done ? null : new Numpy(value, child, lines)
  }

  /** Sends a request. @param words the request after its time; see python/kernels.py */
  async ask(kernel: string, ms: number, words: readonly (string | number)[]): Promise<NumpyAnswer> {
    this.#child.stdin.write(`${[kernel, ms, ...words].join('\t')}\n`)
    const { done, value } = await this.#lines.next()
    if (done) return { ms: Number.NaN, numbers: [] }
    const [median = Number.NaN, ...numbers] = value.split('\t').map(Number)
    return { ms: median, numbers }
  }

  end(): void {
    this.#child.kill()
  }
}
