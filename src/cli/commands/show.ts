/** `trialscan show`: one tensor at one step. */

import { QueryError, TensorUnavailableForStep, UsageError } from '../../base/errors.js'
import { type Mode, REDUCTIONS } from '../../base/types.js'
import type { Moments } from '../../core/moments.js'
import { stepsAround } from '../../scan/catalog/step-selection.js'
import type { ScanRow } from '../../scan/job/row.js'
import type { TensorValue } from '../../scan/job/tensor-value.js'
import { npyChunks } from '../../table/npy.js'
import type { Tensor, ValueOptions } from '../../trial/tensor.js'
import type { Trial } from '../../trial/trial.js'
import { EXIT } from '../exit.js'
import { blocks, histogram } from '../format/bars.js'
import { elementLines, npySubstitute, valueJson } from '../format/elements.js'
import { excerpt } from '../format/excerpt.js'
import type { FormatOf } from '../format/formats.js'
import {
  complexText,
  counted,
  countText,
  isComplex,
  plainNumber,
  reductionOf,
  shapeText,
  shortNumber,
} from '../format/number.js'
import { settle } from '../options/given.js'
import { expectS3 } from '../options/s3.js'
import { writeTo } from '../output.js'
import { expectReplaceable } from '../real-path.js'
import { withTrial } from '../scan/trials.js'
import { type Colors, colorsFor, columns, note, safe, safeName } from '../terminal.js'
import type { ShowFlags } from './show-ridge.js'

const HISTOGRAM_BINS = 40
const DEFAULT_COLUMNS = 80
/** The names of files with pictures of tensors over steps. */
const PICTURES = /\.(gif|html?)$/i

/** @returns the exit code */
export async function runShow(path: string, name: string | undefined, given: ShowFlags): Promise<number> {
  if (name !== undefined && given.out !== undefined && PICTURES.test(given.out)) {
    const { showHistograms } = await import('./show-histograms.js')
    return showHistograms(path, name, given.out, given)
  }
  const flags = settle('show', path, given)
  const { npy, format, onTerminal, out, steps } = flags
  if (name === undefined) {
    if (out !== undefined) await expectReplaceable(path, out)
    const { showStructure } = await import('./show-structure.js')
    return showStructure(path, flags)
  }
  if (steps !== undefined) {
    const { showRidge } = await import('./show-ridge.js')
    return showRidge(path, name, { ...flags, steps })
  }
  if (npy !== undefined) await expectReplaceable(path, npy, '--npy')
  if (out !== undefined) await expectReplaceable(path, out)
  expectS3(flags, [path])
  return withTrial(path, flags, async trial => {
    const tensor = trial.tensor(name)
    const { step, mode } = stepToShow(trial, tensor, flags)
    const valueOptions: ValueOptions = { mode, ...(flags.worker !== undefined && { worker: flags.worker }) }
    const isNeeded = npy !== undefined || (format !== 'table' && format !== 'json')
    const { value, worker } = await valueOrReductions(tensor, step, valueOptions, isNeeded)
    const options = { mode, worker }
    const row = await rowOf(trial, tensor, { ...options, step, isSaved: value === null })
    expectMode(trial, row, flags)
    if (npy !== undefined && value !== null) {
      await writeTo(npy, output => output.writeAll(npyChunks(value)))
      tellNpy(npy, value)
    }
    const shape = value === null ? await tensor.shape(step, options).catch(() => null) : value.shape
    const picture = await pictureOf(value, flags)
    await writeTo(out, output => output.writeAll(printedChunks(row, value, shape, format, onTerminal, picture)))
    if (format === 'npy' && value !== null && out !== undefined) tellNpy(out, value)
    return EXIT.ok
  })
}

/** The step to show, and the mode in which it counts. Default: the last step that has the tensor. */
function stepToShow(trial: Trial, tensor: Tensor, flags: ShowFlags): { readonly step: number; readonly mode: Mode } {
  const { step, modeStep, worker } = flags
  if (step !== undefined && modeStep !== undefined) throw new UsageError('expected --step or --mode-step, got both')
  const modes = trial.modes()
  // With a single mode there is no doubt.
  const mode = flags.mode ?? (modes.length > 1 ? 'GLOBAL' : (modes[0] ?? 'GLOBAL'))
  if (modeStep !== undefined && mode === 'GLOBAL' && modes.length > 0) {
    throw new UsageError(`expected --mode beside --mode-step, since each of ${modes.join(', ')} counts its own`)
  }
  if (step !== undefined && step >= 0) return { step, mode: 'GLOBAL' }
  if (modeStep !== undefined && modeStep >= 0) return { step: modeStep, mode }
  const counted = modeStep === undefined && flags.mode === undefined ? 'GLOBAL' : mode
  const steps = tensor
    .steps({ mode: counted, showIncompleteSteps: true })
    .filter(step => worker === undefined || tensor.workers(step, { mode: counted }).includes(worker))
  const position = step ?? modeStep ?? -1
  const chosenStep = steps.at(position)
  if (chosenStep !== undefined) return { step: chosenStep, mode: counted }
  const kind = counted === 'GLOBAL' ? 'steps' : `steps of ${counted}`
  const workerText = worker === undefined ? '' : ` of worker ${JSON.stringify(worker)}`
  const message = `tensor ${JSON.stringify(tensor.name)} was saved at ${steps.length} ${kind}${workerText}, so ${position}, counted from the end, is none of them${steps.length > 0 ? `; the first is -${steps.length}` : ''}`
  throw new QueryError('StepUnavailable', message, { tensor: tensor.name, step: position, mode: counted })
}

/**
 * Checks that a global step of `--step` has the mode of `--mode`, if both are given.
 * @throws QueryError
 */
function expectMode(trial: Trial, row: ScanRow, { step, mode }: ShowFlags): void {
  if (step === undefined || mode === undefined || mode === 'GLOBAL') return
  const modeSteps = trial.steps({ mode, showIncompleteSteps: true })
  const other = modeSteps.includes(step) ? trial.globalStep(mode, step) : undefined
  const hint = other === undefined ? '' : `${mode} step ${step} is global step ${other}: write --mode-step ${step}`
  if (row.mode !== mode) {
    const message = `global step ${step} is one of ${row.mode}, not of ${mode}${hint && `; ${hint}`}`
    throw new QueryError('StepUnavailable', message, { step, mode })
  }
  if (other !== undefined && other !== step) note(`--step is the global step; ${hint}`)
}

/**
 * Reads the value of the given worker, or of the first that saved it. Null if only reductions were saved and suffice.
 */
async function valueOrReductions(
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

/** The tensor's row of a scan. */
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
  const globalSteps = mode === 'GLOBAL' ? [step] : tensor.steps({ showIncompleteSteps: true }).filter(isMeant)
  let last: ScanRow | undefined
  for (const at of globalSteps.reverse()) {
    for await (const row of trial.scan({
      tensors: [tensor.name],
      steps: stepsAround(at),
      workers: worker,
      threads: 0,
    })) {
      if (row.step !== at) continue
      if (row.error) throw row.error
      if (row.saved === isSaved) return row
      last ??= row
    }
  }
  if (last) return last
  throw new Error(`no row of ${tensor.name}, whose value is there`)
}

/** The output in chunks. */
function printedChunks(
  row: ScanRow,
  value: TensorValue | null,
  shape: readonly number[] | null,
  format: FormatOf<'show'>,
  onTerminal: boolean,
  picture: string,
): Iterable<string | Uint8Array> {
  switch (format) {
    case 'table': {
      const head = headText(row, colorsFor(onTerminal ? process.stdout : null))
      return [
        head,
        value === null
          ? savedText(row, shape)
          : valueText(value, row.moments, onTerminal ? process.stdout.columns : undefined),
        picture,
      ]
    }
    case 'json':
      return valueJson(row, value, onTerminal)
    case 'npy':
      return npyChunks(value!)
    default:
      return elementLines(value!, format, onTerminal)
  }
}

/** A heat map or images, on a terminal or on request; else empty. */
async function pictureOf(
  value: TensorValue | null,
  { picture, format, onTerminal }: ShowFlags & { readonly onTerminal: boolean },
): Promise<string> {
  const how = picture ?? (onTerminal ? 'auto' : 'none')
  if (how === 'none' || value === null || format !== 'table') return ''
  const { gridOf, pictureFor, pictureText } = await import('../format/view/picture.js')
  const grid = gridOf(value)
  if (grid === null) return ''
  const { isColorSupported } = colorsFor(onTerminal ? process.stdout : null)
  const columns = process.stdout.columns ?? Number(process.env.COLUMNS || DEFAULT_COLUMNS)
  const drawn = pictureText(
    grid,
    how === 'auto' ? pictureFor(process.env) : how,
    columns,
    isColorSupported || picture === 'blocks',
  )
  const { images } = grid
  const note =
    images === null || images.shown === images.all
      ? ''
      : `the first ${images.shown} of ${countText(images.all)} images\n`
  return `\n${drawn}${note}`
}

function headText({ tensor, step, mode, modeStep, worker }: ScanRow, colors: Colors): string {
  const ofMode = mode === 'GLOBAL' ? '' : ` (${mode} step ${modeStep})`
  return `${colors.bold(safeName(tensor!))} at global step ${step}${ofMode}, ${safe(worker)}\n`
}

function savedText(row: ScanRow, shape: readonly number[] | null): string {
  const head = `only reductions were saved${shape ? `, of shape ${shapeText(shape)}` : ''}`
  const saved = REDUCTIONS.flatMap(name => {
    const value = reductionOf(row, name)
    return value === undefined ? [] : [[`  ${name}`, isComplex(value) ? complexText(value) : plainNumber(value)]]
  })
  return `${head}\n\n${columns(saved)}`
}

function valueText(value: TensorValue, moments: Moments | undefined, lineWidth: number | undefined): string {
  const { dtype, shape, bytes } = value
  const count = shape.reduce((product, size) => product * size, 1)
  const size = dtype === 'string' ? '' : `, ${counted(bytes.byteLength, 'byte')}`
  const lines = [`${dtype} [${shape.join(', ')}], ${counted(count, 'element')}${size}`]
  if (moments && dtype !== 'string') lines.push(...statistics(moments))
  const spread = dtype === 'bool' ? null : histogram(value, HISTOGRAM_BINS)
  if (spread !== null && spread.min < spread.max) {
    const kind = dtype.startsWith('complex') ? ' of magnitudes' : ''
    lines.push(`histogram${kind} ${shortNumber(spread.min)} ▕${blocks(spread.counts)}▏ ${shortNumber(spread.max)}`)
  }
  return `${lines.join('\n')}\n\n${excerpt(value, lineWidth)}\n`
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

function tellNpy(path: string, value: TensorValue): void {
  const substitute = npySubstitute(value.dtype)
  note(`wrote ${path}${substitute === null ? '' : `; ${substitute}`}`)
}
