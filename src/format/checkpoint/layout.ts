/**
 * The layout of a directory as a trial: which files hold tensors of which step and worker, judged by names alone. docs/checkpoints.md has
 * the table.
 */

import { entryOf } from '../../base/maps.js'
import { isShardIndex } from './safetensors/shards.js'

/** A checkpoint: what was saved at a step. */
export interface CheckpointPlace {
  readonly step: number
  /** The directory or the file that it is, relative to the trial; '' is the trial itself. */
  readonly place: string
  readonly files: readonly CheckpointFile[]
}

/** A file of a checkpoint: of tensors, or the index of its shards. */
export interface CheckpointFile {
  readonly path: string
  /** Null: its place does not say. */
  readonly worker: string | null
  /** Directories between the checkpoint and the file, without those of workers. */
  readonly group: string
  /** A name for the file's only tensor, if the name of the file says the step: the same at all steps. */
  readonly tensor?: string
}

export interface Layout {
  /** The pattern of the steps' names: `checkpoint-<n>/`; null if there is one checkpoint. */
  readonly family: string | null
  /** Checkpoints, in the order of their steps. */
  readonly checkpoints: readonly CheckpointPlace[]
  /** The directories and files that look like checkpoints and are not read. */
  readonly leftOut: readonly string[]
}

/** Why a directory is no trial of checkpoints. */
export type NoLayout =
  /** Two ways to name steps are equally frequent: the layout is ambiguous. */
  | { readonly ambiguous: readonly [string, string] }
  /** There are several trials below the place. */
  | { readonly below: readonly string[] }

const SEPARATORS = '[-_=.]?'
const WORDS = 'checkpoint|ckpt|global_step|step|iter|iteration|weight_v|epoch|pass'

/** The step number and the family in a name. */
interface StepName {
  readonly step: number
  readonly family: string
}

const LIGHTNING = 'epoch=<e>-step=<n>'
/** The version of a checkpoint of Lightning's, before the extension. */
const VERSION = /-v(\d+)(?=(?:\.\w+)?$)/

const STEP_NAMES: readonly ((name: string) => StepName | null)[] = [
  // Lightning: the epoch's number comes first.
  name => named(name, /^(.*[-_.])?epoch=\d+[-_]step=(\d+)(?:[-_.].*)?$/, LIGHTNING),
  // Composer counts batches.
  name => named(name, /^()ep\d+-ba(\d+)(?:-rank\d+)?$/, 'ep<e>-ba<n>'),
  // SGLang's dumper.
  name => named(name, /^()step=(\d+)___.*$/, 'step=<n>___…'),
  name => {
    const match = new RegExp(`^((?:.*[-_.])?(?:${WORDS})${SEPARATORS})(\\d+)$`, 'i').exec(name)
    return match && stepName(match[2]!, `${match[1]}<n>`)
  },
  name => named(name, /^()(\d+)$/, '<n>'),
  // TensorRT-LLM.
  name => named(name, /^()(\d+)\..+-(?:input|output)\..+$/, '<n>.<module>-<input|output>.…'),
]

function named(name: string, pattern: RegExp, family: string): StepName | null {
  const match = pattern.exec(name)
  return match && stepName(match[2]!, family)
}

function stepName(digits: string, family: string): StepName | null {
  const step = Number(digits)
  return Number.isSafeInteger(step) ? { step, family } : null
}

/** True if what was saved are tensors as they were computed, and not a model: by formats, and by how the steps are named. */
export function isDump(formats: readonly string[], family: string | null): boolean {
  return (
    (formats.length > 0 && formats.every(kind => kind === 'msprobe' || kind === 'nvdlfw-inspect' || kind === 'npy')) ||
    /^(?:.*[-_.])?pass[-_=.]?<n>|^step=<n>___|^<n>\.<module>/i.test(family ?? '')
  )
}

/** The step in the name of a directory, or of a file without its extension; null if there is none. */
export function stepOf(name: string): StepName | null {
  for (const read of STEP_NAMES) {
    const stepName = read(name)
    if (stepName !== null) return stepName
  }
  return null
}

/** A name without its extension, and that. */
function splitName(name: string): readonly [stem: string, extension: string] {
  const at = name.lastIndexOf('.')
  return at > 0 ? [name.slice(0, at), name.slice(at)] : [name, '']
}

/** The worker that a directory belongs to; null if its name says none. */
export function workerOfDirectory(name: string): string | null {
  const rank = /^rank[-_]?(\d+)(?:[-_]?pid[-_]?\d+)?$/i.exec(name)
  if (rank) return `rank_${Number(rank[1])}`
  // `ep0-ba100` is a step of Composer's.
  return /^mp_rank_\d+(?:_\d+)*$|^(?:proc|pid)[-_]?\d+$|^(?!ep\d+-ba\d+$)(?:tp|pp|dp|ep)[-_]?\d+(?:[-_].*)?$/i.test(
    name,
  )
    ? name
    : null
}

/** The worker that the name of a file is of. */
function workerOfFile(stem: string): string | null {
  const zero = /^(?:bf16_|fp16_)?(zero_pp_rank_\d+_mp_rank_\d+(?:_\d+)*)/.exec(stem)
  if (zero) return zero[1]!
  const model = /(?:^|_)(mp_rank_\d+(?:_\d+)*)_model_states$/.exec(stem)
  if (model) return model[1]!
  const layer = /^layer_\d+(?:-model_(\d+))?-model_states$/.exec(stem)
  // Without ranks of the model there is one.
  if (layer) return `mp_rank_${layer[1] ?? '00'}`
  const consolidated = /^consolidated\.(\d\d)$/.exec(stem)
  if (consolidated) return `rank_${Number(consolidated[1])}`
  const rank = /(?:^|[-_.])rank[-_=]?(\d+)(?=$|[-_.])/i.exec(stem)
  return rank ? `rank_${Number(rank[1])}` : null
}

/** A file, taken apart. */
interface Parsed {
  readonly path: string
  readonly worker: string | null
  /** Directories above the step, without those of workers. */
  readonly before: readonly string[]
  readonly stepName: StepName | null
  /** The directory or file that says the step, with all before it. */
  readonly place: string
  /** Directories below the step, without those of workers. */
  readonly group: string
}

function parse(path: string): Parsed {
  const parts = path.split('/')
  const file = parts.pop()!
  const [stem, extension] = splitName(file)
  const workers: string[] = []
  const before: string[] = []
  const behind: string[] = []
  let stepName: StepName | null = null
  let place = ''
  for (const [i, part] of parts.entries()) {
    const worker = workerOfDirectory(part)
    if (worker !== null) {
      workers.push(worker)
      continue
    }
    const step = stepOf(part)
    if (stepName === null) {
      if (step !== null) {
        stepName = { step: step.step, family: `${step.family}/` }
        place = parts.slice(0, i + 1).join('/')
        continue
      }
      before.push(part)
    } else if (step?.step !== stepName.step) behind.push(part)
    // The step again, as in `checkpoint-500/global_step500/` of the Trainer with DeepSpeed: names are the same at all steps.
    else behind.push(step.family.replace(/[-_=.]?<n>/, '') || 'step')
  }
  if (stepName === null && !isShardIndex(path)) {
    const step = stepOf(stem)
    if (step !== null) {
      stepName = { step: step.step, family: `${step.family}${extension}` }
      place = path
    }
  }
  const ofFile = workerOfFile(stem)
  if (ofFile !== null && !workers.includes(ofFile)) workers.push(ofFile)
  const worker = workers.length === 0 ? null : workers.join(' ')
  return { path, worker, before, stepName, place, group: behind.join('/') }
}

/**
 * The layout of a directory.
 * @param paths of files of tensors and indices of shards, sorted
 * @param name of the directory, which may say the step of a single checkpoint
 */
export function layoutOf(paths: readonly string[], name: string): Layout | NoLayout {
  const all = paths.filter(isVisible).map(parse)
  if (all.length === 0) return { below: [] }
  const here = all.filter(({ before }) => before.length === 0)
  if (here.length === 0) return belowOf(all, paths, name)
  const families = new Map<string, Parsed[]>()
  for (const file of here) {
    if (file.stepName === null) continue
    entryOf(families, file.stepName.family, () => []).push(file)
  }
  const single = here.filter(({ stepName }) => stepName === null)
  const others = [...new Set(all.filter(({ before }) => before.length > 0).map(({ before }) => `${before[0]}/`))]
  if (families.size === 0) {
    const files = single.map(({ path, worker }) => ({ path, worker, group: '' }))
    const step = stepOf(splitName(name)[0])?.step ?? stepOf(name)?.step ?? 0
    return { family: null, checkpoints: [{ step, place: '', files }], leftOut: others }
  }
  const counted = [...families]
    .map(([family, files]) => ({ family, files, count: new Set(files.map(({ stepName }) => stepName!.step)).size }))
    .sort((a, b) => b.count - a.count)
  const [first, second] = counted as [(typeof counted)[0], (typeof counted)[0] | undefined]
  if (second?.count === first.count) return { ambiguous: [first.family, second.family] }
  const { newest, older } = versionsOf(first.files)
  const leftOut = [
    ...older,
    ...counted.slice(1).flatMap(({ files }) => [...new Set(files.map(({ place }) => place))]),
    ...single.map(({ path }) => path),
    ...others,
  ]
  return { family: first.family, checkpoints: stepsOf(newest), leftOut }
}

/**
 * The files that count of a family: Lightning saves `epoch=0-step=100-v1.ckpt` if there is one without `-v1`, and the last
 * version is the newest.
 */
function versionsOf(files: readonly Parsed[]): {
  readonly newest: readonly Parsed[]
  readonly older: readonly string[]
} {
  if (!files[0]!.stepName!.family.startsWith(LIGHTNING)) return { newest: files, older: [] }
  const unversioned = (place: string): string => place.replace(VERSION, '')
  const versionOf = (place: string): number => Number(VERSION.exec(place)?.[1] ?? 0)
  const last = new Map<string, number>()
  for (const { place } of files) {
    last.set(unversioned(place), Math.max(versionOf(place), last.get(unversioned(place)) ?? 0))
  }
  const isNewest = ({ place }: Parsed): boolean => last.get(unversioned(place)) === versionOf(place)
  const older = files.filter(file => !isNewest(file)).map(({ place }) => place)
  return { newest: files.filter(isNewest), older: [...new Set(older)] }
}

/** False for hidden files, and for files that a Trainer still writes: it renames `tmp-checkpoint-500/` at the end. */
function isVisible(path: string): boolean {
  const parts = path.split('/')
  const isHidden = (part: string, i: number) =>
    part.startsWith('.') ? i < parts.length - 1 || part !== '.metadata' : part.startsWith('tmp-checkpoint-')
  return !parts.some(isHidden)
}

/** The layout of a directory that holds nothing but directories: the layout of its only one. */
function belowOf(all: readonly Parsed[], paths: readonly string[], name: string): Layout | NoLayout {
  const directories = [...new Set(all.map(({ path }) => path.split('/')[0]!))]
  const [only] = directories
  if (directories.length > 1 || only === undefined) {
    return { below: [...new Set(all.map(({ before }) => before.join('/')))].sort() }
  }
  const prefix = `${only}/`
  const inner = paths.filter(path => path.startsWith(prefix)).map(path => path.slice(prefix.length))
  const layout = layoutOf(inner, only === '' ? name : only)
  if ('ambiguous' in layout) return layout
  if ('below' in layout) return { below: layout.below.map(path => prefix + path) }
  const checkpoints = layout.checkpoints.map(({ step, place, files }) => ({
    step,
    place: place === '' ? only : prefix + place,
    files: files.map(file => ({ ...file, path: prefix + file.path })),
  }))
  return { family: layout.family, checkpoints, leftOut: layout.leftOut.map(path => prefix + path) }
}

function stepsOf(files: readonly Parsed[]): CheckpointPlace[] {
  const steps = new Map<number, Parsed[]>()
  for (const file of files) entryOf(steps, file.stepName!.step, () => []).push(file)
  return [...steps.entries()]
    .sort(([a], [b]) => a - b)
    .map(([step, all]) => {
      // Files that each say the step lie where they all lie.
      const places = new Set(all.map(({ place }) => place))
      const place = places.size === 1 ? all[0]!.place : commonDirectory([...places])
      const files = all.map(({ path, worker, group, stepName, place }) => ({
        path,
        worker,
        group,
        ...(place === path && { tensor: tensorNameOf(stepName!) }),
      }))
      return { step, place, files }
    })
}

/** `loss` for `loss_step=<n>`. */
function tensorNameOf({ family }: StepName): string {
  const before = family.slice(0, family.indexOf('<n>'))
  const name = before.replace(new RegExp(`(?:${WORDS})?${SEPARATORS}$`, 'i'), '').replace(/[-_=.]+$/, '')
  return name === '' || name.includes('<') ? 'value' : name
}

function commonDirectory(paths: readonly string[]): string {
  const [first = '', ...others] = paths.map(path => path.split('/').slice(0, -1))
  const parts = first === '' ? [] : first
  let length = parts.length
  for (const other of others) {
    let same = 0
    while (same < length && other[same] === parts[same]) same++
    length = same
  }
  return parts.slice(0, length).join('/')
}

/** The layout of a file that is named alone. */
export function layoutOfFile(path: string): Layout {
  const name = path.slice(path.lastIndexOf('/') + 1)
  const stepName = isShardIndex(name) ? null : stepOf(splitName(name)[0])
  const file = { path, worker: null, group: '', ...(stepName && { tensor: tensorNameOf(stepName) }) }
  return { family: null, checkpoints: [{ step: stepName?.step ?? 0, place: path, files: [file] }], leftOut: [] }
}
