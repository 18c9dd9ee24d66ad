/** Builds what a campaign runs: the core and the modules of src with counters, and the targets around them. */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import asc from 'assemblyscript/asc'
import { build } from 'esbuild'
import { MAX_COUNTERS } from './counts.js'
import { Counters, instrument } from './instrument.js'

export interface Built {
  readonly script: string
  readonly core: string
  /** How many counters there are in src, and in the core. */
  readonly scriptCounters: number
  readonly coreCounters: number
}

export async function buildCampaign(root: string, directory: string): Promise<Built> {
  mkdirSync(directory, { recursive: true })
  const core = join(directory, 'core.wasm')
  const coreCounters = await buildCore(root, core)
  const script = join(directory, 'loop.js')
  const counters = new Counters()
  await build({
    entryPoints: [join(import.meta.dirname, 'loop.ts')],
    outfile: script,
    bundle: true,
    packages: 'external',
    platform: 'node',
    target: 'node20',
    format: 'esm',
    sourcemap: 'inline',
    logLevel: 'warning',
    plugins: [
      {
        name: 'counters',
        setup({ onResolve, onLoad }) {
          onResolve({ filter: /^#dist\// }, ({ path }) => ({
            path: join(root, 'src', path.slice('#dist/'.length).replace(/\.js$/, '.ts')),
          }))
          onLoad({ filter: /\.ts$/ }, ({ path }) => {
            if (!path.startsWith(join(root, 'src'))) return undefined
            const hit = (counter: number) => `__counts[${counter}]++`
            // Whichever module comes first makes them.
            const prelude = `const __counts = (globalThis.fuzzCounts ??= new Uint8Array(${MAX_COUNTERS}));`
            return { contents: instrument(readFileSync(path, 'utf8'), prelude, hit, counters), loader: 'ts' }
          })
        },
      },
    ],
  })
  return { script, core, scriptCounters: counters.count, coreCounters }
}

/** The counters of the core lie in its memory, at COUNTS. */
const COUNTS_MODULE = `
export const COUNTS: usize = memory.data(${MAX_COUNTERS})
export function hit(counter: u32): void { store<u8>(COUNTS + counter, load<u8>(COUNTS + counter) + 1) }
`

async function buildCore(root: string, outFile: string): Promise<number> {
  const counters = new Counters()
  const options = JSON.parse(readFileSync(join(root, 'asconfig.json'), 'utf8')) as {
    options: { enable: string[]; runtime: string; initialMemory: number; maximumMemory: number }
  }
  const { enable, runtime, initialMemory, maximumMemory } = options.options
  const { error, stderr } = await asc.main(
    [
      'assembly/index.ts',
      ...['--outFile', outFile, '--runtime', runtime, '--enable', enable.join(',')],
      // The counters take some of a page.
      ...['--initialMemory', String(initialMemory + 1), '--maximumMemory', String(maximumMemory)],
      ...['--lowMemoryLimit', '0', '--optimizeLevel', '3', '--noAssert'],
    ],
    {
      readFile(name) {
        if (name === 'assembly/counts.ts') return COUNTS_MODULE
        if (!/^(assembly\/.*|src\/core\/border\/(abi|framing))\.ts$/.test(name)) return null
        let source: string
        try {
          source = readFileSync(join(root, name), 'utf8')
        } catch {
          return null
        }
        if (!name.startsWith('assembly/')) return source
        const from = posix
          .join(posix.relative(posix.dirname(name), 'assembly') || '.', 'counts')
          .replace(/^(?!\.)/, './')
        const prelude = `import { hit as countHit } from '${from}';`
        const counted = instrument(source, prelude, counter => `countHit(${counter})`, counters)
        return name === 'assembly/index.ts' ? `${counted}\nexport { COUNTS } from './counts'\n` : counted
      },
      writeFile(name, contents) {
        writeFileSync(name, contents)
      },
      listFiles: () => [],
    },
  )
  if (error) throw new Error(`the core with counters could not be compiled: ${stderr.toString()}`, { cause: error })
  return counters.count
}
