/** Mutations of JSON that stays JSON: values replaced, keys dropped, doubled and renamed, lists cut and repeated. */

import { type Chance, mutateBytes, utf8 } from './bytes.js'

/** Values as text, since JSON.parse would lose some of them. */
const VALUES = [
  'null',
  'true',
  'false',
  '0',
  '-0',
  '-1',
  '1',
  '1e3',
  '0.5',
  '1e400',
  '9007199254740991',
  '9007199254740992',
  '18446744073709551616',
  '""',
  '"a"',
  '"../../../etc/passwd"',
  '"/etc/passwd"',
  '"file:///etc/passwd"',
  '"events/000000000000/000000000000_worker_0.tfevents"',
  '"\\u0000"',
  '"\\ud800"',
  '"__proto__"',
  '"TRAIN"',
  '[]',
  '{}',
  '[[]]',
  '[null]',
  '{"__proto__": 1}',
  `${'['.repeat(2000)}${']'.repeat(2000)}`,
]

/** A value that was parsed, or text that stands for one. */
type Json = Text | readonly Json[] | ReadonlyMap<string, Json>
class Text {
  constructor(readonly text: string) {}
}

/** Mutates a JSON text, half of the time as bytes; always so if it is none. */
export function mutateJson(
  bytes: Uint8Array,
  chance: Chance,
  words: readonly Uint8Array[],
  other: () => Uint8Array,
): Uint8Array {
  const root = chance.once(2) ? parsed(bytes) : undefined
  if (root === undefined) return mutateBytes(bytes, chance, words, other)
  let changed = fromValue(root)
  for (let left = 1 + chance.below(3); left > 0; left--) changed = change(changed, chance, words)
  return utf8(toText(changed, chance.once(4) ? '' : ' '))
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return undefined
  }
}

function fromValue(value: unknown): Json {
  if (Array.isArray(value)) return value.map(fromValue)
  if (typeof value !== 'object' || value === null) return new Text(JSON.stringify(value))
  return new Map(Object.entries(value).map(([key, entry]) => [key, fromValue(entry)]))
}

function toText(json: Json, blank: string): string {
  if (json instanceof Text) return json.text
  if (json instanceof Map) {
    const entries = [...(json as ReadonlyMap<string, Json>)]
    // A key with a NUL at its end is one that is there twice.
    const keyText = (key: string) => JSON.stringify(key.endsWith('\0') ? key.slice(0, -1) : key)
    return `{${entries.map(([key, entry]) => `${keyText(key)}:${blank}${toText(entry, blank)}`).join(`,${blank}`)}}`
  }
  return `[${(json as readonly Json[]).map(entry => toText(entry, blank)).join(`,${blank}`)}]`
}

/** The same with one thing changed, somewhere. */
function change(json: Json, chance: Chance, words: readonly Uint8Array[]): Json {
  if (json instanceof Text || chance.once(6)) return replacement(json, chance, words)
  if (json instanceof Map) {
    const entries = [...(json as ReadonlyMap<string, Json>)]
    const at = chance.below(entries.length)
    const entry = entries[at]
    if (entry === undefined || chance.once(12)) return new Map([...entries, [wordOf(chance, words), new Text('1')]])
    const [key, value] = entry
    switch (chance.below(12)) {
      case 0:
        return new Map(entries.toSpliced(at, 1))
      case 1:
        return new Map(entries.toSpliced(at, 0, [`${key}\0`, change(value, chance, words)]))
      case 2:
        return new Map(entries.with(at, [wordOf(chance, words), value]))
      case 3:
        return new Map(entries.toSpliced(at, 1).toSpliced(chance.below(entries.length), 0, entry))
      default:
        return new Map(entries.with(at, [key, change(value, chance, words)]))
    }
  }
  const list = json as readonly Json[]
  const at = chance.below(list.length)
  const element = list[at]
  if (element === undefined) return [replacement(json, chance, words)]
  switch (chance.below(8)) {
    case 0:
      return list.toSpliced(at, 1)
    case 1:
      return list.toSpliced(at, 0, element)
    default:
      return list.with(at, change(element, chance, words))
  }
}

function replacement(json: Json, chance: Chance, words: readonly Uint8Array[]): Json {
  if (chance.once(4) && words.length > 0) return new Text(JSON.stringify(wordOf(chance, words)))
  if (chance.once(6)) return [json]
  return new Text(chance.pick(VALUES))
}

function wordOf(chance: Chance, words: readonly Uint8Array[]): string {
  return words.length === 0 ? 'a' : new TextDecoder().decode(chance.pick(words))
}
