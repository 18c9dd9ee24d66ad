/** What golden-bits.json holds. */

import { join } from 'node:path'
import { createTrial, type ScanOptions } from '#dist/index.js'
import { bitsOf, ruleBits, scanBits, textBits, valueBits } from './bits.js'
import { fixtureTrials, ROOT } from './golden.js'

export interface GoldenBits {
  readonly rows: number
  readonly scan: string
  readonly csv: string
  readonly jsonl: string
  readonly values: string
  readonly rules: string
}

/** By the trial's name. */
export async function goldenBits(
  options: Pick<ScanOptions, 'threads' | 'memory'> = {},
): Promise<Record<string, GoldenBits>> {
  const all: Record<string, GoldenBits> = {}
  for (const { name, directory } of fixtureTrials().sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const trial = await createTrial(directory, { requireCollections: false })
    const rows = await scanBits(trial, options)
    // Rows with errors name files, which lie elsewhere on another machine.
    const isWhole = rows.length > 0 && !(await hasErrors(trial.scan(options)))
    all[name] = {
      rows: rows.length,
      scan: bitsOf(rows),
      csv: isWhole ? await textBits(trial, 'csv', options) : '',
      jsonl: isWhole ? await textBits(trial, 'jsonl', options) : '',
      values: bitsOf(await valueBits(trial, options)),
      rules: bitsOf(await ruleBits(trial, options)),
    }
    await trial.close()
  }
  return all
}

async function hasErrors(rows: AsyncIterable<{ readonly error?: unknown }>): Promise<boolean> {
  for await (const { error } of rows) if (error) return true
  return false
}

export const GOLDEN_BITS = join(ROOT, 'fixtures/golden-bits.json')
