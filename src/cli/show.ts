/** `trialscan show`: one tensor at one step. */

import {
  createTrial,
  type Mode,
  type Moments,
  REDUCTIONS,
  type ScanRow,
  type Tensor,
  TensorUnavailableForStep,
  type TensorValue,
  type Trial,
  type ValueOptions,
} from '../index.js'
import { EXIT } from './exit.js'
import { blocks, histogram } from './format/bars.js'
import { excerpt } from './format/excerpt.js'
import { npyChunks } from './format/npy.js'
import { complexText, counted, countText, isComplex, plainNumber, reductionOf, shortNumber } from './format/number.js'
import { shapeText } from './format/row-format.js'
import { Output } from './output.js'
import { expectNoLinkOf } from './real-path.js'
import { type S3Flags, s3OptionsOf } from './s3.js'
import { colorsFor, columns, note, safe, safeName } from './terminal.js'

export interface ShowFlags extends S3Flags {
  readonly step: number
  readonly mode?: Mode
  readonly worker?: string
  readonly npy?: string
}

const HISTOGRAM_BINS = 40

/** @returns the exit code */
export async function show(path: string, name: string, flags: ShowFlags): Promise<number> {
  const { step, mode = 'GLOBAL', npy } = flags
  const trial = await createTrial(path, { requireCollections: false, refresh: 'manual', ...s3OptionsOf(flags) })
  const output = await Output.open()
  try {
    const tensor = trial.tensor(name)
    const asked: ValueOptions = { mode, ...(flags.worker !== undefined && { worker: flags.worker }) }
    const { value, worker } = await readValue(tensor, step, asked, npy !== undefined)
    const options = { mode, worker }
    const row = await rowOf(trial, tensor, { ...options, step, isSaved: value === null })
    await output.write(headText(row))
    if (value === null) await output.write(savedText(row, await tensor.shape(step, options).catch(() => null)))
    else {
      if (npy !== undefined) {
        await expectNoLinkOf(path, npy)
        await writeNpy(npy, value)
      }
      await output.write(valueText(value, row.moments))
    }
    await output.end()
    return EXIT.ok
  } finally {
    await trial.close()
  }
}

/** The value of the worker that is asked for, or the first that saved it; null where only reductions were, and they will do. */
async function readValue(
  tensor: Tensor,
  step: number,
  options: ValueOptions,
  isNeeded: boolean,
): Promise<{ readonly value: TensorValue | null; readonly worker: string }> {
  const { mode = 'GLOBAL' } = options
  const workers = options.worker !== undefined ? [options.worker] : tensor.workers(step, { mode })
  let failure: unknown
  for (const worker of workers) {
    try {
      return { value: await tensor.value(step, { mode, worker }), worker }
    } catch (error) {
      if (!(error instanceof TensorUnavailableForStep)) throw error
      failure ??= error
    }
  }
  if (isNeeded) throw failure
  for (const worker of workers) {
    const saved = await tensor.reductionValues(step, { mode, worker }).catch(() => new Map())
    if (saved.size > 0) return { value: null, worker }
  }
  throw failure
}

/** What a scan tells of it. */
async function rowOf(
  trial: Trial,
  tensor: Tensor,
  {
    step,
    mode,
    worker,
    isSaved,
  }: { readonly step: number; readonly mode: Mode; readonly worker: string; readonly isSaved: boolean },
): Promise<ScanRow> {
  // Several global steps of a worker can have one mode step: the last that has the tensor counts, as for values.
  const isMeant = (at: number) =>
    tensor.workers(at).includes(worker) &&
    trial.mode(at, { worker }) === mode &&
    trial.modeStep(at, { worker }) === step
  const meant = mode === 'GLOBAL' ? [step] : tensor.steps({ showIncompleteSteps: true }).filter(isMeant)
  let last: ScanRow | undefined
  for (const at of meant.reverse()) {
    for await (const row of trial.scan({ tensors: [tensor.name], steps: [at, at + 1], workers: worker, threads: 0 })) {
      if (row.error) throw row.error
      if (row.saved === isSaved) return row
      last ??= row
    }
  }
  if (last) return last
  throw new Error(`no row of ${tensor.name}, whose value is there`)
}

function headText({ tensor, step, mode, modeStep, worker }: ScanRow): string {
  const ofMode = mode === 'GLOBAL' ? '' : ` (${mode} ${modeStep})`
  return `${colorsFor(process.stdout).bold(safeName(tensor!))} at step ${step}${ofMode}, ${safe(worker)}\n`
}

function savedText(row: ScanRow, shape: readonly number[] | null): string {
  const head = `only reductions were saved${shape ? `, of shape ${shapeText(shape)}` : ''}`
  const saved = REDUCTIONS.flatMap(name => {
    const value = reductionOf(row, name)
    return value === undefined ? [] : [[`  ${name}`, isComplex(value) ? complexText(value) : plainNumber(value)]]
  })
  return `${head}\n\n${columns(saved)}`
}

function valueText(value: TensorValue, moments: Moments | undefined): string {
  const { dtype, shape, bytes } = value
  const count = shape.reduce((product, size) => product * size, 1)
  const size = dtype === 'string' ? '' : `, ${counted(bytes.byteLength, 'byte')}`
  const lines = [`${dtype} [${shape.join(', ')}], ${counted(count, 'element')}${size}`]
  if (moments && dtype !== 'string') lines.push(...statistics(moments))
  const spread = dtype === 'bool' ? null : histogram(value, HISTOGRAM_BINS)
  if (spread !== null && spread.min < spread.max) {
    const of = dtype.startsWith('complex') ? ' of magnitudes' : ''
    lines.push(`histogram${of} ${shortNumber(spread.min)} ▕${blocks(spread.counts)}▏ ${shortNumber(spread.max)}`)
  }
  return `${lines.join('\n')}\n\n${excerpt(value)}\n`
}

function statistics(moments: Moments): string[] {
  const { dtype, count, nanCount, infinityCount, zeroCount, exact } = moments
  if (dtype === 'bool') return [`true ${countText(count - zeroCount)}, false ${countText(zeroCount)}`]
  const isOrdered = !dtype.startsWith('complex')
  const reduced = (['min', 'mean', 'max', 'std'] as const).flatMap(name => {
    if (!isOrdered && (name === 'min' || name === 'max')) return []
    const value = moments.reduction(name)
    if (isComplex(value)) return [`${name} ${complexText(value, shortNumber)}`]
    return [`${name} ${exact && (name === 'min' || name === 'max') ? exact[name] : shortNumber(value)}`]
  })
  const share = (part: number) =>
    part > 0 && part < count ? `${countText(part)} (${((100 * part) / count).toFixed(1)} %)` : countText(part)
  return [reduced.join(', '), `NaN ${share(nanCount)}, infinite ${share(infinityCount)}, zero ${share(zeroCount)}`]
}

async function writeNpy(path: string, value: TensorValue): Promise<void> {
  const file = await Output.open(path)
  try {
    for (const chunk of npyChunks(value)) await file.writeBytes(chunk)
    await file.end()
  } catch (error) {
    await file.discard()
    throw error
  }
  const how = value.dtype === 'bfloat16' ? '; numpy has no bfloat16: it is float32 there, nothing is lost' : ''
  note(`wrote ${path}${how}`)
}
