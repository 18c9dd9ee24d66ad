/**
 * A plugin for esbuild: classes keep their names, by which rules and errors are called, though all other names are shortened. The
 * compiler begins a class on a line of its own.
 */

import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'

/** The beginning of a class; rules extend what a call with their parameters returns. */
const CLASS = /^((?:export )?class (\w+)(?:<[^>\n]*>)?(?: extends \w+(?:<\w+>|\([^]*?\))?)?(?: implements [^{\n]+)? \{)$/gm

export const classNames = {
  name: 'class-names',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/](?:dist[\\/].*\.js|src[\\/].*\.ts)$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8')
      return { contents: text.replace(CLASS, "$1 static name = '$2';"), loader: extname(path) === '.ts' ? 'ts' : 'js' }
    })
  },
}
