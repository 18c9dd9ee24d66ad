/** Writes dist/bundle: the package on Node.js, in few files that load fast. */

import { chmodSync, readFileSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build, transform } from 'esbuild'
import { rollup } from 'rollup'
import { classNames, keepClassNames, writeLicenses } from './bundled.mjs'

const OUT = 'dist/bundle'
const packages = Object.keys(JSON.parse(readFileSync('package.json', 'utf8')).dependencies)

/** A module that is made one file with the package that it alone imports, whose many files take long to open. */
const WITH_PACKAGE = /[\\/]dist[\\/](table[\\/]parquet[\\/]parquet|serve[\\/]http|view[\\/]samples[\\/]umap)\.js$/
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

rmSync(OUT, { recursive: true, force: true })

// By Rollup, which leaves out what a command doesn't use of the modules it imports from. With esbuild, `scan` loads all rules.
const shared = await rollup({
  input: { index: 'dist/index.js', main: 'dist/cli/main.js' },
  external: id => id.startsWith('node:') || packages.some(name => `${id}/`.startsWith(`${name}/`)),
  // Packages that are loaded when they are needed stay in files of their own.
  treeshake: { moduleSideEffects: id => packages.includes(id) },
  logLevel: 'warn',
  plugins: [
    {
      name: 'bundled',
      // 7 of its 200 kB are used: they load in 5 ms less.
      resolveId: id => (id === 'valibot' ? fileURLToPath(import.meta.resolve(id)) : null),
      async load(id) {
        if (!WITH_PACKAGE.test(id)) return null
        const { outputFiles, metafile } = await build({
          entryPoints: [id],
          bundle: true,
          plugins: [withoutOthers],
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
      renderChunk: async text => (await transform(text, { minify: true, format: 'esm', target: 'node20' })).code,
    },
  ],
})
const { output } = await shared.write({
  dir: OUT,
  entryFileNames: '[name].js',
  chunkFileNames: '[name]-[hash].js',
  hoistTransitiveImports: false,
  // A file takes as long to open as some kilobytes to parse.
  experimentalMinChunkSize: 8_000,
})
chmodSync(`${OUT}/main.js`, 0o755)
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
  banner: { js: "const moduleUrl = require('node:url').pathToFileURL(__filename).href" },
})
