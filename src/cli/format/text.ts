/** Text set in lines. */

import { widthOf } from '../terminal.js'

/** Lines of whole words; a word that is too long for a line has one for itself. */
export function wrapped(text: string, width: number, indent: string, hanging: string): string {
  const lines: string[] = []
  let line = indent
  let isEmpty = true
  for (const word of text.split(' ')) {
    const longer = isEmpty ? line + word : `${line} ${word}`
    if (!isEmpty && widthOf(longer) > width) {
      lines.push(line)
      line = hanging + word
    } else line = longer
    isEmpty = false
  }
  return [...lines, line].join('\n')
}
