/** The short form of the soak, and that it finds what is left behind. */

import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { beforeAll, expect, it } from 'vitest'

const root = join(import.meta.dirname, '..')
const program = join(root, 'dist/soak.js')

beforeAll(async () => {
  await build({
    entryPoints: [join(root, 'test/soak.ts')],
    outfile: program,
    bundle: true,
    packages: 'external',
    external: ['#dist/*'],
    platform: 'node',
    format: 'esm',
  })
})

interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

async function soak(...args: string[]): Promise<Ended> {
  const command = ['--expose-gc', program, '--seconds', '0', ...args]
  try {
    return { code: 0, ...(await promisify(execFile)(process.execPath, command)) }
  } catch (error) {
    return error as unknown as Ended
  }
}

it('leaves nothing behind', { timeout: 300_000 }, async () => {
  const { code, stdout, stderr } = await soak()
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toMatch(/^12 rounds in \d+ s: 268 answers as in the first round, \d\.\d GB read$/m)
  expect(stdout).not.toContain('GREW')
})

it('finds files, objects, buffers and timers that are left', { timeout: 300_000 }, async () => {
  const { code, stderr } = await soak('--wrong', 'file,heap,buffer,timer')
  expect(code).toBe(1)
  const grown = stderr.slice('not flat: '.length).trim().split(', ')
  // Memory that is resident grows with what is in it, but not in any given time.
  expect(grown.filter(name => name !== 'resident memory')).toEqual([
    'heap',
    'buffers',
    'handles',
    ...(process.platform === 'linux' ? ['open files'] : []),
  ])
})

it('finds an answer that changes', { timeout: 300_000 }, async () => {
  const { code, stderr } = await soak('--wrong', 'answer')
  expect(code).toBe(1)
  expect(stderr).toContain('the answer is not what it was in the first round')
})
