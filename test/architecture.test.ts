/** The rules of the tree: import order, and who alone may import what. See ARCHITECTURE.md. */

import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { ROOT } from './support/golden.js'

/** Stages in import order: a file imports from its own stage or an earlier one. */
const STAGES = [
  'base',
  'storage',
  'format',
  'core',
  'scan/job',
  'scan/worker',
  'scan/runner',
  'kernels',
  'kernels.ts',
  'scan/catalog',
  'scan/rows',
  'trial',
  'table',
  'rules',
  'compare',
  'integrity',
  'write',
  'view',
  'fleet',
  'api.ts',
  'index.ts',
  'tfjs.ts',
  'web',
  'cli',
]

/** The types that the compiler of the core writes: no file of ours. */
const CORE_TYPES = /(^|\/)build\/release\.[jt]s$/

/** Who alone may import a module. */
const SOLE_IMPORTERS: readonly (readonly [RegExp, RegExp])[] = [
  [/^@aws-sdk\//, /^storage\/s3\/(sdk|client)\.ts$/],
  [/^valibot$/, /^base\/options\.ts$/],
  [CORE_TYPES, /^core\/border\/module\.ts$/],
  [/^@noble\/hashes/, /^web\/platform\.ts$/],
  [/^piscina$/, /^scan\/runner\//],
  [/^@assemblyscript\/loader$/, /^core\/border\/module\.ts$/],
  [/^node:fs/, /^(storage\/local\/[\w-]+|core\/host)\.ts$|^cli\//],
  [/^re2js$/, /^(format\/regex\/re2|web\/packages)\.ts$/],
  [/^ndarray$/, /^(scan\/job\/tensor\/ndarray|web\/packages)\.ts$/],
  [/^(commander|picocolors|cli-progress)$/, /^cli\//],
  [/^hyparquet/, /^table\/parquet\//],
  [/^@observablehq\/plot$/, /^view\/page\//],
  [/^umap-js$/, /^view\/samples\/umap\.ts$/],
  [/^gifenc$/, /^view\/(page\/|histograms\/canvas\.ts$)/],
  [/^@?hono(\/|$)/, /^view\/serve\/http\.ts$/],
  [/^apache-arrow$/, /^table\/arrow\.ts$/],
  [/^@duckdb\//, /^cli\/sql\/database\.ts$/],
  [/^(bullmq|ioredis)$/, /^cli\/fleet\/queue\.ts$/],
  [/^tinybench$/, /^cli\/bench\//],
  // The environment names proxies, to libraries as to commands, and where SageMaker reads metrics.
  [/^node:process$/, /^cli\/|^storage\/s3\/proxy\.ts$|^write\/sagemaker\.ts$/],
  [/^node:(tty|readline)/, /^cli\//],
]

/**
 * The files of the core in import order: each imports only from those before it, so that there is no circle. The first
 * two belong to both sides of the border.
 */
const CORE = [
  '../src/core/border/abi.ts',
  '../src/core/border/framing.ts',
  'dtype.ts',
  'arena.ts',
  'wire.ts',
  'crc32c/tables.ts',
  'crc32c/lookups.ts',
  'crc32c/shuffles.ts',
  'crc32c/short.ts',
  'crc32c/shrink.ts',
  'crc32c/fold.ts',
  'crc32c/crc32c.ts',
  'tfrecord.ts',
  'event/keys.ts',
  'event/plugin.ts',
  'event/values.ts',
  'event/resolve.ts',
  'event/usual.ts',
  'event/event.ts',
  'event/survey.ts',
  'decimal.ts',
  'records.ts',
  'lines.ts',
  'snappy.ts',
  'columns.ts',
  'kernel/exponent.ts',
  'kernel/double-double.ts',
  'kernel/lanes.ts',
  'kernel/widen.ts',
  'kernel/sketch.ts',
  'kernel/moments/row.ts',
  'kernel/moments/scaled.ts',
  'kernel/moments/extremes.ts',
  'kernel/moments/sums.ts',
  'kernel/moments/finite.ts',
  'kernel/moments/halves.ts',
  'kernel/moments/int64.ts',
  'kernel/moments/moments.ts',
  'kernel/pairs/allclose.ts',
  'kernel/rows.ts',
  'kernel/along.ts',
  'kernel/channels.ts',
  'kernel/count.ts',
  'kernel/pairs/difference.ts',
  'kernel/pairs/ulps.ts',
  'kernel/pairs/compare-float32.ts',
  'kernel/pairs/compare.ts',
  'kernel/pairs/quantised.ts',
  'kernel/order/kth.ts',
  'kernel/order/counted.ts',
  'kernel/order/sampled.ts',
  'kernel/histogram.ts',
  'record.ts',
  'index.ts',
]

/** What the core's compiler writes beside the core: its types. */
const BUILT = /\/build\/release\.js$/

const SOURCE = join(ROOT, 'src')
const files = sourcesIn(SOURCE)

describe.each(files)('src/%s', file => {
  const text = readFileSync(join(SOURCE, file), 'utf8')
  const imports = [...text.matchAll(/(?:from|import\(|^import)\s*'([^']+)'/gm)]
    .map(([, name]) => name!)
    .filter(name => !BUILT.test(name))

  it('imports only from its own stage or an earlier one', () => {
    for (const name of imports.filter(name => name.startsWith('.') && !CORE_TYPES.test(name))) {
      const target = posix.normalize(posix.join(posix.dirname(file), name.replace(/\.js$/, '.ts')))
      expect(files, `${file} imports ${name}`).toContain(target)
      expect(STAGES.indexOf(stageOf(target)), `${file} imports ${target}`).toBeLessThanOrEqual(
        STAGES.indexOf(stageOf(file)),
      )
    }
  })

  it('imports what only others may not', () => {
    for (const name of imports) {
      for (const [module, importers] of SOLE_IMPORTERS) {
        if (module.test(name)) expect(file, `${file} imports ${name}`).toMatch(importers)
      }
    }
  })

  it('leaves WebAssembly to the engine, and console and process to the command line', () => {
    const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
    // A type crosses the pool as the thread's data; the values are made in the engine alone.
    const isEngine = file.startsWith('core/') || file === 'web/core.ts'
    if (!isEngine) expect(code).not.toMatch(/\bnew WebAssembly\b|WebAssembly\.(?!Module\b)/)
    // Rules log to the console unless they are told otherwise, as smdebug's do.
    if (file !== 'rules/finding.ts' && !file.startsWith('cli/'))
      expect(code).not.toMatch(/\bconsole\.|\bprocess\.(?!getBuiltinModule\b)/)
  })
})

it('knows the stage of every source file', () => {
  for (const file of files) expect(STAGES, file).toContain(stageOf(file))
})

it('has no circle of imports, not even one of types', () => {
  const importsOf = (file: string) =>
    [...readFileSync(join(SOURCE, file), 'utf8').matchAll(/(?:from|import\(|^import)\s*'(\.[^']+)'/gm)]
      .filter(([, name]) => !BUILT.test(name!))
      .map(([, name]) => posix.normalize(posix.join(posix.dirname(file), name!.replace(/\.js$/, '.ts'))))
  const done = new Set<string>()
  const visit = (file: string, path: readonly string[]) => {
    expect(path, `${[...path, file].join(' imports ')}`).not.toContain(file)
    if (done.has(file)) return
    for (const target of importsOf(file)) if (!CORE_TYPES.test(target)) visit(target, [...path, file])
    done.add(file)
  }
  for (const file of files) visit(file, [])
})

describe('the core', () => {
  const core = join(ROOT, 'assembly')

  it('imports only from earlier files', () => {
    for (const [i, file] of CORE.entries()) {
      const text = readFileSync(join(core, file), 'utf8')
      for (const [, name] of text.matchAll(/from '([^']+)'/g)) {
        const target = posix.normalize(posix.join(posix.dirname(file), `${name}.ts`))
        expect(CORE.slice(0, i), `assembly/${file} imports ${target}`).toContain(target)
      }
    }
  })

  it('has a place in that order for each of its files', () => {
    expect(sourcesIn(core).sort()).toEqual(CORE.filter(file => !file.startsWith('..')).sort())
  })
})

it('ARCHITECTURE.md names every folder of src once, in import order', () => {
  const [, map] = /^## Rooms$.*?^```$(.*?)^```$/ms.exec(readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8'))!
  const named = [...map!.matchAll(/^(\S+)\/ {2,}\S/gm)].map(([, folder]) => folder!)
  expect(named.toSorted()).toEqual([...new Set(files.map(file => posix.dirname(file)))].filter(f => f !== '.').sort())
  const stages = named.map(folder => STAGES.indexOf(stageOf(folder)))
  expect(stages).toEqual(stages.toSorted((a, b) => a - b))
})

it('docs/design/state.md names every module that keeps something, and no other', () => {
  const named = readFileSync(join(ROOT, 'docs/design/state.md'), 'utf8').matchAll(/`([\w/-]+\.ts)`/g)
  const keeping = files.filter(file => keepsSomething(readFileSync(join(SOURCE, file), 'utf8')))
  expect([...named].map(([, file]) => file!).sort()).toEqual(keeping.sort())
})

/** True if a module has a variable that changes, a collection that begins empty, or an object made of a class. Names of constants are in capitals. */
function keepsSomething(text: string): boolean {
  const { statements } = ts.createSourceFile('', text, ts.ScriptTarget.Latest, true)
  return statements
    .filter(ts.isVariableStatement)
    .some(
      ({ declarationList: { flags, declarations } }) =>
        (flags & ts.NodeFlags.Const) === 0 ||
        declarations.some(
          ({ name, initializer }) =>
            !/^[A-Z_]+$/.test(name.getText()) &&
            /^(new (?!WeakMap\b|Text(De|En)coder\b)\w+(<.*>)?\(|\[\]$)/s.test(initializer?.getText() ?? ''),
        ),
    )
}

describe('sizes', () => {
  const section = readFileSync(join(ROOT, 'docs/design/sizes.md'), 'utf8')
  const argued = [...section.matchAll(/`(\S+\.ts)`/g)].map(([, file]) => file!)
  const large = ['src', 'assembly'].flatMap(folder =>
    sourcesIn(join(ROOT, folder))
      .map(file => `${folder}/${file}`)
      .filter(file => isLarge(readFileSync(join(ROOT, file), 'utf8'))),
  )

  it('docs/design/sizes.md says why a file or class is larger than others, of all that are and no others', () => {
    expect(argued.sort()).toEqual(large.sort())
  })

  it('and why a folder has more files than others', () => {
    const argued = [...section.matchAll(/folder `(\S+)`/g)].map(([, folder]) => folder!)
    const counts = new Map<string, number>()
    for (const folder of ['src', 'assembly']) {
      for (const file of sourcesIn(join(ROOT, folder))) {
        const directory = posix.dirname(`${folder}/${file}`)
        counts.set(directory, (counts.get(directory) ?? 0) + 1)
      }
    }
    expect(argued.sort()).toEqual([...counts].flatMap(([folder, count]) => (count > 14 ? [folder] : [])).sort())
  })
})

it('no variable or parameter is named by a filler word', () => {
  const FILLER = new Set(['told', 'made', 'asked', 'own', 'one', 'meant', 'there', 'those'])
  const others = ['assembly', 'bench', 'scripts'].flatMap(folder =>
    filesIn(folder).filter(file => /\.(ts|mjs)$/.test(file)),
  )
  const fillers = [...files.map(file => join('src', file)), ...others].flatMap(file => {
    const names: string[] = []
    const visit = (node: ts.Node): void => {
      const isValue = ts.isVariableDeclaration(node) || ts.isParameter(node) || ts.isBindingElement(node)
      if (isValue && ts.isIdentifier(node.name) && FILLER.has(node.name.text)) names.push(`${file}: ${node.name.text}`)
      ts.forEachChild(node, visit)
    }
    visit(ts.createSourceFile(file, readFileSync(join(ROOT, file), 'utf8'), ts.ScriptTarget.Latest))
    return names
  })
  expect(fillers).toEqual([])
})

it('no limit is named MOST or LEAST: docs/design/words.md has MAX and MIN', () => {
  const others = files.flatMap(file =>
    [...readFileSync(join(SOURCE, file), 'utf8').matchAll(/\bconst ((?:MOST|LEAST)_[A-Z_]+)/g)].map(
      ([, name]) => `${file}: ${name}`,
    ),
  )
  expect(others).toEqual([])
})

describe('comments', () => {
  const FRAGMENT =
    /^(Of|That|Those|Whether|What|How|Who|Whose|Whom|Where|Which|As|If|Until|But|And|So|Likewise|The same[:, ]|(In|By|To) wh(ich|om))(?=\W|$)/
  const SOURCE = /\.(ts|mjs|cjs)$/
  const FOLDERS = ['src', 'assembly', 'scripts', 'bench']
  const FOREIGN = ['Lib/re/_parser.py', 'smdebug/xgboost/hook.py']
  const texts = FOLDERS.flatMap(folder => filesIn(folder).filter(file => SOURCE.test(file)))
  const commentsOf = (file: string) =>
    readFileSync(join(ROOT, file), 'utf8').match(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm) ?? []

  it('begin as a sentence or a noun phrase does', () => {
    expect(texts.length).toBeGreaterThan(700)
    const fragments = texts.flatMap(file =>
      commentsOf(file).flatMap(comment => {
        const start = /^\/\*\*\s*(?:\* )?([^\n]*)/.exec(comment)?.[1]
        return start !== undefined && FRAGMENT.test(start) ? [`${file}: ${start}`] : []
      }),
    )
    expect(fragments).toEqual([])
  })

  it('name files and sections that exist', () => {
    const all = [...FOLDERS, 'docs', 'examples', 'fixtures', 'python', 'test'].flatMap(filesIn)
    const known = [...all, ...readdirSync(ROOT)].map(file => `/${file}`)
    const lost = texts.flatMap(file =>
      commentsOf(file).flatMap(comment => {
        const names = comment.matchAll(
          /(?<![\w./`<*…:{-])(?:\.\.?\/)*((?:[\w-]+\/)*[\w.-]+\.(?:ts|mjs|cjs|md|py|html|css))\b/g,
        )
        return [...names].flatMap(([, name]) =>
          name!.endsWith('.d.ts') || FOREIGN.includes(name!) || known.some(path => path.endsWith(`/${name}`))
            ? []
            : [`${file}: ${name}`],
        )
      }),
    )
    expect(lost).toEqual([])
    // A section is named by its heading in a link, as documents have no numbers.
    expect(texts.filter(file => commentsOf(file).some(comment => comment.includes('§')))).toEqual([])
  })
})

/** True if a file is longer than about 400 lines, or a class in it longer than about 250. */
function isLarge(text: string): boolean {
  const source = ts.createSourceFile('', text, ts.ScriptTarget.Latest)
  const lineOf = (at: number): number => source.getLineAndCharacterOfPosition(at).line
  const classes = source.statements.filter(ts.isClassDeclaration)
  return lineOf(text.length) > 425 || classes.some(({ pos, end }) => lineOf(end) - lineOf(pos) > 275)
}

function sourcesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map(path => path.replaceAll('\\', '/'))
    .filter(path => path.endsWith('.ts'))
}

/** The files in a folder of the repository, by their paths from its root. */
function filesIn(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map(
    path => `${folder}/${path.replaceAll('\\', '/')}`,
  )
}

function stageOf(file: string): string {
  const [room, wing] = file.split('/')
  return room === 'scan' ? `${room}/${wing}` : room!
}
