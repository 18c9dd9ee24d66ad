/** The formats of Tornasole (2019, before smdebug): CSV index files, and one collections file of lines. */

import { FormatError, quote } from '../base/errors.js'
import type { CollectionConfig } from './collections.js'
import type { TensorLocation } from './index-file.js'
import { checkEventFileName, EVENTS_DIRECTORY } from './paths.js'
import { parseReductionName } from './reduction-name.js'

/** A Tornasole index file. It has no mode; only the Events do. */
export interface TornasoleIndexFile {
  /** The path relative to the trial, checked to be inside it. */
  readonly eventFile: string | null
  readonly tensors: readonly TensorLocation[]
}

/** A line: `tensor name, event file path, start,length`. */
const INDEX_LINE = /^(.+), (\d+), ?(\d+)$/s
/** An absolute path, or one below a URL's root. */
const ROOTED = /^(?:[a-z0-9]+:\/)?\/./s

const decoder = new TextDecoder('utf-8', { fatal: true })

/** The text of an index file, which must be UTF-8. @throws FormatError `BadIndexFile` */
export function tornasoleText(bytes: Uint8Array, url: string): string {
  try {
    return decoder.decode(bytes)
  } catch (cause) {
    const message = `${url}: expected UTF-8, got bytes that are not`
    throw new FormatError('BadIndexFile', message, { url, expected: 'UTF-8', got: 'other bytes' }, cause)
  }
}

/**
 * Parses an index file, line by line.
 * @param text the whole file
 * @param url the file's URL, for errors
 * @throws FormatError `BadIndexFile`, or `UnsafePath` for an event file outside the trial
 */
export function parseTornasoleIndex(text: string, url: string): TornasoleIndexFile {
  let eventFile: string | null = null
  // Usually the same as on the line before.
  let known = { path: '', file: '' }
  const tensors = linesOf(text).map(([line, number]): TensorLocation => {
    const [, place = '', start, length] = INDEX_LINE.exec(line) ?? []
    const [name, path] = nameAndPath(place) ?? []
    const [startByte, byteLength] = [Number(start), Number(length)]
    if (name === undefined || path === undefined || !Number.isSafeInteger(startByte + byteLength)) {
      throw csvFault('BadIndexFile', url, number, '`tensor name, event file, start,length`', line)
    }
    const file = path === known.path ? known.file : checkEventFileName(inTrial(path), url)
    known = { path, file }
    eventFile ??= file
    if (file !== eventFile) throw csvFault('BadIndexFile', url, number, `the one event file ${eventFile}`, line)
    return { name, startByte, byteLength }
  })
  return { eventFile, tensors }
}

/**
 * Splits a name from the following path. Both may contain commas, though paths hardly ever do. The path is absolute, or relative to the
 * trial without a comma; failing that, absolute with `/events/` in it; failing that, the part behind the last comma. Linear time.
 */
function nameAndPath(text: string): readonly [name: string, path: string] | null {
  const cutAt = (at: number) => [text.slice(0, at), text.slice(at + 2)] as const
  const last = text.lastIndexOf(',')
  const isSeparator = last > 0 && text[last + 1] === ' ' && last + 2 < text.length
  const rest = text.slice(last + 2)
  if (isSeparator && (ROOTED.test(rest) || /^events\/./s.test(rest))) return cutAt(last)
  const events = text.lastIndexOf(`/${EVENTS_DIRECTORY}/`, text.length - EVENTS_DIRECTORY.length - 3)
  for (let at = text.indexOf(', ', 1); at >= 0 && at < events; at = text.indexOf(', ', at + 1)) {
    const scheme = /(?:[a-z0-9]+:\/)?/y
    scheme.lastIndex = at + 2
    scheme.test(text)
    const root = scheme.lastIndex
    if (text[root] === '/' && root < events) return cutAt(at)
  }
  return isSeparator ? cutAt(last) : null
}

/** The text of an index file, with the event file's path in the trial. */
export function tornasoleIndexText({ eventFile, tensors }: TornasoleIndexFile): string {
  return tensors
    .map(({ name, startByte, byteLength }) => `${name}, ${eventFile}, ${startByte},${byteLength}\n`)
    .join('')
}

/** The event file's path in the trial: its path on the training machine, from the last `events/` on. */
function inTrial(path: string): string {
  const at = path.lastIndexOf(`/${EVENTS_DIRECTORY}/`)
  return at < 0 ? path : path.slice(at + 1)
}

/**
 * Parses `collections.ts`: one line per collection, `v0!@name!@regex,regex!@tensor,tensor!@reduction tensor names!@…`. The reductions and
 * steps to save use a notation of their own, which is skipped.
 * @throws FormatError `BadCollectionsFile`
 */
export function parseTornasoleCollections(text: string, url: string): Map<string, CollectionConfig> {
  const collections = new Map<string, CollectionConfig>()
  for (const [line, number] of linesOf(text)) {
    const [version, name, patterns, tensors, reductions] = line.split('!@')
    if (version !== 'v0' || name === undefined || patterns === undefined || tensors === undefined) {
      throw csvFault('BadCollectionsFile', url, number, '`v0!@name!@patterns!@tensors!@…`', line)
    }
    const saved = splitNames(reductions ?? '').map(reduction => parseReductionName(reduction)?.tensor ?? reduction)
    collections.set(name, {
      name,
      includeRegex: splitNames(patterns),
      tensorNames: [...new Set([...splitNames(tensors), ...saved])],
      reductionConfig: null,
      saveConfig: null,
      saveHistogram: true,
    })
  }
  return collections
}

function splitNames(text: string): string[] {
  return text.split(',').filter(part => part !== '')
}

/** The non-empty lines, with their numbers from 1 on. */
function linesOf(text: string): (readonly [string, number])[] {
  return text
    .split(/\r?\n/)
    .map((line, i) => [line, i + 1] as const)
    .filter(([line]) => line !== '')
}

function csvFault(code: string, url: string, line: number, expected: string, actual: string): FormatError {
  const got = quote(actual)
  return new FormatError(code, `${url}, line ${line}: expected ${expected}, got ${got}`, { url, line, expected, got })
}
