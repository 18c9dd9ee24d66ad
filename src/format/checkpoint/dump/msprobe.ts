/**
 * Dumps of msprobe: `dump.json` lists inputs and outputs of the computation in its order, with statistics; `dump_tensor_data/` has the
 * tensors, if they were saved.
 */

import { FormatError, quote, StoreError } from '../../../base/errors.js'
import type { ReductionName } from '../../../base/types.js'
import { withoutBareNumbers } from '../beside.js'
import { NPY } from '../npy.js'
import type {
  RangedFile,
  StoredTensor,
  Surroundings,
  TensorFileContents,
  TensorFormat,
  UnreadTensor,
} from '../stored-tensor.js'
import { UNREADABLE } from '../torch/fault.js'
import { TORCH } from '../torch/format.js'
import { savedReduction } from './saved-statistics.js'

const DATA_DIRECTORY = 'dump_tensor_data'
/** A file that `dump.json` names. */
const DUMPED = /(^|\/)dump_tensor_data\/[^/]+\.(?:pt|npy)$/
const MAX_JSON_BYTES = 256 << 20
const MAX_DEPTH = 64
/** Statistics in `dump.json`, and the reductions that they are. */
const STATISTICS: readonly (readonly [name: string, reduction: ReductionName])[] = [
  ['Max', 'max'],
  ['Min', 'min'],
  ['Mean', 'mean'],
  ['Norm', 'l2'],
]
/** The names of these parts in msprobe's file names. */
const PARTS: Readonly<Record<string, string>> = { input_args: 'input', input_kwargs: 'input' }

export const MSPROBE: TensorFormat = {
  kind: 'msprobe',

  byName(path) {
    if (/(?:^|\/)dump\.json$/.test(path)) return 'yes'
    return DUMPED.test(path) ? 'part' : 'no'
  },

  indexOf: part => part.replace(DUMPED, '$1dump.json'),

  matches: () => false,
  read: (file, around) => readDump(file, around),
}

/** A tensor as `dump.json` describes it. */
interface Described {
  readonly name: string
  readonly fields: Readonly<Record<string, unknown>>
}

async function readDump(file: RangedFile, around: Surroundings): Promise<TensorFileContents> {
  const dump = await jsonOf(file)
  const data = recordOf(dump.data)
  if (data === null) throw wrong(file.url, 'data: an object', 'none')
  const described = Object.entries(data).flatMap(([key, value]) => [...describedIn(key, value, 0)])
  const tensors: StoredTensor[] = []
  const unread: UnreadTensor[] = []
  const problems: FormatError[] = []
  const seen = new Set<string>()
  for (const [order, { name, fields }] of described.entries()) {
    if (seen.has(name)) {
      problems.push(wrong(file.url, 'each tensor once', `${quote(name)} again`))
      continue
    }
    seen.add(name)
    const { data_name: dataName } = fields
    if (typeof dataName === 'string') {
      const read = await dumped(file, around, name, dataName)
      const other = 'error' in read ? null : differenceFrom(fields, read)
      if ('error' in read) unread.push(read)
      else tensors.push({ ...read, order })
      if (other !== null)
        problems.push(wrong(file.url, `${quote(name)} as ${other.expected}`, `${other.got} in ${dataName}`))
    } else {
      const saved = STATISTICS.flatMap(([statistic, reduction]) => {
        const value = numberOf(fields[statistic])
        return value === null ? [] : savedReduction(reduction, name, value, { order })
      })
      for (const reduction of saved) tensors.push(reduction)
      if (saved.length === 0) {
        const error = wrong(file.url, `statistics of ${quote(name)}`, 'none', UNREADABLE)
        unread.push({ name, dtype: String(fields.dtype), error })
      }
    }
  }
  const facts = ['task', 'level', 'framework'].flatMap(key =>
    typeof dump[key] === 'string' ? [[key, (dump[key] as string).slice(0, 100)] as const] : [],
  )
  return { tensors, unread, problems, hasFullNames: true, metadata: new Map([['format', 'msprobe'], ...facts]) }
}

/** The tensors of an entry, in its order. */
function* describedIn(name: string, value: unknown, depth: number): Generator<Described> {
  if (depth > MAX_DEPTH) return
  if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) yield* describedIn(`${name}.${i}`, item, depth + 1)
    return
  }
  const fields = recordOf(value)
  if (fields === null) return
  if (typeof fields.dtype === 'string' && Array.isArray(fields.shape)) {
    const { data_name: dataName } = fields
    yield { name: typeof dataName === 'string' ? dataName.replace(/\.(?:pt|npy)$/, '') : name, fields }
    return
  }
  for (const [key, item] of Object.entries(fields)) yield* describedIn(`${name}.${PARTS[key] ?? key}`, item, depth + 1)
}

/** The difference of a tensor's file from what `dump.json` says of it; null if there is none. Shapes and dtypes of torch are compared. */
function differenceFrom(
  { dtype, shape }: Readonly<Record<string, unknown>>,
  read: StoredTensor,
): { readonly expected: string; readonly got: string } | null {
  const isTorch = String(dtype).startsWith('torch.')
  const [expected, got] = [
    `${isTorch ? String(dtype).slice('torch.'.length) : ''} ${JSON.stringify(shape)}`.trim(),
    `${isTorch ? read.dtype : ''} ${JSON.stringify(read.shape)}`.trim(),
  ]
  return expected === got ? null : { expected, got }
}

/** A tensor that lies in a file of its own. */
async function dumped(
  { path, url }: RangedFile,
  around: Surroundings,
  name: string,
  dataName: string,
): Promise<StoredTensor | UnreadTensor> {
  const unread = (error: FormatError): UnreadTensor => ({ name, dtype: 'unknown', error })
  if (!/^[^/\\\0]+\.(?:pt|npy)$/.test(dataName)) {
    return unread(wrong(url, `a .pt or .npy in ${DATA_DIRECTORY}/ for ${name}`, JSON.stringify(dataName.slice(0, 200))))
  }
  const place = `${path.slice(0, path.lastIndexOf('/') + 1)}${DATA_DIRECTORY}/${dataName}`
  try {
    const file = await around.open(place)
    const contents = await (dataName.endsWith('.npy') ? NPY : TORCH).read(file, { ...around, paths: [place] })
    const [tensor] = [...contents.tensors, ...contents.unread]
    return tensor === undefined ? unread(wrong(file.url, 'a tensor', 'none')) : { ...tensor, name }
  } catch (error) {
    if (error instanceof FormatError) return unread(error)
    if (!(error instanceof StoreError) || error.code !== 'NotFound') throw error
    return unread(wrong(url, `${DATA_DIRECTORY}/${dataName} beside it`, 'no such file'))
  }
}

async function jsonOf(file: RangedFile): Promise<Readonly<Record<string, unknown>>> {
  const { url, byteLength } = file
  if (byteLength > MAX_JSON_BYTES) throw wrong(url, `at most ${MAX_JSON_BYTES} bytes`, `${byteLength}`)
  try {
    const text = new TextDecoder().decode(await file.read(0, byteLength))
    const dump = recordOf(JSON.parse(withoutBareNumbers(text)))
    if (dump !== null) return dump
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw wrong(url, 'JSON', error.message.slice(0, 100))
  }
  throw wrong(url, 'an object in JSON', 'another value')
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null
}

function numberOf(value: unknown): number | null {
  if (typeof value === 'number' || typeof value === 'boolean') return Number(value)
  if (typeof value !== 'string') return null
  const name = value.toLowerCase()
  if (name === 'nan') return Number.NaN
  if (name === 'infinity' || name === 'inf') return Number.POSITIVE_INFINITY
  return name === '-infinity' || name === '-inf' ? Number.NEGATIVE_INFINITY : null
}

function wrong(url: string, expected: string, got: string, code = 'BadDump'): FormatError {
  return new FormatError(code, `${url}: expected ${expected}, got ${got}`, { url, expected, got })
}
