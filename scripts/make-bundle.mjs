/** Writes dist/bundle: the package on Node.js, in files that are loaded when something of them is needed, each with a source map. */

import { chmodSync, copyFileSync, readFileSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'
import { writeBom, writeLicenses } from './bundled.mjs'

const OUT = 'dist/bundle'
const packages = Object.keys(JSON.parse(readFileSync('package.json', 'utf8')).dependencies)

const common = {
  bundle: true,
  // What is installed beside the package is loaded from there; other packages are in the files that use them.
  external: packages.flatMap(name => [name, `${name}/*`]),
  platform: 'node',
  target: 'node20',
  sourcemap: true,
  sourcesContent: false,
  legalComments: 'none',
  metafile: true,
  outdir: OUT,
  logLevel: 'warning',
}

rmSync(OUT, { recursive: true, force: true })

const options = {
  ...common,
  format: 'esm',
  // A module that is imported is loaded, also where nothing of it is used.
  ignoreAnnotations: true,
  splitting: true,
  entryPoints: {
    index: 'dist/index.js',
    tfjs: 'dist/tfjs.js',
    main: 'dist/cli/main.js',
    'embed-thread': 'dist/view/samples/embed-thread.js',
  },
  // Bundled packages of CommonJS require modules of Node.js.
  banner: { js: "import { createRequire as requireFor } from 'node:module'\nconst require = requireFor(import.meta.url)" },
}

/**
 * The module that opens trials. Each module that is imported late imports this one, too: esbuild puts modules together that the same
 * entries use, so that all commands on a trial share one file, and a file takes half a millisecond to load.
 */
const TRIAL = join(process.cwd(), 'dist/trial/open.js')
/** Modules that come before a trial, or without one. */
const WITHOUT_TRIAL = /cli[\\/](main|failure)\.js$/

const { inputs } = (await build({ ...options, write: false })).metafile
const late = new Set(
  Object.values(inputs)
    .flatMap(({ imports }) => imports.filter(({ kind, external }) => kind === 'dynamic-import' && !external))
    .map(({ path }) => join(process.cwd(), path)),
)
const modules = await build({
  ...options,
  plugins: [
    {
      name: 'trial-in-one-file',
      setup({ onLoad }) {
        onLoad({ filter: /[\\/]dist[\\/].*\.js$/ }, async ({ path }) =>
          late.has(path) && !WITHOUT_TRIAL.test(path)
            ? { contents: `${await readFile(path, 'utf8')}\nimport ${JSON.stringify(TRIAL)}\n` }
            : null,
        )
      },
    },
  ],
})
chmodSync(`${OUT}/main.js`, 0o755)

// What Piscina loads in a thread, as one file: src/scan/runner/thread-entry.cts says why it is CommonJS.
const thread = await build({
  ...common,
  format: 'cjs',
  entryPoints: ['dist/scan/runner/thread-entry.cjs'],
  outExtension: { '.js': '.cjs' },
  define: { 'import.meta.url': 'fileUrl' },
  banner: { js: "const fileUrl = require('node:url').pathToFileURL(__filename).href" },
})

// The core's calls alone, in two files that share nothing with the others: from the sources, so that enums become numbers.
await build({ ...common, format: 'esm', splitting: true, entryPoints: ['src/kernels.ts'] })

// What runs DuckDB, in a process of its own.
copyFileSync('dist/cli/sql/database-process.cjs', `${OUT}/database-process.cjs`)

const inPage = JSON.parse(readFileSync('dist/view/page/inputs.json', 'utf8'))
const bundled = [...[modules, thread].flatMap(({ metafile }) => Object.keys(metafile.inputs)), ...inPage]
writeLicenses(OUT, bundled)
writeBom(OUT, bundled)
