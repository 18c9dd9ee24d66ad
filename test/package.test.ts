/**
 * What is published, and what it brings along. The package is packed in a copy of the tree, without build products, as a
 * release would be, and then used from a directory that has nothing but the packages it depends on.
 */

import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { PLAIN_TRIAL } from '../fixtures/corrupt.js'
import { whenLong } from './support/part.js'
import { scratchDirectory } from './support/scratch.js'

const root = join(import.meta.dirname, '..')
const modules = realpathSync(join(root, 'node_modules'))
const scratch = scratchDirectory('package')

interface Manifest {
  readonly name: string
  readonly version: string
  readonly license?: string
  readonly scripts?: Readonly<Record<string, string>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

const readJson = <T>(path: string): T => JSON.parse(readFileSync(path, 'utf8')) as T
const manifest = readJson<Manifest>(join(root, 'package.json'))

async function run(command: string, args: readonly string[], cwd: string): Promise<string> {
  // A package manager that runs the tests has put its settings into the environment; they are not the user's.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('npm_')))
  const { stdout } = await promisify(execFile)(command, args, { cwd, env, maxBuffer: 1 << 26 })
  return stdout
}

/** A copy of the tree without what is built, and without the trials among the fixtures. */
function copyTree(name: string): string {
  const to = join(scratch, name)
  const left = new Set(['node_modules', 'dist', 'build', '.git', 'fixtures/trials', 'fixtures/generated', 'coverage'])
  cpSync(root, to, {
    recursive: true,
    filter: from => !left.has(from.slice(root.length + 1).replaceAll('\\', '/')),
  })
  symlinkSync(modules, join(to, 'node_modules'))
  return to
}

const sha256 = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex')

// ------------------------------------------------------------------------------------------------------------ the pack

interface Packed {
  readonly filename: string
  readonly size: number
  readonly unpackedSize: number
  readonly files: readonly { readonly path: string; readonly size: number }[]
}

describe.each(whenLong)('the package', () => {
  let packed: Packed
  let paths: string[]
  /** A user's directory, with the package in its node_modules. */
  const user = join(scratch, 'user')
  const installed = join(user, 'node_modules/trialscan')

  beforeAll(async () => {
    const tree = copyTree('tree')
    // What an earlier build has left must not be published.
    mkdirSync(join(tree, 'dist/bundle'), { recursive: true })
    writeFileSync(join(tree, 'dist/bundle/chunk-OLD.js'), '')
    mkdirSync(join(tree, 'build'))
    writeFileSync(join(tree, 'build/release.wasm'), 'not made from the source')
    const out = await run('npm', ['pack', '--json', '--offline', '--pack-destination', scratch], tree)
    // Before the JSON comes what the scripts print.
    packed = (JSON.parse(out.slice(out.indexOf('[\n'))) as Packed[])[0]!
    paths = packed.files.map(({ path }) => path).sort()

    mkdirSync(installed, { recursive: true })
    await run('tar', ['-xzf', join(scratch, packed.filename), '--strip-components=1', '-C', installed], scratch)
    for (const name of [...Object.keys(manifest.dependencies), '@types/node']) {
      const link = join(user, 'node_modules', name)
      mkdirSync(dirname(link), { recursive: true })
      symlinkSync(join(modules, name), link)
    }
    mkdirSync(join(user, 'node_modules/.bin'))
    const { bin } = readJson<{ bin: { trialscan: string } }>(join(installed, 'package.json'))
    symlinkSync(join('../trialscan', bin.trialscan), join(user, 'node_modules/.bin/trialscan'))
    writeFileSync(join(user, 'package.json'), '{ "name": "user", "private": true, "type": "module" }\n')
    // A busy machine takes minutes to compile everything twice.
  }, 900_000)

  it('is what is needed, and nothing else', () => {
    const documents = ['deploy', 'docs', 'examples', 'python'].flatMap(folder =>
      readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
        .filter(entry => entry.isFile())
        .map(entry => join(entry.parentPath, entry.name).slice(root.length + 1))
        .filter(path => !path.startsWith('docs/pictures/')),
    )
    const written = [
      'ARCHITECTURE.md',
      'CHANGELOG.md',
      'CONTRIBUTING.md',
      'bench/README.md',
      'docs/pictures/overview.png',
      'LICENSE',
      'README.md',
      'SECURITY.md',
      'package.json',
      ...documents,
    ]
    const built = paths.filter(path => /^dist\/bundle\/[\w-]+\.c?js$/.test(path))
    // database-process.cjs is as TypeScript made it.
    const maps = built.filter(path => !path.includes('database-process')).map(path => `${path}.map`)
    const others = [
      'index.d.ts',
      'index.d.cts',
      'kernels.d.ts',
      'kernels.d.cts',
      'tfjs.d.ts',
      'tfjs.d.cts',
      'types.d.ts',
      'types2.d.ts',
      'types3.d.ts',
      'types4.d.ts',
      'types5.d.ts',
      'web.d.ts',
      'LICENSES.txt',
      'sbom.cdx.json',
    ].map(name => `dist/bundle/${name}`)
    const browser = paths.filter(path => path.startsWith('dist/browser/'))
    const app = paths.filter(path => path.startsWith('dist/app/'))
    // The hash in a name depends on where node_modules lies.
    const withoutHashes = (names: readonly string[]) =>
      names.map(name => name.replace(/-[A-Z0-9]{8}\.js$/, '.js')).sort()
    expect(withoutHashes(app)).toEqual(
      withoutHashes(readdirSync(join(root, 'dist/app')).map(name => `dist/app/${name}`)),
    )
    expect(paths).toEqual([...written, ...built, ...maps, ...others, ...app, ...browser, 'build/release.wasm'].sort())
    expect(built.sort()).toEqual(
      reachable(['index.js', 'tfjs.js', 'kernels.js', 'main.js'].map(name => `dist/bundle/${name}`)),
    )
    const pages = ['index.js', 'inline.js', 'worker.js', 'trialscan.wasm', 'LICENSES.txt'].map(
      name => `dist/browser/${name}`,
    )
    expect(browser).toEqual(reachable(pages))
    const sizesOf = (paths: readonly string[]) => {
      const contents = paths.map(path => readFileSync(join(installed, path)))
      const packed = contents.reduce((sum, bytes) => sum + gzipSync(bytes).length, 0)
      return [packed, contents.reduce((sum, { length }) => sum + length, 0)] as const
    }
    const [browserSize, browserUnpackedSize] = sizesOf(browser)
    const [appSize, appUnpackedSize] = sizesOf(app)
    // The code is readable, with its comments, and source maps take 600 kB, trialscan.py and reports for CI 40, units and trees, directions of a change and statistics of dumps 30, the parser of S3's listings and the tunnels through proxies 34. 510 kB (before they are packed) are what a thread loads.
    expect(packed.size - browserSize - appSize).toBeLessThan(2_185_000)
    expect(packed.unpackedSize - browserUnpackedSize - appUnpackedSize).toBeLessThan(8_180_000)
    // Maps with slices, digests and rules of checkpoints take 15. Readers of checkpoints and of torch, loaded when there is one, take 30, the way behind damage 10, each of them in two files.
    // Checked arguments, wrong answers of servers and shards that vanish take 7. Missing ranks, sums in registers and rows as views take 4, in two files.
    // The parser of listings that S3 answers, loaded when there is one, takes 4, in three of them: the page's, the thread's, and inline.js.
    expect(browserSize).toBeLessThan(571_000)
    // A page of its own: 164 the views, 366 what reads trials and judges them. A static host takes the folder as it is.
    expect(appSize).toBeLessThan(560_000)
  })

  /** The files of the package that these import, and what those import. */
  function reachable(from: readonly string[]): string[] {
    const found = new Set(from)
    for (const path of found) {
      const text = readFileSync(join(installed, path), 'utf8')
      // Also by URL: the file of a thread.
      for (const [, target] of text.matchAll(/(?:from|import|import\(|require\(|URL\()\s*["'](\.{1,2}\/[^"']+)["']/g)) {
        const place = posix.join(posix.dirname(path), target!)
        if (place.startsWith('dist/')) found.add(place)
      }
    }
    return [...found].sort()
  }

  it('has the core that its source makes', () => {
    // It was made twice, in two directories: for the package, and by the build that the tests need.
    expect(sha256(join(installed, 'build/release.wasm'))).toBe(sha256(join(root, 'build/release.wasm')))
  })

  it('can be used as a library', async () => {
    writeFileSync(
      join(user, 'use.js'),
      `import { createTrial } from 'trialscan'
      const trial = await createTrial(process.argv[2])
      for (const threads of [0, 1]) {
        let count = 0
        for await (const row of trial.scan({ threads, checkLevel: 'full' })) if (row.error === undefined) count++
        console.log(count)
      }
      await trial.close()`,
    )
    expect(await run(process.execPath, ['use.js', PLAIN_TRIAL], user)).toBe('15\n15\n')
  })

  it('can be required', async () => {
    writeFileSync(
      join(user, 'use.cjs'),
      `const { createTrial } = require('trialscan')
      createTrial(process.argv[2]).then(async trial => {
        console.log(trial.tensorNames().length > 0)
        await trial.close()
      })`,
    )
    expect(await run(process.execPath, ['use.cjs', PLAIN_TRIAL], user)).toBe('true\n')
  })

  it('has the core for arrays of any kind', async () => {
    const code = "console.log(moments(Float32Array.of(3, 4)).reduction('l2'))"
    writeFileSync(join(user, 'kernels.js'), `import { moments } from 'trialscan/kernels'\n${code}`)
    writeFileSync(join(user, 'kernels.cjs'), `const { moments } = require('trialscan/kernels')\n${code}`)
    for (const file of ['kernels.js', 'kernels.cjs']) expect(await run(process.execPath, [file], user)).toBe('5\n')
  })

  it('has a command', async () => {
    const out = await run('npx', ['--offline', 'trialscan', 'scan', PLAIN_TRIAL, '--format', 'csv'], user)
    expect(out.trimEnd().split('\n')).toHaveLength(16)
  })

  it.each(['node16', 'nodenext'])(
    'is typed for strict users of %s',
    async module => {
      writeFileSync(
        join(user, 'use.ts'),
        `import { createTrial, evaluate, type Finding, Rule, type ScanRow, VanishingGradient } from 'trialscan'
      import { allocate, type Moments, moments, readTFRecords } from 'trialscan/kernels'
      const array: Float32Array = allocate('float32', 4)
      export const row: Moments = moments(array, ['mean'])
      for (const { payload } of readTFRecords(new Uint8Array(0))) payload.length
      for await (const { payload } of readTFRecords(new Blob([]))) payload.length
      // @ts-expect-error: there is no such reduction
      moments(array, ['p95'])
      class Mine extends Rule {
        override setRequiredTensors(step: number): void {
          this.reqTensors.add('loss', [step])
        }
        override async invokeAtStep(step: number): Promise<boolean> {
          const value = await this.reqTensors.get()[0]?.reductionValue(step, 'max')
          return typeof value === 'number' && value > 1
        }
      }
      const trial = await createTrial('trial')
      const rows: ScanRow[] = []
      for await (const row of trial.scan({ reductions: ['abs_mean'] })) rows.push(row)
      const { findings } = await evaluate([new Mine(trial), new VanishingGradient(trial, { threshold: 1e-6 })])
      export const messages: string[] = findings.map((finding: Finding) => finding.message)
      // @ts-expect-error: types are not any
      trial.steps().nothing()`,
      )
      // As CommonJS, the same: types and values.
      writeFileSync(
        join(user, 'use.cts'),
        `import { createTrial, type ScanRow, UsageError } from 'trialscan'
      import { type Difference, difference } from 'trialscan/kernels'
      export const apart: Difference = difference(new Float32Array(1), new Float32Array(1))
      import trialscan = require('trialscan')
      export async function rows(path: string): Promise<ScanRow[]> {
        const trial: trialscan.Trial = await createTrial(path, { rangeSteps: [0, 10] })
        const rows: ScanRow[] = []
        for await (const row of trial.scan()) if (!row.error && !row.saved) rows.push({ ...row, dtype: row.moments.dtype })
        return rows
      }
      export const isUsage = (error: unknown): boolean => error instanceof UsageError
      // @ts-expect-error: types are not any
      export const nothing: number = trialscan.createTrial`,
      )
      writeFileSync(
        join(user, 'tsconfig.json'),
        JSON.stringify({
          compilerOptions: {
            target: 'es2023',
            lib: ['ES2023'],
            module,
            strict: true,
            exactOptionalPropertyTypes: true,
            noUncheckedIndexedAccess: true,
            skipLibCheck: false,
            types: ['node'],
            noEmit: true,
          },
          files: ['use.ts', 'use.cts'],
        }),
      )
      await expect(run(process.execPath, [join(modules, 'typescript/bin/tsc'), '-p', '.'], user)).resolves.toBe('')
    },
    120_000,
  )

  it('has no link to what is not in it', () => {
    const broken: string[] = []
    for (const path of paths.filter(path => path.endsWith('.md'))) {
      const text = readFileSync(join(installed, path), 'utf8').replaceAll(/```[\s\S]*?```|`[^`\n]*`/g, '')
      for (const [, target] of text.matchAll(/\]\(([^)\s#]+)[^)]*\)/g)) {
        // Measurements and pictures stay in the repository.
        if (/^[a-z]+:|^bench\/|^pictures\//.test(target!)) continue
        const place = posix.join(posix.dirname(path), target!)
        if (!existsSync(join(installed, place))) broken.push(`${path}: ${target}`)
      }
    }
    expect(broken).toEqual([])
  })
})

// -------------------------------------------------------------------------------------------------- what it brings along

interface Locked {
  readonly version: string
  readonly license?: string
  readonly integrity?: string
  readonly dev?: boolean
  readonly devOptional?: boolean
  readonly optional?: boolean
  readonly hasInstallScript?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

const lock = readJson<{ packages: Record<string, Locked> }>(join(root, 'package-lock.json')).packages
const RUNTIME = Object.entries(lock)
  .filter(([path, { dev, devOptional }]) => path !== '' && !dev && !devOptional)
  .map(([path, locked]) => ({ path, name: path.slice(path.lastIndexOf('node_modules/') + 13), locked }))
const HOOKS = ['preinstall', 'install', 'postinstall', 'prepare']
/** Licences that ask for no more than to be named. */
const LICENSES = ['0BSD', 'Apache-2.0', 'BSD-3-Clause', 'ISC', 'MIT']

/** The packages that a package brings along, itself aside. */
function broughtBy(name: string): Set<string> {
  const found = new Set([name])
  for (const next of found) {
    const { dependencies = {}, optionalDependencies = {} } = lock[`node_modules/${next}`]!
    for (const needed of [...Object.keys(dependencies), ...Object.keys(optionalDependencies)]) found.add(needed)
  }
  found.delete(name)
  return found
}

it('an uncaught error shows code that can be read, and names the source where maps are enabled', async () => {
  const index = pathToFileURL(join(root, 'dist/bundle/index.js')).href
  const code = `import { createTrial } from ${JSON.stringify(index)}\nawait createTrial(7)`
  const stderrWith = async (...flags: string[]) => {
    const failed = run(process.execPath, [...flags, '--input-type=module', '-e', code], root)
    return failed.then(
      () => '',
      ({ stderr }: { stderr: string }) => stderr,
    )
  }
  const plain = await stderrWith()
  expect(plain).toContain('throw new UsageError(`expected the path or URL of a trial')
  expect(plain).toContain('at storeSpec (')
  expect(plain.length).toBeLessThan(2_000)
  expect(await stderrWith('--enable-source-maps')).toMatch(/at storeSpec \(.*src.storage.open\.ts:\d+/)
})

describe('dependencies', () => {
  it('run nothing while they are installed', () => {
    expect(RUNTIME.length).toBeGreaterThan(8)
    expect(RUNTIME.filter(({ locked }) => locked.hasInstallScript).map(({ name }) => name)).toEqual([])
    expect(HOOKS.filter(hook => hook in manifest.scripts!)).toEqual([])
    for (const { path } of RUNTIME.filter(({ path }) => existsSync(join(modules, '..', path)))) {
      const { scripts = {} } = readJson<Manifest>(join(modules, '..', path, 'package.json'))
      // What is published is never prepared by those who install it.
      expect([path, ...HOOKS.slice(0, 3).filter(hook => hook in scripts)]).toEqual([path])
    }
  })

  it('are audited before anything is published, which a finding stops', () => {
    const release = readFileSync(join(root, '.github/workflows/release.yml'), 'utf8')
    expect(release).toMatch(/^ +- run: npm audit --omit=dev$[\s\S]*^ +- run: npm publish /m)
    expect(release).not.toMatch(/continue-on-error|\|\|/)
  })

  it('are published with the repository, by which links of the README lead into it', () => {
    const release = readFileSync(join(root, '.github/workflows/release.yml'), 'utf8')
    expect(release).toMatch(
      /npm pkg set .*repository\.url=\S*\$\{\{ github\.repository \}\}[\s\S]*^ +- run: npm publish /m,
    )
  })

  it('are locked to what was published', () => {
    for (const { path, locked } of RUNTIME) expect([path, locked.integrity?.slice(0, 7)]).toEqual([path, 'sha512-'])
  })

  it('have licences that go with ours', () => {
    for (const { path, locked } of RUNTIME) {
      expect([path, LICENSES.includes(locked.license!)]).toEqual([path, true])
      const place = join(modules, '..', path, 'package.json')
      if (existsSync(place)) expect([path, readJson<Manifest>(place).license]).toEqual([path, locked.license])
      else expect([path, locked.optional]).toEqual([path, true])
    }
  })

  it('are listed with what is bundled in the bill of materials', () => {
    interface Component {
      readonly name: string
      readonly version: string
      readonly purl: string
      readonly licenses: readonly { readonly license: { readonly id: string } }[]
      readonly properties: readonly { readonly name: string; readonly value: string }[]
    }
    const path = join(root, 'dist/bundle/sbom.cdx.json')
    const { bomFormat, components } = readJson<{ bomFormat: string; components: readonly Component[] }>(path)
    expect(bomFormat).toBe('CycloneDX')
    const listed = new Set(components.map(({ name, version }) => `${name} ${version}`))
    for (const { name, locked } of RUNTIME) expect(listed).toContain(`${name} ${locked.version}`)
    const licences = readFileSync(join(root, 'dist/bundle/LICENSES.txt'), 'utf8')
    for (const { name, version, purl, licenses, properties } of components) {
      expect(purl).toBe(`pkg:npm/${name.replace('@', '%40')}@${version}`)
      expect([name, LICENSES.includes(licenses[0]!.license.id)]).toEqual([name, true])
      if (properties[0]!.value === 'true') expect(licences).toContain(`${name} ${version}, `)
    }
    expect(components.filter(({ name }) => name === 'commander')).toHaveLength(1)
  })

  it('are the exact versions that were tested', () => {
    for (const [name, wanted] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })) {
      // rollup without native code is a package of another name: npm:@rollup/wasm-node@4.68.4.
      const version = wanted.replace(/^npm:.+@/, '')
      expect([name, version]).toEqual([name, expect.stringMatching(/^\d+\.\d+\.\d+$/)])
      expect([name, lock[`node_modules/${name}`]!.version]).toEqual([name, version])
    }
  })

  it('are those of the table in docs/design/dependencies.md', () => {
    const [, after] = readFileSync(join(root, 'docs/design/dependencies.md'), 'utf8').split('# Dependencies\n')
    const rows = after!
      .split('\n## ')[0]!
      .split('\n')
      .filter(line => line.startsWith('| ') && !line.startsWith('| package'))
      .map(line =>
        line
          .split('|')
          .slice(1, -1)
          .map(cell => cell.trim()),
      )
    const told = rows.map(([name, version, license, , brings]) => [name, version, license, Number(brings)])
    const known = Object.entries(manifest.dependencies).map(([name, version]) => [
      name,
      version,
      lock[`node_modules/${name}`]!.license,
      [...broughtBy(name)].filter(other => !lock[`node_modules/${other}`]!.optional).length,
    ])
    expect(told.sort()).toEqual(known.sort())
    for (const row of rows) expect(row[5]!.length).toBeGreaterThan(10)
  })
})
