/** The keys of a JSON text. One that comes twice in an object is kept silent about by parsers: others may take the other value. */

import { jsonTokens } from '../../json.js'

export interface JsonKey {
  readonly key: string
  readonly at: number
  /** The key of the outermost object whose value has it; null: it is one of these itself. */
  readonly within: string | null
  /** True if its object had it before. */
  readonly isAgain: boolean
}

/** The keys that occur twice in an object. @param text valid JSON */
export function* jsonKeys(text: string): Generator<JsonKey> {
  /** The keys of each open object; null for a list. */
  const open: (Set<string> | null)[] = []
  let isKey = false
  let outermost = ''
  for (const { token, at } of jsonTokens(text)) {
    const keys = open.at(-1)
    if (token === '{' || token === '[') {
      open.push(token === '{' ? new Set() : null)
      isKey = token === '{'
    } else if (token === '}' || token === ']') open.pop()
    else if (token === ',') isKey = keys instanceof Set
    else if (token === ':') isKey = false
    else if (isKey && keys) {
      const key = JSON.parse(token) as string
      if (open.length === 1) outermost = key
      yield { key, at, within: open.length === 1 ? null : outermost, isAgain: keys.has(key) }
      keys.add(key)
    }
  }
}
