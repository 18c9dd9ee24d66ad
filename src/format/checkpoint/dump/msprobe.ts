/**
 * Dumps of msprobe: `dump.json` lists inputs and outputs of the computation in its order, with statistics; `dump_tensor_data/` has the
 * tensors, if they were saved.
 */

import { FormatError, quote, StoreError } from '../../../base/errors.js'
import { turnsWhenDue } from '../../../base/turns.js'
import type { ReductionName } from '../../../base/types.js'
import { jsonTokens } from '../../json.js'
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
import { torchFault, UNREADABLE } from '../torch/fault.js'
import { TORCH } from '../torch/format.js'
import { savedReduction } from './saved-statistics.js'

const DATA_DIRECTORY = 'dump_tensor_data'
/** A file that `dump.json` names. */
const DUMPED = /(^|\/)dump_tensor_data\/[^/]+\.(?:pt|npy)$/
const MAX_JSON_BYTES = 256 << 20
const MAX_DEPTH = 64
const MAX_PROBLEMS = 100
/** Tokens between two looks at the clock. */
const TOKENS_AT_ONCE = 4096
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
  // Whatever `dump.json` says, which may be damaged.
  archives: async ({ path }, list) =>
    (await list(directoryBeside(path))).flatMap(path => (path.endsWith('.pt') ? [{ path, startByte: 0 }] : [])),
}

/** The content of `dump.json`, parsed and as it is. */
interface Dump {
  readonly dump: Readonly<Record<string, unknown>>
  readonly text: string
}

/** A tensor as `dump.json` describes it. */
interface Described {
  readonly name: string
  readonly fields: Readonly<Record<string, unknown>>
  /** The byte at which the key of `data` begins under which it stands. */
  readonly at: number
  /** The path of its file; null: it has none, or one outside of the dump. */
  readonly path: string | null
}

function directoryBeside(path: string): string {
  return `${path.slice(0, path.lastIndexOf('/') + 1)}${DATA_DIRECTORY}`
}

/** The tensors that `dump.json` describes, in their order. */
async function describedBy({ url, path }: RangedFile, { dump, text }: Dump): Promise<readonly Described[]> {
  const data = recordOf(dump.data)
  if (data === null) throw wrong(url, 0, 'data: an object', 'none')
  const directory = `${directoryBeside(path)}/`
  const described: Described[] = []
  const due = turnsWhenDue()
  for (const [entry, at] of await entryPlaces(text)) {
    for (const { name, fields } of describedIn(entry, data[entry], 0)) {
      const { data_name: file } = fields
      const isBeside = typeof file === 'string' && /^[^/\\\0]+\.(?:pt|npy)$/.test(file)
      described.push({ name, fields, at, path: isBeside ? directory + file : null })
      await due()
    }
    await due()
  }
  return described
}

async function readDump(file: RangedFile, around: Surroundings): Promise<TensorFileContents> {
  const json = await jsonOf(file)
  const tensors: StoredTensor[] = []
  const unread: UnreadTensor[] = []
  const problems: FormatError[] = []
  let untold = 0
  const seen = new Set<string>()
  const due = turnsWhenDue()
  for (const [order, { name, fields, at, path }] of (await describedBy(file, json)).entries()) {
    await due()
    const fault = (expected: string, got: string, code?: string): FormatError =>
      wrong(file.url, at, expected, got, code)
    const blame = (expected: string, got: string): void => {
      if (problems.length < MAX_PROBLEMS) problems.push(fault(expected, got))
      else untold++
    }
    if (seen.has(name)) {
      blame('each tensor once', `${quote(name)} again`)
      continue
    }
    seen.add(name)
    const { data_name: dataName } = fields
    if (typeof dataName === 'string') {
      const read = await dumped(path, around, { name, dataName, fault })
      const other = 'error' in read ? null : differenceFrom(fields, read)
      if ('error' in read) unread.push(read)
      else tensors.push({ ...read, order, statistics: new Map(statisticsIn(fields)) })
      if (other !== null) blame(`${quote(name)} as ${other.expected}`, `${other.got} in ${dataName}`)
    } else {
      const saved = statisticsIn(fields)
      for (const [reduction, value] of saved) tensors.push(savedReduction(reduction, name, value, { order }))
      if (saved.length === 0) {
        const error = fault(`statistics of ${quote(name)}`, 'none', UNREADABLE)
        unread.push({ name, dtype: String(fields.dtype), error })
      }
    }
  }
  if (untold > 0) problems.push(wrong(file.url, undefined, 'entries without faults', `${untold} more with faults`))
  const { dump } = json
  const facts = ['task', 'level', 'framework'].flatMap(key =>
    typeof dump[key] === 'string' ? [[key, (dump[key] as string).slice(0, 100)] as const] : [],
  )
  return { tensors, unread, problems, hasFullNames: true, metadata: new Map([['format', 'msprobe'], ...facts]) }
}

function statisticsIn(fields: Described['fields']): (readonly [ReductionName, number])[] {
  return STATISTICS.flatMap(([statistic, reduction]) => {
    const value = numberOf(fields[statistic])
    return value === null ? [] : [[reduction, value] as const]
  })
}

/** The keys of `data` in their order, which parsers change for integers, and the byte at which each begins. @param text valid JSON */
async function entryPlaces(text: string): Promise<ReadonlyMap<string, number>> {
  const places = new Map<string, number>()
  const due = turnsWhenDue()
  let [depth, tokens, char, byte] = [0, 0, 0, 0]
  let [isKey, isInData] = [false, false]
  for (const { token, at } of jsonTokens(text)) {
    if (++tokens % TOKENS_AT_ONCE === 0) await due()
    if (token === '{' || token === '[') {
      depth++
      isKey = token === '{'
    } else if (token === '}' || token === ']') depth--
    else if (token === ',') isKey = true
    else if (token === ':') isKey = false
    else if (isKey && depth === 1) {
      isInData = JSON.parse(token) === 'data'
      // Of two, the last counts.
      if (isInData) places.clear()
    } else if (isKey && depth === 2 && isInData && token.startsWith('"')) {
      byte += byteLengthOf(text.slice(char, at))
      char = at
      places.set(JSON.parse(token), byte)
    }
  }
  return places
}

function byteLengthOf(text: string): number {
  return new TextEncoder().encode(text).length
}

/** The tensors of an entry, in its order. */
function* describedIn(name: string, value: unknown, depth: number): Generator<Pick<Described, 'name' | 'fields'>> {
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
  path: string | null,
  around: Surroundings,
  of: { readonly name: string; readonly dataName: string; fault(expected: string, got: string): FormatError },
): Promise<StoredTensor | UnreadTensor> {
  const { name, dataName, fault } = of
  const unread = (error: FormatError): UnreadTensor => ({ name, dtype: 'unknown', error })
  if (path === null) {
    return unread(fault(`a .pt or .npy in ${DATA_DIRECTORY}/ for ${name}`, JSON.stringify(dataName.slice(0, 200))))
  }
  try {
    const file = await around.open(path)
    const contents = await (dataName.endsWith('.npy') ? NPY : TORCH).read(file, { ...around, paths: [path] })
    const [tensor] = [...contents.tensors, ...contents.unread]
    return tensor === undefined ? unread(wrong(file.url, 0, 'a tensor', 'none')) : { ...tensor, name }
  } catch (error) {
    if (error instanceof FormatError) return unread(error)
    if (!(error instanceof StoreError) || error.code !== 'NotFound') throw error
    return unread(fault(`${DATA_DIRECTORY}/${dataName} beside it`, 'no such file'))
  }
}

async function jsonOf(file: RangedFile): Promise<Dump> {
  const { url, byteLength } = file
  if (byteLength > MAX_JSON_BYTES) throw wrong(url, 0, `at most ${MAX_JSON_BYTES} bytes`, `${byteLength}`)
  const text = new TextDecoder().decode(await file.read(0, byteLength))
  const plain = withoutBareNumbers(text)
  try {
    const dump = recordOf(JSON.parse(plain))
    if (dump !== null) return { dump, text }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    const [, at] = /position (\d+)/.exec(error.message) ?? []
    const end = at === undefined ? byteLength : plain === text ? byteLengthOf(text.slice(0, Number(at))) : undefined
    throw wrong(url, end, 'JSON', error.message.slice(0, 100))
  }
  throw wrong(url, 0, 'an object in JSON', 'another value')
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

function wrong(url: string, offset: number | undefined, expected: string, got: string, code = 'BadDump'): FormatError {
  return torchFault(url, offset, expected, got, { code })
}
