/** What both bundles, Node.js's and the browser's, do with the files they are made of. */

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'

/** The beginning of a class, on a line of its own; rules extend what a call with their parameters returns. */
const CLASS =
  /^((?:export )?class (\w+)(?:<[^>\n]*>)?(?: extends \w+(?:<\w+>|\([^]*?\))?)?(?: implements [^{\n]+)? \{)$/gm

/** A source in which classes keep their names, by which rules and errors are called, though all other names are shortened. */
export const keepClassNames = text => text.replace(CLASS, "$1 static name = '$2';")

/** `keepClassNames` as a plugin for esbuild. */
export const classNames = {
  name: 'class-names',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/](?:dist[\\/].*\.js|src[\\/].*\.ts)$/ }, async ({ path }) => ({
      contents: keepClassNames(await readFile(path, 'utf8')),
      loader: extname(path) === '.ts' ? 'ts' : 'js',
    }))
  },
}

/** Who made the packages of which `files` are in a bundle, and their terms. */
export function licensesOf(files) {
  const folders = new Set(files.flatMap(file => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []))
  const texts = [...folders].sort().map(folder => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    const text = readdirSync(folder).find(file => /^licen[cs]e/i.test(file))
    return `${name} ${version}, ${license}\n${text === undefined ? '' : `\n${readFileSync(join(folder, text), 'utf8')}`}`
  })
  return texts.join(`\n${'-'.repeat(80)}\n\n`)
}

/** Writes LICENSES.txt beside a bundle. */
export function writeLicenses(directory, files) {
  writeFileSync(join(directory, 'LICENSES.txt'), licensesOf(files))
}
