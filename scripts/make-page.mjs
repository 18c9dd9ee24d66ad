/** Writes dist/view/page-source.js: the page of reports (src/view/page) as two texts. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { licensesOf } from './bundled.mjs'

const root = join(import.meta.dirname, '..')
const { outputFiles, metafile } = await build({
  absWorkingDir: root,
  entryPoints: ['src/view/page/main.ts', 'src/view/page/style.css'],
  outdir: 'dist/view/page',
  bundle: true,
  format: 'iife',
  platform: 'browser',
  target: ['chrome103', 'firefox113', 'safari16.4'],
  minify: true,
  charset: 'utf8',
  legalComments: 'none',
  metafile: true,
  write: false,
  logLevel: 'warning',
})
const textOf = extension => outputFiles.find(({ path }) => path.endsWith(extension)).text.trim()
// No text ends the element that it is put into.
const script = textOf('.js').replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--')
// A comment ends at two hyphens.
const licenses = licensesOf(Object.keys(metafile.inputs)).replaceAll('--', '==')
// For make-bundle.mjs, which lists whose files are in the package.
writeFileSync(join(root, 'dist/view/page/inputs.json'), JSON.stringify(Object.keys(metafile.inputs)))
writeFileSync(
  join(root, 'dist/view/page-source.js'),
  `export const SCRIPT = ${JSON.stringify(script)}\nexport const STYLE = ${JSON.stringify(textOf('.css'))}\nexport const LICENSES = ${JSON.stringify(licenses)}\n`,
)
