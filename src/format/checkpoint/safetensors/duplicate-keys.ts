/** Keys that come twice in the outermost object of a JSON text, which parsers keep silent about. */

/** @param text JSON that a parser has accepted */
export function* duplicateKeys(text: string): Generator<{ readonly key: string; readonly at: number }> {
  const seen = new Set<string>()
  let depth = 0
  // A text, or a mark that opens or closes an object or a list.
  for (const { 0: found, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/g)) {
    if (found === '{' || found === '[') depth++
    else if (found === '}' || found === ']') depth--
    else if (depth === 1 && /^\s*:/.test(text.slice(index + found.length, index + found.length + 64))) {
      const key = JSON.parse(found) as string
      if (seen.has(key)) yield { key, at: index }
      seen.add(key)
    }
  }
}
