/** Writes dist/bundle: the package on Node.js, in few files that load fast. */

import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, transform } from 'esbuild'
import { rollup } from 'rollup'
import { classNames, keepClassNames, writeBom, writeLicenses } from './bundled.mjs'

const OUT = 'dist/bundle'
/** The URL of a CommonJS file. */
const FILE_URL = "require('node:url').pathToFileURL(__filename).href"
const packages = Object.keys(JSON.parse(readFileSync('package.json', 'utf8')).dependencies)

/** What is made one file with the packages that it imports, whose many files take long to open: a module, or the package alone. */
const WITH_PACKAGE =
  /[\\/]dist[\\/](table[\\/]parquet[\\/]parquet|view[\\/]serve[\\/]http|view[\\/]samples[\\/]umap)\.js$|[\\/]node_modules[\\/](commander[\\/]esm\.mjs|picocolors[\\/]picocolors\.js)$/
/** Packages that are part of the files that use them: one of its own takes 4 ms to be found and loaded. Of valibot 7 of 200 kB are used. */
const BUNDLED = ['@assemblyscript/loader', 'valibot', 'commander', 'picocolors']
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

/**
 * Modules of ours that most commands have no use for, by the file that they are in together: V8 reads a megabyte of code in
 * 40 ms. Each is loaded when something of it is used: never in the midst of a scan, when sockets may have taken all descriptors.
 */
const LATE = {
  s3: /storage\/s3\/(s3-store|listing|requests|errors|body)/,
  patterns: /format\/regex\/(python-regex|pattern|re2)/,
  survey: /scan\/worker\/survey|format\/(event-head|histogram)/,
  measure: /scan\/worker\/(measure|describe|arrays|copy|values|raw-value|task\/(tasks|difference|held))|core\/ulps/,
  tensor:
    /trial\/(tensor|saved-steps|values|summary|follow|fingerprint)|scan\/job\/(tensor-value|value|tensor\/\w+)|kernels\/\w+|scan\/rows\/(one-by-one|record-values|gathered)|scan\/catalog\/(tensor-steps|record-order)/,
  cache: /storage\/local\/(cache|watcher)|scan\/catalog\/(background|load\/index-(cache|stamps))/,
  checkpoints: /format\/checkpoint\/.*|scan\/catalog\/checkpoint\/.*|storage\/composed\/.*/,
  where: /table\/(where|operators|tokens|source|columns)/,
  diff: /compare\/(diff|aliases|quantised\/\w+|comparison|pairing|joined|bisect|noise|trend|suggest|tensor-map|records|wording|non-finite\/\w+)/,
  fleet: /fleet\/(plan|estimate|shard|merge)/,
  repair: /integrity\/repair\/.*/,
  verify: /integrity\/verify\/(?!problem\.).*/,
  judging: /rules\/(evaluate|meant-steps|outcome|config|invoke|action\/action-json)|view\/(judged|overview)/,
  steps: /scan\/catalog\/step-text/,
  questions: /trial\/measure\/(?!measure\.).*|scan\/job\/(plan\/measure-plan|allclose)/,
  tables: /table\/(group|table|schema)/,
  reports: /view\/(report|collect|skeleton|columns|ridges|thinning|differences|packing|data|samples\/(classes|embedding|embed|projections|elements))/,
  serve: /view\/serve\/(serve|served-trial|kept-columns|access)/,
  write: /write\/(?!writer).*|format\/array\/.*|storage\/destination/,
  commands: /cli\/options\/(rules|fleet|view|files|tensorboard|tables|record|bench)/,
  page: /view\/page-source/,
  picture: /cli\/format\/view\/picture/,
  colors: /picocolors\/picocolors/,
}
const late = Object.entries(LATE).map(([name, modules]) => [`late-${name}`, RegExp(`/(dist|node_modules)/(${modules.source})\\.js$`)])

/** What all commands have in common. */
const COMMANDS = /commander|\/dist\/(cli\/(options\/(options|arguments)|format\/formats|exit|version))\.js$/
/** Modules that are always loaded with all that they import: by each thread, and to open a trial. */
const TOGETHER = { core: ['scan/runner/thread'], trial: ['trial/open', 'trial/find'] }
const together = {}

/** All that a module imports, and what that imports. */
function importsOf(id, { getModuleInfo }, found = new Set()) {
  if (found.has(id)) return found
  found.add(id)
  for (const imported of getModuleInfo(id).importedIds) importsOf(imported, { getModuleInfo }, found)
  return found
}

/** The file that a module is to be in; undefined: Rollup finds one. */
function fileOf(id, graph) {
  const [name] = late.find(([, modules]) => modules.test(id)) ?? []
  if (name !== undefined) return name
  if (COMMANDS.test(id)) return 'commands'
  return Object.keys(TOGETHER).find(name => {
    together[name] ??= new Set(TOGETHER[name].flatMap(root => [...importsOf(join(import.meta.dirname, `../dist/${root}.js`), graph)]))
    return together[name].has(id) && !graph.getModuleInfo(id).isEntry
  })
}

/** A file in which they are loaded where they are used, and not with the file. @param isLate which files are */
function loadedLate(text, isLate) {
  for (const [line, variable, name] of text.matchAll(/^var (\w+) = require\('([^']+)'\);\n/gm)) {
    const used = RegExp(`\\b${variable}\\b(?!['-])`, 'g')
    if (SELDOM.includes(name)) text = text.replace(line, '').replace(used, `require('${name}')`)
    else if (isLate(name)) {
      const load = `let ${variable}$;\nconst ${variable}_ = () => (${variable}$ ??= require('${name}'));\n`
      // `new late().Class()` would be of `late`.
      text = text.replace(RegExp(`\\bnew (${variable}\\.\\w+)`, 'g'), 'new ($1)')
      text = text.replace(line, '').replace(used, `${variable}_()`).replace("'use strict';\n", `$&\n${load}`)
    }
  }
  // Calls of the public API that do nothing before they are made.
  return text.replace(/^exports\.(\w+) = (late\w+_\(\)\.\w+);$/gm, (whole, name, call) =>
    isCall(api[name]) ? `exports.${name} = function ${name}(...given) { return ${call}(...given); };` : whole,
  )
}

const api = { ...(await import('../dist/index.js')), ...(await import('../dist/tfjs.js')) }
const isCall = value => typeof value === 'function' && !/^class\b/.test(Function.prototype.toString.call(value))

rmSync(OUT, { recursive: true, force: true })

// By Rollup, which leaves out what a command doesn't use of the modules it imports from. With esbuild, `scan` loads all rules.
const shared = await rollup({
  input: { index: 'dist/index.js', tfjs: 'dist/tfjs.js', cli: 'dist/cli/main.js', thread: 'dist/scan/runner/thread.js' },
  external: id => id.startsWith('node:') || packages.some(name => `${id}/`.startsWith(`${name}/`)),
  // Packages that are loaded when they are needed stay in files of their own.
  treeshake: { moduleSideEffects: id => packages.includes(id) },
  // Files in a circle are no harm where one of them is loaded late.
  onLog: (level, log, handle) => log.code === 'CIRCULAR_CHUNK' || level === 'info' || handle(level, log),
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
      async renderChunk(text, { name }, __, { chunks }) {
        const isLate = name => chunks[name.replace('./', '')]?.name.startsWith('late-')
        text = loadedLate(text.replace(/^#!.*\n/, ''), isLate).replace(/\bimport\(/g, "require('./import.cjs')(")
        return (await transform(text, { minify: true, format: 'cjs', target: 'node20' })).code
      },
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
  manualChunks: fileOf,
  onlyExplicitManualChunks: true,
  // A file takes as long to open as some kilobytes to parse.
  experimentalMinChunkSize: 8_000,
})
const minified = async text => (await transform(text, { minify: true, format: 'cjs', target: 'node20' })).code
writeFileSync(`${OUT}/main.cjs`, "#!/usr/bin/env node\nrequire('./cli.cjs')\n", { mode: 0o755 })
writeFileSync(`${OUT}/import.cjs`, 'module.exports = specifier => import(specifier)\n')
// What Piscina loads in a thread.
const entry = readFileSync('dist/scan/runner/thread-entry.cjs', 'utf8')
const ofBundle = entry.replace(
  "import('./thread.js')",
  "Promise.resolve().then(() => require('./thread.cjs'))",
)
writeFileSync(`${OUT}/thread-entry.cjs`, await minified(ofBundle))
// What runs DuckDB, in a process of its own.
writeFileSync(`${OUT}/database-process.cjs`, await minified(readFileSync('dist/cli/sql/database-process.cjs', 'utf8')))
// The same for those who import it: one of each class, whoever loads them.
for (const entry of ['index', 'tfjs']) {
  const { exports } = output.find(({ name, isEntry }) => isEntry && name === entry)
  writeFileSync(`${OUT}/${entry}.js`, `export {\n${exports.map(name => `  ${name},\n`).join('')}} from './${entry}.cjs'\n`)
}
const inPage = JSON.parse(readFileSync('dist/view/page/inputs.json', 'utf8'))
const bundled = [...output.flatMap(({ moduleIds }) => moduleIds), ...inlined, ...inPage]
writeLicenses(OUT, bundled)
writeBom(OUT, bundled)

// The core's calls alone, in two files that share nothing with the others: from the sources, so that enums become numbers.
await build({
  bundle: true,
  external: packages.flatMap(name => [name, `${name}/*`]),
  platform: 'node',
  target: 'node20',
  outdir: OUT,
  minify: true,
  plugins: [classNames],
  logLevel: 'warning',
  format: 'esm',
  splitting: true,
  entryPoints: ['src/kernels.ts'],
})
