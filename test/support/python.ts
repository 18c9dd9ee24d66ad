/** Debian's Python, with trialscan.py and the command that was built. */

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { CLI } from '../cli/run.js'
import { isRequired, ROOT } from './golden.js'

export const PYTHON = '/usr/bin/python3'
export const TRIALSCAN_PY = join(ROOT, 'python/trialscan.py')

/** True if a module is there, or has to be. */
export function hasModule(name: 'torch' | 'pandas' | 'numpy'): boolean {
  return isRequired(name) || spawnSync(PYTHON, ['-c', `import ${name}`]).status === 0
}

/** The directory of pyarrow, if it is in none that Python searches. */
export const PYARROW = process.env.TRIALSCAN_PYARROW ?? ''

export function hasPyarrow(): boolean {
  return python('import pyarrow', { path: [PYARROW] }).status === 0
}

/** Runs a script. @param path of modules, beside trialscan.py */
export function python(
  script: string,
  { args = [], env = {}, cwd = ROOT, path = [] as readonly string[] } = {} as {
    readonly args?: readonly string[]
    readonly env?: Readonly<Record<string, string>>
    readonly cwd?: string
    readonly path?: readonly string[]
  },
): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
  const { RANK: _, WORLD_SIZE: __, ...own } = process.env
  return spawnSync(PYTHON, ['-B', '-c', script, ...args], {
    cwd,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    env: {
      ...own,
      // Spaces in the path stay one word.
      TRIALSCAN: `'${process.execPath}' '${CLI}'`,
      PYTHONPATH: [...path, join(ROOT, 'python')].join(':'),
      OMP_NUM_THREADS: '1',
      ...env,
    },
  })
}
