/** SECURITY.md and docs/trust.md name what shows what they say. */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { corruptions } from '../fixtures/corrupt.js'

const root = join(import.meta.dirname, '..')
const PAGES = ['SECURITY.md', 'docs/trust.md'].map(name => [name, readFileSync(join(root, name), 'utf8')] as const)

/** The cells of all rows of all tables, without their heads. */
function cells(page: string): string[][] {
  const tables = page.split('\n\n').filter(part => part.startsWith('| '))
  return tables.flatMap(table =>
    table
      .trimEnd()
      .split('\n')
      .slice(2)
      .map(row => row.split(' | ').map(cell => cell.replace(/^\| | \|$/g, ''))),
  )
}

describe.each(PAGES)('%s', (_, page) => {
  it('names files that are there', () => {
    const named = [...page.matchAll(/\b(?:test|bench|fixtures)\/[\w/-]+(?:\.\w+)+/g)].map(([path]) => path)
    expect(named.length).toBeGreaterThan(5)
    expect(named.filter(path => !existsSync(join(root, path)))).toEqual([])
  })
})

it('every promise has a test', () => {
  const promises = cells(PAGES[0]![1])
  expect(promises.length).toBeGreaterThan(10)
  for (const [promise, , shown] of promises)
    expect([promise, shown]).toEqual([promise, expect.stringMatching(/test\/\S+\.test\.ts/)])
})

it('every corruption was measured beside smdebug', () => {
  const measured = new Set(cells(PAGES[1]![1]).map(([fault]) => fault))
  const missing = corruptions.filter(({ name, needsUnprivilegedUser }) => !needsUnprivilegedUser && !measured.has(name))
  expect(missing.map(({ name }) => name)).toEqual([])
})
