/** `trialscan show FILE`: the structure of a torch file or a pickle, no longer than a screen. */

import { statSync } from 'node:fs'
import { UsageError } from '../../base/errors.js'
import { formatOf } from '../../format/checkpoint/formats.js'
import { isShardIndex } from '../../format/checkpoint/safetensors/shards.js'
import type { PickleStructure } from '../../format/checkpoint/torch/read-structure.js'
import { pickleStructure } from '../../scan/catalog/checkpoint/structure.js'
import { EXIT } from '../exit.js'
import type { FormatOf } from '../format/formats.js'
import { onlyPlaceOptions, type S3Flags } from '../options/s3.js'
import { writeTo } from '../output.js'
import { type Colors, colorsFor, safe } from '../terminal.js'

type Value = PickleStructure['structure']

const MAX_LINES = 40
const MAX_LINE_LENGTH = 100
/** The number of tensors in one dict from which they are counted. */
const MAX_TENSORS = 6
const MAX_NAMES = 8

export async function showStructure(
  path: string,
  flags: S3Flags & { readonly format: FormatOf<'show'>; readonly out?: string; readonly onTerminal: boolean },
): Promise<number> {
  const { format, out, onTerminal } = flags
  const isDirectory = statSync(path, { throwIfNoEntry: false })?.isDirectory()
  const kind = formatOf(path, new Uint8Array(0))
  if (isDirectory || isShardIndex(path) || (kind !== null && kind.header !== 'pickle')) {
    const place = isDirectory ? 'the directory of a trial' : `a file of ${kind?.kind ?? 'shards'}`
    throw new UsageError(`expected the name of a tensor after ${place}, got none: trialscan ls ${path} lists them`)
  }
  if (format !== 'table' && format !== 'json') {
    throw new UsageError(`expected --format table or json where no tensor is named, got ${format}`)
  }
  const structure = await pickleStructure(path, onlyPlaceOptions(path, flags))
  const text =
    format === 'json'
      ? `${JSON.stringify(structure, null, onTerminal ? 2 : undefined)}\n`
      : structureText(structure, colorsFor(onTerminal ? process.stdout : null))
  await writeTo(out, output => output.writeAll([text]))
  return EXIT.ok
}

const LAYOUTS = { zip: 'torch.save (ZIP)', legacy: 'torch.save before 1.6', pickle: 'a pickle' } as const

/** The structure in at most `MAX_LINES` lines. */
function structureText({ layout, dangerous, foreign, structure }: PickleStructure, { bold, red }: Colors): string {
  const lines = isFields(structure) ? inner(Object.entries(structure), 0) : linesOf('', structure, 0)
  const shown = lines.slice(0, MAX_LINES)
  const more = lines.length - shown.length
  const others = foreign.filter(name => !dangerous.includes(name))
  return [
    bold(LAYOUTS[layout]),
    ...(dangerous.length > 0 ? [red(`loads ${named(dangerous)}: do not open this with torch.load`)] : []),
    ...(others.length > 0 ? [`names ${named(others)}`] : []),
    ...shown.map(clipped),
    ...(more > 0 ? [`… and ${more} lines more: --format json has all`] : []),
    '',
  ].join('\n')
}

function named(names: readonly string[]): string {
  const more = names.length - MAX_NAMES
  return `${names.slice(0, MAX_NAMES).map(safe).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

function clipped(line: string): string {
  return line.length > MAX_LINE_LENGTH ? `${line.slice(0, MAX_LINE_LENGTH - 1)}…` : line
}

function linesOf(key: string, value: Value, depth: number): string[] {
  const head = `${'  '.repeat(depth)}${key === '' ? '' : `${safe(key)}: `}`
  if (isList(value)) {
    if (value.every(isScalar)) return [`${head}[${value.map(shortText).join(', ')}]`]
    return [
      `${head}${itemCount(value)}`,
      ...inner(
        value.map((item, i) => [`${i}`, item]),
        depth + 1,
      ),
    ]
  }
  if (typeof value !== 'object' || value === null) return [head + shortText(value)]
  if ('tensor' in value || 'bytes' in value || 'more' in value) return [head + shortText(value)]
  if (typeof value.class === 'string') {
    const parts = Object.entries(value).filter(([part]) => part !== 'class')
    const only = parts.length === 1 ? parts[0]![1] : null
    return [head + safe(value.class), ...inner(isFields(only) ? Object.entries(only) : parts, depth + 1)]
  }
  const entries = Object.entries(value)
  return entries.length === 0 ? [`${head}{}`] : [head.trimEnd(), ...inner(entries, depth + 1)]
}

/** The lines of a dict or a list. Of many values that hold only tensors, the first are shown. */
function inner(entries: readonly (readonly [string, Value])[], depth: number): string[] {
  const tensors = entries.filter(([, value]) => tensorsIn(value) > 0)
  const hidden = tensors.length > MAX_TENSORS ? tensors.slice(MAX_TENSORS / 2) : []
  const isHidden = new Set(hidden)
  const lines = entries.filter(entry => !isHidden.has(entry)).flatMap(([key, value]) => linesOf(key, value, depth))
  if (hidden.length === 0) return lines
  const count = hidden.reduce((sum, [, value]) => sum + tensorsIn(value), 0)
  return [...lines, `${'  '.repeat(depth)}… ${count} tensors more`]
}

/** The number of tensors in a value; 0 if it holds anything else. */
function tensorsIn(value: Value): number {
  if (isTensor(value)) return 1
  const values = isList(value) ? value : isFields(value) ? Object.values(value) : []
  let count = 0
  for (const item of values) {
    const itemCount = tensorsIn(item)
    if (itemCount === 0) return 0
    count += itemCount
  }
  return count
}

function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value)
}

function itemCount({ length }: readonly Value[]): string {
  return `${length} ${length === 1 ? 'item' : 'items'}`
}

function isScalar(value: Value): boolean {
  return typeof value !== 'object' || value === null
}

function isFields(value: Value): value is { readonly [key: string]: Value } {
  return typeof value === 'object' && value !== null && !isList(value) && !('class' in value) && !isTensor(value)
}

function isTensor(value: Value): boolean {
  return typeof value === 'object' && value !== null && !isList(value) && typeof value.tensor === 'string'
}

function shortText(value: Value): string {
  if (typeof value === 'string') return safe(JSON.stringify(value))
  if (typeof value !== 'object' || value === null) return value === null ? 'none' : `${value}`
  if (isList(value)) return itemCount(value)
  if (typeof value.tensor === 'string') {
    if (typeof value.unread === 'string') return `${safe(value.tensor)}, not read`
    return `${safe(value.tensor)} [${(value.shape as readonly number[]).join(', ')}]`
  }
  if (typeof value.bytes === 'number') return `${value.bytes} bytes`
  return `… ${JSON.stringify(value.more)} more`
}
