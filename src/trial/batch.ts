/** Reductions that are asked for one by one, read together: those asked for in one turn become one scan. */

import { isDefined, type ReductionValue, setFor, undefinedReduction } from '../engine/moments.js'
import { ReductionUndefined } from '../errors.js'
import type { CheckLevel, ReductionName } from '../types.js'
import { checkWorkOptions, type WorkOptions } from './access.js'
import type { SavedTensor, WorkerStep } from './catalog.js'
import { checkLevelNumber, OF_SCALAR, Scan, type ScanItem, savedNumber } from './scan.js'
import type { TrialState } from './state.js'

interface Request {
  readonly item: ScanItem & { readonly saved: SavedTensor }
  readonly reduction: ReductionName
  /** Whether the item's value is the saved reduction itself. */
  readonly isSaved: boolean
  readonly resolve: (value: ReductionValue) => void
  readonly reject: (error: unknown) => void
}

/** How a reduction is read. Requests that differ in it are not read together. */
export type ReadOptions = WorkOptions & { readonly check?: CheckLevel }

const batchesOf = new WeakMap<TrialState, Map<string, Request[]>>()

/** The reduction of one saved tensor, read with all others that are asked for in the same turn of the event loop. */
export function readReduction(
  state: TrialState,
  workerStep: WorkerStep,
  saved: SavedTensor,
  reduction: ReductionName,
  options: ReadOptions,
): Promise<ReductionValue> {
  const location = saved.reductions.get(reduction)
  // A saved reduction is read as the tensor of one element that it is.
  const item = { workerStep, saved: location ? { ...saved, value: location } : saved }
  return new Promise((resolve, reject) => {
    let batches = batchesOf.get(state)
    if (batches === undefined) {
      batches = new Map()
      batchesOf.set(state, batches)
    }
    const key = JSON.stringify([options.check, options.threads, options.memory])
    const request: Request = { item, reduction, isSaved: location !== undefined, resolve, reject }
    const open = batches.get(key)
    if (open !== undefined) {
      open.push(request)
      return
    }
    const batch = [request]
    batches.set(key, batch)
    setImmediate(() => {
      batches.delete(key)
      run(state, batch, options).catch((error: unknown) => {
        for (const { reject } of batch) reject(error)
      })
    })
  })
}

async function run(state: TrialState, batch: readonly Request[], options: ReadOptions): Promise<void> {
  // One row for each record, in the order of the files; several reductions of one value share it.
  const byRecord = new Map<string, Request[]>()
  for (const request of batch) {
    const { workerStep, saved } = request.item
    const { eventFile = workerStep.eventFile, startByte, name } = saved.value!
    // The step is a part of what a record is held against.
    const key = JSON.stringify([eventFile, workerStep.step, startByte, name])
    const sharing = byRecord.get(key)
    if (sharing === undefined) byRecord.set(key, [request])
    else sharing.push(request)
  }
  const groups = [...byRecord.values()].sort((a, b) => {
    const [x, y] = [a[0]!.item, b[0]!.item]
    return x.workerStep.step - y.workerStep.step || x.saved.value!.startByte - y.saved.value!.startByte
  })
  const { access } = state
  const { threads, memory } = checkWorkOptions(options)
  const reductions = [...new Set(batch.map(({ reduction }) => reduction))]
  const scan = new Scan({
    problems: [],
    items: groups.map(group => group[0]!.item),
    reductions,
    strict: false,
    context: {
      store: access.spec,
      checkLevel: checkLevelNumber(options.check ?? 'minimal'),
      memory,
      known: setFor(reductions) | (batch.some(({ isSaved }) => isSaved) ? OF_SCALAR : 0),
    },
    runner: totalBytes => access.runner(threads, totalBytes, memory),
    url: path => access.store.url(path),
    signal: undefined,
    onProgress: undefined,
  })
  let at = 0
  for await (const { error, moments, reductions: read } of scan) {
    for (const { reduction, isSaved, resolve, reject } of groups[at++]!) {
      if (error) reject(error)
      else if (moments === undefined) {
        const told = read[reduction]
        if (told !== undefined) resolve(told)
        else reject(new ReductionUndefined(reduction, 'a histogram', 'it does not tell that of its data'))
      } else if (isSaved) {
        const value = savedNumber(moments, reduction)
        if (value instanceof ReductionUndefined) reject(value)
        else resolve(value)
      } else if (isDefined(reduction, moments.dtype)) resolve(moments.reduction(reduction))
      else reject(undefinedReduction(reduction, moments.dtype))
    }
  }
}
