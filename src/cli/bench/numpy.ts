/** numpy, in a Python of its own that answers a line for a line, where this machine has one. */

import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'

/** Each answer is the median of a run in milliseconds, then the numbers. It keeps its own time, so that no pipe is timed. */
const PROGRAM = `
import sys, math
from time import perf_counter
import numpy as np

def moments(x):
    n = x.size
    low, high, total, product = x.min(), x.max(), x.sum(), x.prod()
    mean = total / n
    scratch = np.subtract(x, mean, dtype=x.dtype)
    variance = np.square(scratch, out=scratch).sum() / n
    l2 = math.sqrt(np.square(x, out=scratch).sum())
    a = np.abs(x, out=scratch)
    l1 = a.sum()
    mean_abs = l1 / n
    variance_abs = max(0.0, float(variance) + float(mean) ** 2 - float(mean_abs) ** 2)
    return (low, high, mean, math.sqrt(variance), variance, total, product, l1, l2,
            a.min(), max(-low, high), mean_abs, math.sqrt(variance_abs), variance_abs, l1, abs(product), l1, l2)

kernels = {
    'moments': moments,
    'mean and std': lambda x: (x.mean(), x.std()),
    'min and max': lambda x: (x.min(), x.max()),
    'sum along axis 0': lambda x: x.reshape(-1, 512).sum(axis=0),
    'allclose': lambda x: (np.allclose(x[:x.size // 2], x[x.size // 2:]),),
}
np.seterr(all='ignore')
print(np.__version__, flush=True)
loaded = None
for line in sys.stdin:
    kernel, ms, path, dtype = line.rstrip('\\n').split('\\t')
    if loaded is None or loaded[0] != path:
        loaded = None
        loaded = (path, np.fromfile(path, dtype))
    x, run = loaded[1], kernels[kernel]
    samples, begin = [], perf_counter()
    while not samples or perf_counter() - begin < float(ms) / 1e3:
        before = perf_counter()
        numbers = run(x)
        samples.append(perf_counter() - before)
    print(sorted(samples)[len(samples) // 2] * 1e3, *(float(number) for number in numbers), sep='\\t', flush=True)
`

/** glibc gives what numpy frees back to the system at once, and the next array is page faults. Not so here. */
const KEEP_MEMORY = { MALLOC_MMAP_THRESHOLD_: '1073741824', MALLOC_TRIM_THRESHOLD_: '4294967296' }

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

  /** @returns null where there is no python3, or no numpy in it */
  static async start(): Promise<Numpy | null> {
    const env = { ...process.env, ...KEEP_MEMORY }
    const child = spawn('python3', ['-c', PROGRAM], { stdio: ['pipe', 'pipe', 'ignore'], env })
    // What can't be started, or has ended, gives no line.
    child.on('error', () => {})
    child.stdin.on('error', () => {})
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const { done, value } = await lines.next()
    return done ? null : new Numpy(value, child, lines)
  }

  async ask(kernel: string, ms: number, path: string, dtype: string): Promise<NumpyAnswer> {
    this.#child.stdin.write(`${[kernel, ms, path, dtype].join('\t')}\n`)
    const { done, value } = await this.#lines.next()
    if (done) return { ms: Number.NaN, numbers: [] }
    const [median = Number.NaN, ...numbers] = value.split('\t').map(Number)
    return { ms: median, numbers }
  }

  end(): void {
    this.#child.kill()
  }
}
