/**
 * A coverage-guided campaign: `npm run fuzz -- [--seconds N] [--inputs N] [--target NAME] [--seed N] [--keep]`. Without a
 * target all have their turn. Finds become files in fixtures/fuzz, which test/fuzz/targets.test.ts tries from then on. See
 * docs/fuzz.md.
 */

import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { type Built, buildCampaign } from './build.js'
import type { LoopData, LoopReport } from './loop.js'

const ROOT = join(import.meta.dirname, '../../..')
const MAX_INPUT_BYTES = 1 << 20
/** An input that takes so long hangs: the others take about a millisecond, though the machine may be busy. */
const HANG_MS = 120_000

const NAMES = [
  'record',
  'sparse',
  'event-head',
  'event-file',
  'histogram',
  'index-file',
  'collections',
  'tornasole',
  'file-names',
  'pattern',
  'index-cache',
  'pickle',
  'torch-file',
  'distributed-metadata',
  'safetensors',
  'shard-index',
] as const

interface Message {
  readonly report?: LoopReport
  readonly find?: string
  readonly failure?: string
}

/** One target for some seconds. A thread that hangs or dies is a find, too. */
function runTarget(
  target: string,
  limits: { readonly seconds: number; readonly inputs: number; readonly seed: number },
  places: { readonly directory: string; readonly finds: string; readonly keeps: boolean },
  built: Built,
): Promise<LoopReport> {
  const shared = new SharedArrayBuffer(8 + MAX_INPUT_BYTES)
  const executions = new Uint32Array(shared, 0, 1)
  const finds = join(places.finds, target)
  const data: LoopData = {
    target,
    ...limits,
    fixtures: join(ROOT, 'fixtures'),
    corpus: join(places.directory, 'corpus', target),
    finds,
    keeps: places.keeps,
    core: built.core,
    scriptCounters: built.scriptCounters,
    coreCounters: built.coreCounters,
    shared,
  }
  const start = performance.now()
  const worker = new Worker(built.script, { workerData: data, resourceLimits: { maxOldGenerationSizeMb: 2048 } })
  return new Promise(resolve => {
    let before = 0
    let report: LoopReport | undefined
    const found: string[] = []
    const keepCurrent = (failure: string) => {
      const input = new Uint8Array(shared, 8, new Uint32Array(shared, 4, 1)[0]).slice()
      mkdirSync(finds, { recursive: true })
      const path = join(finds, `${createHash('sha256').update(input).digest('hex').slice(0, 16)}.bin`)
      writeFileSync(path, input)
      found.push(path)
      console.log(`${target}: FOUND ${path}: ${failure}`)
    }
    const watch = setInterval(() => {
      if (executions[0] === before) {
        keepCurrent(`not done after ${HANG_MS} ms`)
        void worker.terminate()
      }
      before = executions[0]!
    }, HANG_MS)
    worker.on('message', (message: Message) => {
      report = message.report ?? report
      if (message.find) console.log(`${target}: FOUND ${message.find}: ${message.failure}`)
    })
    worker.on('error', error => keepCurrent(String(error)))
    worker.on('exit', () => {
      clearInterval(watch)
      const none = { executions: executions[0]!, seconds: (performance.now() - start) / 1000, corpus: 0 }
      const { finds: written, ...rest } = report ?? { ...none, counters: [0, 0] as const, finds: [] }
      resolve({ ...rest, finds: [...written, ...found] })
    })
  })
}

const { values } = parseArgs({
  options: {
    seconds: { type: 'string' },
    // Of each target.
    inputs: { type: 'string' },
    target: { type: 'string' },
    seed: { type: 'string' },
    // For what is built and kept. It has to lie in the project, whose packages are looked for from there.
    directory: { type: 'string', default: join(ROOT, '.fuzz') },
    finds: { type: 'string', default: join(ROOT, 'fixtures/fuzz') },
    // Inputs that take ways of their own go to fixtures/fuzz/TARGET/corpus.txt.
    keep: { type: 'boolean', default: false },
  },
})
const { directory, finds: findsDirectory, keep } = values
const inputs = Number(values.inputs ?? Number.POSITIVE_INFINITY)
const seconds = Number(values.seconds ?? (values.inputs === undefined ? 60 : Number.POSITIVE_INFINITY))
const seed = Number(values.seed ?? Date.now() % 2 ** 32)
const targets = NAMES.filter(name => values.target === undefined || name === values.target)
if (!(seconds > 0) || !(inputs > 0) || !Number.isSafeInteger(seed) || targets.length === 0) {
  console.error(`expected --seconds N, --inputs N, --seed N, --target among ${NAMES.join(', ')}`)
  process.exit(2)
}

const built = await buildCampaign(ROOT, join(directory, 'build'))
console.log(`${built.scriptCounters} counters in src, ${built.coreCounters} in the core; seed ${seed}`)
let finds = 0
for (const target of targets) {
  const limits = { seconds: seconds / targets.length, inputs, seed }
  const report = await runTarget(target, limits, { directory, finds: findsDirectory, keeps: keep }, built)
  finds += report.finds.length
  const number = (value: number) => value.toLocaleString('en-US')
  console.log(
    `${target}: ${number(report.executions)} executions in ${report.seconds.toFixed(0)} s, ` +
      `${number(report.corpus)} inputs kept, counters ${report.counters.join(' + ')}, ${report.finds.length} finds`,
  )
}
process.exit(finds > 0 ? 1 : 0)
