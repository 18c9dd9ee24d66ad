/** What fixtures/fuzz keeps of a target: finds, a file each, and inputs that took ways of their own, in the lines of one file. */

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const CORPUS = 'corpus.txt'

/** The names of the files of finds. */
export function findsOf(fixtures: string, target: string): readonly string[] {
  const directory = join(fixtures, 'fuzz', target)
  return existsSync(directory)
    ? readdirSync(directory)
        .filter(name => name.endsWith('.bin'))
        .sort()
    : []
}

export function readFind(fixtures: string, target: string, name: string): Uint8Array {
  return new Uint8Array(readFileSync(join(fixtures, 'fuzz', target, name)))
}

/** The inputs of earlier campaigns that were kept. */
export function readCorpus(fixtures: string, target: string): Uint8Array[] {
  const path = join(fixtures, 'fuzz', target, CORPUS)
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1)
  return lines.map(line => Uint8Array.from(Buffer.from(line, 'base64')))
}

/** Keeps them in place of those that were kept. */
export function writeCorpus(fixtures: string, target: string, inputs: readonly Uint8Array[]): void {
  mkdirSync(join(fixtures, 'fuzz', target), { recursive: true })
  const lines = inputs.map(input => `${Buffer.from(input).toString('base64')}\n`)
  writeFileSync(join(fixtures, 'fuzz', target, CORPUS), lines.join(''))
}
