/** C as the limit (bench/peers/limits.c), compiled for this machine where it has a compiler. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Contender, Judge } from '../definition.js'
import { Answerer, type Command } from '../processes.js'
import { scratchPath } from '../scratch.js'
import { kernel } from './answers.js'

export const NAME = 'C'

const FLAGS = ['-O3', '-march=native', '-pthread']

/** The program; undefined without a compiler. */
const program = compile()

/** The compiler's name and version; undefined where there is none. */
export const compiler = program && spawnSync('cc', ['--version'], { encoding: 'utf8' }).stdout.split('\n')[0]

/** True if the CPU has the instruction for the checksum. */
export const hasCrc32 = program !== undefined && process.arch === 'x64'

function compile(): string | undefined {
  const source = fileURLToPath(new URL('../peers/limits.c', import.meta.url))
  const path = scratchPath('limits')
  const { status } = spawnSync('cc', [...FLAGS, source, '-o', path, '-lm'], { stdio: ['ignore', 'ignore', 'inherit'] })
  return status === 0 ? path : undefined
}

let child: Answerer | undefined

/** A contender, where there is a compiler. */
export function contenders(
  label: string,
  request: readonly (string | number)[],
  wrong: Judge<Float64Array>,
): Contender[] {
  if (program === undefined) return []
  const start = () => {
    child ??= new Answerer([program])
    return child
  }
  return [kernel(label === '' ? NAME : `${NAME}, ${label}`, start, request, wrong)]
}

/** A process that does nothing but read the files of a directory. */
export function reader(dir: string, threads: number): Command | undefined {
  return program === undefined ? undefined : [program, 'read', dir, `${threads}`]
}
