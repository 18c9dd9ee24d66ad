/** The campaign itself: its counters change nothing but what they count, and its loop runs. */

import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { ROOT } from '../support/golden.js'
import { whenLong } from '../support/part.js'
import { Counters, instrument } from './campaign/instrument.js'
import { LIMIT_MS } from './run.js'

const directory = join(ROOT, '.fuzz', `test-${process.pid}`)

afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** Runs the body of a function of n, with counters; gives its result and which of them counted. */
function run(body: string, n: number): { readonly result: unknown; readonly counts: number[] } {
  const counters = new Counters()
  const source = instrument(`return (n => { ${body} })(n)`, '', counter => `counts[${counter}]++`, counters)
  const counts = Array<number>(counters.count).fill(0)
  const result: unknown = new Function('n', 'counts', source)(n, counts)
  return { result, counts }
}

describe('a source with counters', () => {
  it.each([
    ['if (n > 1) return "many"; else if (n === 1) return "one"; else return "none"', 'many', 'one', 'none'],
    ['let s = 0; for (let i = 0; i < n; i++) s += i; while (s > 100) s--; return s', 1, 0, 0],
    ['switch (n) { case 2: case 1: return "few"; default: return "none" }', 'few', 'few', 'none'],
    ['return n > 0 ? (n > 1 ? { a: n } : [n]) : n || (n ?? 3) || (n && 4) || "x"', { a: 2 }, [1], 'x'],
    ['try { if (n) throw n; return 0 } catch (e) { return e + 1 }', 3, 2, 0],
    ['const f = x => x ? [y => y + x][0](1) : -1; return f(n)', 3, 2, -1],
  ])('gives what it gives without: %s', (body, ...results) => {
    const runs = [2, 1, 0].map(n => run(body, n))
    expect(runs.map(({ result }) => result)).toEqual(results)
    // And tells the ways apart.
    expect(new Set(runs.map(({ counts }) => counts.join())).size).toBeGreaterThan(1)
  })
})

it.each(whenLong)(
  'a campaign of some inputs takes ways through the readers that its seeds do not take',
  { timeout: LIMIT_MS },
  async () => {
    const script = join(import.meta.dirname, 'campaign/main.ts')
    const options = ['--inputs', '2000', '--seed', '1', '--target', 'record', '--directory', directory]
    const places = ['--finds', join(directory, 'finds')]
    // Which of its inputs are new depends on the readers: a fault that it comes upon is a find, and not a failure of the campaign.
    const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', script, ...options, ...places], {
      timeout: LIMIT_MS,
    }).catch((error: { readonly stdout: string }) => error)
    const [, kept, inScript, inCore] = /([\d,]+) inputs kept, counters (\d+) \+ (\d+), \d+ finds/.exec(stdout) ?? []
    expect(Number(kept)).toBeGreaterThan(50)
    expect(Number(inScript)).toBeGreaterThan(10)
    expect(Number(inCore)).toBeGreaterThan(300)
  },
)
