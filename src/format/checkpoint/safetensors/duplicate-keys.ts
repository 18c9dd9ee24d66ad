/** Keys that come twice in one object of a JSON text, which parsers keep silent about: others may take the other value. */

import { jsonTokens } from '../../json.js'

export interface DuplicateKey {
  readonly key: string
  readonly at: number
  /** The key of the outermost object whose value has it; null: it is one of these itself. */
  readonly within: string | null
}

/** The keys that occur twice in an object. @param text valid JSON */
export function* duplicateKeys(text: string): Generator<DuplicateKey> {
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
      if (keys.has(key)) yield { key, at, within: open.length === 1 ? null : outermost }
      keys.add(key)
    }
  }
}
