/** numpy, in a Python of its own (python/kernels.py, bench/peers/reductions.py, differences.py, checkpoints.py); and torch. */

import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { KEEP_MEMORY, NUMPY_KERNELS } from '#dist/cli/bench/numpy.js'
import type { Contender, Judge } from '../definition.js'
import { Answerer, type Command } from '../processes.js'
import { kernel } from './answers.js'

/** One thread, where a BLAS would take several. */
const ENVIRONMENT = { ...KEEP_MEMORY, OPENBLAS_NUM_THREADS: '1' }

export const NAME = 'numpy'

interface Python {
  readonly python: string
  readonly version: string
  /** `numpy 2.4.6` */
  readonly title: string
}

function having(module: string): Python[] {
  return ['/usr/bin/python3', 'python3'].flatMap(python => {
    const script = `import ${module}; print(${module}.__version__)`
    const { status, stdout } = spawnSync(python, ['-c', script], { encoding: 'utf8' })
    const version = stdout.trim()
    return status === 0 ? [{ python, version, title: `${module} ${version}` }] : []
  })
}

const all = having(NAME)
const first = all[0]

/** The Python with the newest numpy that there is. */
export const newest = all.toSorted((a, b) => b.version.localeCompare(a.version, 'en', { numeric: true }))[0]

let torch: readonly Python[] | undefined

/** numpy's version; undefined where there is none. */
export const version = first?.version

const children = new Map<string, Answerer>()

/** A contender, where there is a numpy. numpy reduces float32 in float32: its answers are that far off. */
export function contenders(
  label: string,
  request: readonly (string | number)[],
  wrong: Judge<Float64Array>,
  on: Python | undefined = first,
): Contender[] {
  if (on === undefined) return []
  const start = () => {
    const child = children.get(on.python) ?? new Answerer([on.python, NUMPY_KERNELS], ENVIRONMENT, { greets: true })
    children.set(on.python, child)
    return child
  }
  return [kernel(label === '' ? NAME : `${NAME}, ${label}`, start, request, wrong)]
}

/** The script over a whole trial. */
export function script(dir: string, out: string, processes: number): Command | undefined {
  return first && [first.python, peer('reductions.py'), dir, out, '--processes', `${processes}`]
}

/** The script over two trials, or two checkpoints. */
export function differences(
  a: string,
  b: string,
  out: string,
  processes: number,
  on: Python | undefined = first,
): Command | undefined {
  return on && [on.python, peer('differences.py'), a, b, out, '--processes', `${processes}`]
}

/** A plain script for checkpoints. @param words for checkpoints.py */
export function checkpoints(
  module: 'numpy' | 'torch',
  ...words: readonly string[]
): { readonly engine: string; readonly command: Command } | undefined {
  if (module === 'torch') torch ??= having(module)
  const on = module === 'torch' ? torch?.[0] : newest
  return on && { engine: on.title, command: [on.python, peer('checkpoints.py'), module, ...words] }
}

function peer(name: string): string {
  return fileURLToPath(new URL(`../peers/${name}`, import.meta.url))
}
