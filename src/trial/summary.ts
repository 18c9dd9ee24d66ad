/** A summary of what a trial holds, tensor by tensor. */

import { errorFromData, type TrialscanError } from '../base/errors.js'
import type { DType } from '../base/types.js'
import { dtypeOf, elementByteLength } from '../core/dtype.js'
import { isSameShape } from '../format/index-file.js'
import type { Catalog } from '../scan/catalog/catalog.js'
import type { TrialState } from '../scan/catalog/state.js'
import type { SavedAlike } from '../scan/catalog/tensor-steps.js'
import { recordPlace, type WorkerSteps } from '../scan/catalog/worker-steps.js'
import type { RecordPlace } from '../scan/job/plan/coalesce.js'
import { shapesOf } from '../scan/job/reply.js'
import { describeRecords } from '../scan/rows/record-values.js'
import type { WorkOptions } from '../scan/runner/access.js'

/** The steps at which anything of a tensor was saved. */
interface StepSpan {
  readonly stepCount: number
  /** The first global step. */
  readonly firstStep: number
  readonly lastStep: number
}

/** The summary of one tensor. */
export interface TensorSummary extends StepSpan {
  readonly name: string
  /** The dtype; null if no value was saved, or it can't be read. */
  readonly dtype: DType | null
  /** The shapes at the first and at the last saved step; null if unknown. */
  readonly shape: readonly number[] | null
  readonly lastShape: readonly number[] | null
  /** The number of bytes of its records, including saved reductions. */
  readonly byteLength: number
  /** Names of the reductions that the hook saved. */
  readonly savedReductions: readonly string[]
  readonly error?: TrialscanError
}

export interface TrialSummary {
  readonly tensors: readonly TensorSummary[]
  /** The number of bytes of all records. */
  readonly byteLength: number
}

/** The number of tensors per job: many if each job waits for answers, else so few that little memory is held. */
const DESCRIBED_AT_ONCE = { remote: 8192, local: 1024 }

/** Dtype, shape, steps and bytes of every tensor. Reads the heads of two records per tensor. */
export async function summarize(state: TrialState, options: WorkOptions): Promise<TrialSummary> {
  const tensors: TensorSummary[] = []
  let byteLength = 0
  /** Tensors that were saved together have the same steps. */
  const spans = new WeakMap<WorkerSteps, StepSpan>()
  let names: string[] = []
  let spansOfNames: StepSpan[] = []
  const atOnce = state.access.isRemote ? DESCRIBED_AT_ONCE.remote : DESCRIBED_AT_ONCE.local
  const describe = async (): Promise<void> => {
    const drafts = draftsOf(names, spansOfNames, state.catalog)
    for (const [i, tensor] of (await describeAll(drafts, state, options)).entries()) {
      const tensorSummary = state.contents.checkpoint === null ? tensor : elementBytes(tensor, drafts[i]!.valueCount)
      tensors.push(tensorSummary)
      byteLength += tensorSummary.byteLength
    }
    names = []
    spansOfNames = []
  }
  for (const [name, workerSteps] of state.catalog.byTensor) {
    const span = spans.get(workerSteps) ?? spanOf(workerSteps.globalSteps())
    spans.set(workerSteps, span)
    names.push(name)
    spansOfNames.push(span)
    if (names.length === atOnce) await describe()
  }
  if (names.length > 0) await describe()
  return { tensors, byteLength }
}

function spanOf(steps: readonly number[]): StepSpan {
  return { stepCount: steps.length, firstStep: steps[0]!, lastStep: steps.at(-1)! }
}

/**
 * The size of a checkpoint's tensor in bytes of elements, without the record heads that are made for it in memory.
 * @param valueCount the number of its values, of all workers and steps
 */
function elementBytes(tensor: TensorSummary, valueCount: number): TensorSummary {
  const { dtype, shape, lastShape } = tensor
  if (dtype === null || shape === null || !isSameShape(shape, lastShape ?? shape)) return tensor
  const count = shape.reduce((product, size) => product * size, 1)
  return { ...tensor, byteLength: Math.ceil(count * elementByteLength(dtype)) * valueCount }
}

async function describeAll(
  drafts: readonly TensorDraft[],
  state: TrialState,
  options: WorkOptions,
): Promise<TensorSummary[]> {
  const places = drafts.flatMap(({ ends }) => ends)
  const { described, failures } = await describeRecords(state, places, options)
  const shapes = shapesOf(described)
  const errors = new Map(failures.map(({ record, error }) => [record, error]))
  let record = 0
  let alike: readonly number[] | null = null
  // There may be a million of them, so equal shapes share a list.
  return drafts.map(({ name, span, byteLength, savedReductions, ends, savedShape }): TensorSummary => {
    // Written out, since an object spread takes more memory and there may be a million.
    const { stepCount, firstStep, lastStep } = span
    if (ends.length === 0) {
      const [shape, lastShape] = [savedShape, savedShape]
      return { name, stepCount, firstStep, lastStep, byteLength, savedReductions, dtype: null, shape, lastShape }
    }
    const [first, last] = [record, record + ends.length - 1]
    record += ends.length
    const error = errors.get(first) ?? errors.get(last)
    const dtype = dtypeOf(described.dtypes[first]!) ?? dtypeOf(described.dtypes[last]!) ?? null
    const shape = shared(errors.has(first) ? savedShape : shapes[first]!, alike)
    const lastShape = shared(errors.has(last) ? savedShape : shapes[last]!, shape)
    alike = shape
    const summary = { name, stepCount, firstStep, lastStep, byteLength, savedReductions, dtype, shape, lastShape }
    return error ? { ...summary, error: errorFromData(error) } : summary
  })
}

interface TensorDraft extends Pick<TensorSummary, 'name' | 'byteLength' | 'savedReductions'> {
  readonly span: StepSpan
  readonly savedShape: readonly number[] | null
  /** The number of its values, of all workers and steps. */
  readonly valueCount: number
  /** The records of the first and the last value. */
  readonly ends: readonly RecordPlace[]
}

const NONE_SAVED: readonly string[] = []

/** The first shape, or the equal array of the second, so that equal shapes share one. */
function shared(shape: readonly number[] | null, other: readonly number[] | null): readonly number[] | null {
  return shape !== null && other !== null && isSameShape(shape, other) ? other : shape
}

/** The tensors according to the index files. @param spans the steps at which each was saved */
function draftsOf(
  names: readonly string[],
  spans: readonly StepSpan[],
  { byTensor, workerSteps }: Catalog,
): TensorDraft[] {
  const summaries = names.map(
    (): Found => ({ byteLength: 0, valueCount: 0, reductions: null, savedShape: null, first: null, last: null }),
  )
  for (const alike of byTensor.alike(names)) {
    const { value, reductions, shape } = alike.saved
    const tensor = summaries[alike.index]!
    tensor.savedShape ??= shape?.shape ?? null
    for (const [reduction, location] of reductions) {
      tensor.reductions ??= new Set()
      tensor.reductions.add(reduction)
      tensor.byteLength += location.byteLength * alike.count
    }
    if (value === null) continue
    tensor.byteLength += value.byteLength * alike.count
    tensor.valueCount += alike.count
    tensor.first ??= alike
    if (tensor.last === null || alike.last > tensor.last.last) tensor.last = alike
  }
  return summaries.map(({ byteLength, valueCount, reductions, savedShape, first, last }, i) => {
    const name = names[i]!
    const ends = first === null ? [] : [workerSteps.at(first.first)!]
    if (first !== null && last!.last > first.first) ends.push(workerSteps.at(last!.last)!)
    return {
      name,
      valueCount,
      span: spans[i]!,
      byteLength,
      savedReductions: reductions ? [...reductions] : NONE_SAVED,
      savedShape,
      ends: ends.map(workerStep => recordPlace(workerStep, workerStep.tensors.get(name)!.value!)),
    }
  })
}

interface Found {
  byteLength: number
  valueCount: number
  reductions: Set<string> | null
  savedShape: readonly number[] | null
  /** The first and the last record with its value. */
  first: SavedAlike | null
  last: SavedAlike | null
}
