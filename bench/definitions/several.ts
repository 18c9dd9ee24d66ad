/** One command over many small trials, beside a program that takes them one by one. */

import { cpSync, existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Case, Definition, Options } from '../definition.js'
import * as ours from '../engines/ours.js'
import { COMMAND, LIBRARY } from '../package.js'
import { scratchPath } from '../scratch.js'
import { processContender } from './cli.js'

const FIXTURE = fileURLToPath(new URL('../../fixtures/trials/mlp-all-zero', import.meta.url))
const ROWS = 60

export const several: Definition = {
  name: 'several',
  measures: 'whole processes from start to exit; files in the page cache, output to a file',
  *cases({ quick }: Options): Generator<Case> {
    const count = quick ? 100 : 1000
    const dir = copies(count)
    const out = (who: string) => scratchPath(`several-${who}.csv`)
    const oneByOne = fileURLToPath(new URL('../children/one-by-one.mjs', import.meta.url))
    const wrong = (who: string) => () => wrongRows(out(who), out('command'), count)
    yield {
      size: `scan of ${count.toLocaleString('en')} trials of ${ROWS} tensors each`,
      records: count * ROWS,
      rounds: 5,
      contenders: [
        processContender(
          `${ours.NAME} scan DIR`,
          [process.execPath, COMMAND, 'scan', dir, '--reductions', 'all', '--format', 'csv', '--out', out('command')],
          wrong('command'),
        ),
        processContender(
          `${ours.NAME}, a program, one by one`,
          [process.execPath, oneByOne, LIBRARY, dir, out('program')],
          wrong('program'),
        ),
      ],
    }
  },
}

/** A directory with a number of copies of a small trial. */
export function copies(count: number): string {
  const dir = scratchPath(`several-${count}`)
  for (let i = 0; i < count; i++) {
    const copy = `${dir}/${String(i).padStart(4, '0')}`
    if (!existsSync(copy)) cpSync(FIXTURE, copy, { recursive: true })
  }
  return dir
}

/** The fault of a table: all of its trials have the rows of the first, and both contenders have the same. */
function wrongRows(path: string, other: string, count: number): string | undefined {
  const text = readFileSync(path, 'utf8')
  const lines = text.trimEnd().split('\n').slice(1)
  if (lines.length !== count * ROWS) return `expected ${count * ROWS} rows, got ${lines.length}`
  const rows = lines.map(line => line.slice(line.indexOf(',')))
  const wrong = rows.findIndex((row, i) => row !== rows[i % ROWS])
  if (wrong >= 0) return `row ${wrong}: expected ${rows[wrong % ROWS]}, got ${rows[wrong]}`
  return text === readFileSync(other, 'utf8') ? undefined : 'expected both to write the same'
}
