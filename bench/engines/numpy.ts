/** numpy, in a Python of its own (bench/peers/kernels.py, reductions.py, differences.py). */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Contender, Judge } from '../definition.js'
import { Answerer, type Command } from '../processes.js'
import { kernel } from './answers.js'

export const NAME = 'numpy'

const found = ['/usr/bin/python3', 'python3'].flatMap(python => {
  const { status, stdout } = spawnSync(python, ['-c', 'import numpy; print(numpy.__version__)'], { encoding: 'utf8' })
  return status === 0 ? [{ python, version: stdout.trim() }] : []
})[0]

/** numpy's version; undefined where there is none. */
export const version = found?.version

/** glibc gives what numpy frees back to the system at once, and the next array is page faults. Not so here. */
const KEEP_MEMORY = { MALLOC_MMAP_THRESHOLD_: '1073741824', MALLOC_TRIM_THRESHOLD_: '4294967296' }

let child: Answerer | undefined

/** A contender, where there is a numpy. numpy reduces float32 in float32: its answers are that far off. */
export function contenders(
  label: string,
  request: readonly (string | number)[],
  wrong: Judge<Float64Array>,
): Contender[] {
  if (found === undefined) return []
  const start = () => {
    child ??= new Answerer([found.python, peer('kernels.py')], KEEP_MEMORY)
    return child
  }
  return [kernel(label === '' ? NAME : `${NAME}, ${label}`, start, request, wrong)]
}

/** The script over a whole trial. */
export function script(dir: string, out: string, processes: number): Command | undefined {
  return found && [found.python, peer('reductions.py'), dir, out, '--processes', `${processes}`]
}

/** The script over two trials. */
export function differences(a: string, b: string, out: string, processes: number): Command | undefined {
  return found && [found.python, peer('differences.py'), a, b, out, '--processes', `${processes}`]
}

function peer(name: string): string {
  return fileURLToPath(new URL(`../peers/${name}`, import.meta.url))
}
