/** The worker and mode of a TensorBoard run: the inverse of `runDirectory`. */

import { createHash } from 'node:crypto'
import { MODES, type Mode, type Worker } from '../../base/types.js'
import { unescapeWorker, workerReadBack } from '../../format/paths.js'

export interface PartOfTrial {
  readonly worker: Worker
  readonly mode: Mode
}

/** The limit for a worker's name: a file name also contains the step. */
const MAX_WORKER_BYTES = 160

/**
 * The worker and mode of each run. The last part of a run's name is a mode if it is the name of one, and if no other mode of that worker
 * has one of its steps, since each step of a worker has one mode.
 * @param runs the steps of the runs by name
 * @param directory the name of the log directory, which can be that of a mode if it is the only run
 */
export function partsOfTrial(
  runs: ReadonlyMap<string, ReadonlySet<number>>,
  directory: string,
): Map<string, PartOfTrial> {
  const isAlone = runs.size === 1 && MODES.some(mode => mode === directory)
  const parts = new Map<string, PartOfTrial>()
  const taken = new Map<string, Set<number>>()
  const alone: string[] = []
  for (const [run, steps] of runs) {
    const names = run === '.' ? (isAlone ? [directory] : []) : run.split('/')
    const mode = MODES.find(mode => mode === names.at(-1))
    const base = (mode === undefined ? names : names.slice(0, -1)).join('/')
    const before = taken.get(base) ?? new Set<number>()
    if ([...steps].some(step => before.has(step))) {
      alone.push(run)
      continue
    }
    for (const step of steps) before.add(step)
    taken.set(base, before)
    parts.set(run, { worker: base, mode: mode ?? 'GLOBAL' })
  }
  for (const run of alone) parts.set(run, { worker: run, mode: 'GLOBAL' })
  return withNames(parts)
}

/** Gives each worker a unique name that a file can have. */
function withNames(parts: ReadonlyMap<string, PartOfTrial>): Map<string, PartOfTrial> {
  const workers = new Map<string, Worker>()
  const used = new Set<string>()
  for (const { worker } of parts.values()) {
    if (workers.has(worker)) continue
    const plain = worker === '' ? 'worker_0' : shortened(worker.replace(/[/\\]/g, '_'))
    const named = (name: string): Worker => workerReadBack(unescapeWorker(name))
    let name = named(plain)
    for (let n = 2; used.has(name); n++) name = named(`${plain}_${n}`)
    used.add(name)
    workers.set(worker, name)
  }
  return new Map([...parts].map(([run, { worker, mode }]) => [run, { worker: workers.get(worker)!, mode }]))
}

function shortened(name: string): string {
  if (Buffer.byteLength(name) <= MAX_WORKER_BYTES) return name
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 16)
  return `${Buffer.from(name).subarray(0, 80).toString().replace(/�+$/, '')}_${digest}`
}
