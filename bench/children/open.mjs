// Opens a trial and says when that was done, counted from the start of the process, as JSON.
//   node open.mjs LIBRARY DIR CACHE WATCH   with trialscan; CACHE may be empty; WATCH: how long is the thread blocked?
//   node open.mjs '' DIR                    reads and parses the index files as one would by hand
//   node open.mjs '' DIR stat               lists the index files, and asks for the length and the times of each
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'

const [library, dir, cache, watch] = process.argv.slice(2)
const RESOLUTION_MS = 1
const turnOfLoop = () => new Promise(resolve => setTimeout(resolve, 5 * RESOLUTION_MS))

const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
if (watch) {
  delay.enable()
  await turnOfLoop()
  delay.reset()
}
const opened = library ? await withTrialscan() : cache === 'stat' ? byStat() : byHand()
const openedMs = performance.now()
if (watch) await turnOfLoop()
const blockedMs = watch ? Math.max(0, delay.max / 1e6 - RESOLUTION_MS) : null
console.log(JSON.stringify({ ...opened, openedMs, blockedMs }))
process.exit()

async function withTrialscan() {
  const { createTrial } = await import(library)
  const trial = await createTrial(dir, cache ? { indexCache: cache } : {})
  return { steps: trial.steps().length, tensors: trial.tensorNames().length }
}

function byStat() {
  const stamps = []
  for (const folder of readdirSync(join(dir, 'index'))) {
    for (const file of readdirSync(join(dir, 'index', folder))) {
      const { size, mtimeMs, ctimeMs } = statSync(join(dir, 'index', folder, file))
      stamps.push([size, mtimeMs, ctimeMs])
    }
  }
  return { steps: stamps.length, tensors: 0 }
}

function byHand() {
  const tensors = new Map()
  const names = new Set()
  for (const folder of readdirSync(join(dir, 'index')).sort()) {
    for (const file of readdirSync(join(dir, 'index', folder)).sort()) {
      const { meta, tensor_payload } = JSON.parse(readFileSync(join(dir, 'index', folder, file), 'utf8'))
      tensors.set(Number.parseInt(file, 10), { meta, tensor_payload })
      for (const { tensorname } of tensor_payload) names.add(tensorname)
    }
  }
  return { steps: tensors.size, tensors: names.size }
}
