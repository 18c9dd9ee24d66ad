/** Writes dist/bundle: the package on Node.js, in few files that load fast. */

import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build, transform } from 'esbuild'
import { rollup } from 'rollup'
import { classNames, keepClassNames, writeLicenses } from './bundled.mjs'

const OUT = 'dist/bundle'
/** The URL of a CommonJS file. */
const FILE_URL = "require('node:url').pathToFileURL(__filename).href"
const packages = Object.keys(JSON.parse(readFileSync('package.json', 'utf8')).dependencies)

/** What is made one file with the packages that it imports, whose many files take long to open: a module, or the package alone. */
const WITH_PACKAGE =
  /[\\/]dist[\\/](table[\\/]parquet[\\/]parquet|serve[\\/]http|view[\\/]samples[\\/]umap)\.js$|[\\/]node_modules[\\/](commander[\\/]esm\.mjs|picocolors[\\/]picocolors\.js)$/
/** Packages that are part of the files that use them. Of valibot 7 of 200 kB are used; the others load in one file with the command line. */
const BUNDLED = ['valibot', 'commander', 'picocolors']
const inlined = []

/** Leaves other modules to Rollup, so that there is one of each. */
const withoutOthers = {
  name: 'without-others',
  setup({ onResolve }) {
    onResolve({ filter: /^\.\.\/\.\.\// }, ({ path, importer }) =>
      importer.includes('node_modules') ? null : { path, external: true },
    )
  },
}

/** Commander runs commands that are programs of their own, of which there are none: what it would start them with takes 4 ms. */
const withoutPrograms = {
  name: 'without-programs',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:child_process$/ }, ({ importer }) =>
      importer.includes('commander') ? { path: 'none', namespace: 'none' } : null,
    )
    onLoad({ filter: /./, namespace: 'none' }, () => ({ contents: 'module.exports = {}' }))
  },
}

/** Modules of Node.js that take long to load, and that most commands have no use for. */
const SELDOM = ['node:crypto', 'node:os', 'node:v8', 'node:zlib']

/** A file in which they are loaded where they are used, and not with the file. */
function loadedLate(text) {
  const loaded = text.matchAll(/^var (\w+) = require\('(node:[\w/]+)'\);\n/gm)
  for (const [line, variable, name] of [...loaded].filter(([, , name]) => SELDOM.includes(name))) {
    const used = RegExp(`\\b${variable}\\b(?!['-])`, 'g')
    text = text.replace(line, '').replace(used, `require('${name}')`)
  }
  return text
}

rmSync(OUT, { recursive: true, force: true })

// By Rollup, which leaves out what a command doesn't use of the modules it imports from. With esbuild, `scan` loads all rules.
const shared = await rollup({
  input: { index: 'dist/index.js', tfjs: 'dist/tfjs.js', main: 'dist/cli/main.js' },
  external: id => id.startsWith('node:') || packages.some(name => `${id}/`.startsWith(`${name}/`)),
  // Packages that are loaded when they are needed stay in files of their own.
  treeshake: { moduleSideEffects: id => packages.includes(id) },
  logLevel: 'warn',
  plugins: [
    {
      name: 'bundled',
      resolveId: id => (BUNDLED.includes(id) ? fileURLToPath(import.meta.resolve(id)) : null),
      resolveImportMeta: property => (property === 'url' ? FILE_URL : null),
      async load(id) {
        if (!WITH_PACKAGE.test(id)) return null
        const { outputFiles, metafile } = await build({
          entryPoints: [id],
          bundle: true,
          plugins: [withoutOthers, withoutPrograms],
          format: 'esm',
          platform: 'node',
          target: 'node20',
          legalComments: 'none',
          metafile: true,
          write: false,
          logLevel: 'warning',
        })
        inlined.push(...Object.keys(metafile.inputs))
        return outputFiles[0].text
      },
      transform: text => ({ code: keepClassNames(text), map: null }),
      renderChunk: async text => (await transform(loadedLate(text), { minify: true, format: 'cjs', target: 'node20' })).code,
    },
  ],
})
// CommonJS: each file of it loads in a millisecond less than an ES module, and the first in four.
const { output } = await shared.write({
  dir: OUT,
  format: 'cjs',
  exports: 'named',
  entryFileNames: '[name].cjs',
  chunkFileNames: '[name]-[hash].cjs',
  hoistTransitiveImports: false,
  // A file takes as long to open as some kilobytes to parse.
  experimentalMinChunkSize: 8_000,
})
chmodSync(`${OUT}/main.cjs`, 0o755)
// Scripts that name the file by its former name still find it.
writeFileSync(`${OUT}/main.js`, "#!/usr/bin/env node\nimport './main.cjs'\n", { mode: 0o755 })
// The same for those who import it: one of each class, whoever loads them.
for (const entry of ['index', 'tfjs']) {
  const { exports } = output.find(({ name, isEntry }) => isEntry && name === entry)
  writeFileSync(`${OUT}/${entry}.js`, `export {\n${exports.map(name => `  ${name},\n`).join('')}} from './${entry}.cjs'\n`)
}
const inPage = JSON.parse(readFileSync('dist/page/inputs.json', 'utf8'))
writeLicenses(OUT, [...output.flatMap(({ moduleIds }) => moduleIds), ...inlined, ...inPage])

const common = {
  bundle: true,
  external: packages.flatMap(name => [name, `${name}/*`]),
  platform: 'node',
  target: 'node20',
  outdir: OUT,
  entryNames: '[name]',
  minify: true,
  plugins: [classNames],
  logLevel: 'warning',
}
// The core's calls alone, in two files that share nothing with the others: from the sources, so that enums become numbers.
await build({ ...common, format: 'esm', splitting: true, entryPoints: ['src/kernels.ts'] })
// CommonJS: see src/runner/thread-entry.cts.
await build({
  ...common,
  format: 'cjs',
  outExtension: { '.js': '.cjs' },
  entryPoints: ['dist/runner/thread-entry.cjs'],
  define: { 'import.meta.url': 'moduleUrl' },
  banner: { js: `const moduleUrl = ${FILE_URL}` },
})
