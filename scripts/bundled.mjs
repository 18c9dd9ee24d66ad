/** Steps that the bundles of Node.js and of the browser have in common. */

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'

export const root = join(import.meta.dirname, '..')

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

/** The names and licences of the packages in a bundle. @param files the paths of its inputs */
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

/**
 * Writes sbom.cdx.json, the bill of materials as CycloneDX: packages that are installed with ours, by the lockfile, and those of which
 * `files` are in a bundle. It says nothing of when and where it was made, so that the same sources give the same bytes.
 */
export function writeBom(directory, files) {
  const { name, version, license } = JSON.parse(readFileSync('package.json', 'utf8'))
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'))
  const folders = new Set(files.flatMap(file => /node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(file)?.[0] ?? []))
  const components = Object.entries(packages)
    .filter(([path, { dev, devOptional }]) => path !== '' && ((!dev && !devOptional) || folders.has(path)))
    .map(([path, locked]) => {
      const packageName = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
      const hash = Buffer.from(locked.integrity.replace('sha512-', ''), 'base64').toString('hex')
      return {
        type: 'library',
        'bom-ref': `${purlOf(packageName, locked.version)}#${path}`,
        name: packageName,
        version: locked.version,
        scope: locked.optional ? 'optional' : 'required',
        hashes: [{ alg: 'SHA-512', content: hash }],
        licenses: [{ license: { id: locked.license } }],
        purl: purlOf(packageName, locked.version),
        properties: [{ name: 'trialscan:bundled', value: String(folders.has(path)) }],
      }
    })
  const component = {
    type: 'library',
    'bom-ref': purlOf(name, version),
    name,
    version,
    licenses: [{ license: { id: license } }],
    purl: purlOf(name, version),
  }
  const bom = { bomFormat: 'CycloneDX', specVersion: '1.5', version: 1, metadata: { component }, components }
  writeFileSync(join(directory, 'sbom.cdx.json'), `${JSON.stringify(bom, null, 1)}\n`)
}

/** The URL of a package of npm. */
function purlOf(name, version) {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`
}

/** Modules of Node.js that src/web/platform replaces, as far as they are used. */
const PLATFORM = /^node:(timers\/promises|async_hooks|os|path|path\/posix|url|crypto|child_process)$/

const inBrowser = {
  name: 'in-browser',
  setup({ onResolve, onLoad }) {
    // Messages are read, and none is written.
    onLoad({ filter: /[\\/]protobufjs[\\/]src[\\/]writer(_buffer)?\.js$/ }, () => ({ contents: 'exports._configure = () => {}' }))
    // Histograms, which protobufjs reads here, have no integers of 64 bits.
    onLoad({ filter: /[\\/]long[\\/]umd[\\/]index\.js$/ }, () => ({ contents: 'module.exports = null' }))
    onResolve({ filter: PLATFORM }, () => ({ path: join(root, 'dist/web/platform.js'), sideEffects: false }))
    // What nobody uses of these is left out; test/web/build.test.ts holds that nothing is left.
    onResolve({ filter: /^node:/ }, ({ path }) => ({ path, external: true, sideEffects: false }))
  },
}

/** The options of both browser builds, of the library and of the app. */
export const forBrowser = {
  absWorkingDir: root,
  bundle: true,
  format: 'esm',
  platform: 'browser',
  target: 'es2022',
  minify: true,
  inject: [join(root, 'dist/web/globals.js')],
  pure: ['optionsOf'],
  plugins: [inBrowser, classNames],
  metafile: true,
  legalComments: 'none',
  logLevel: 'warning',
}
