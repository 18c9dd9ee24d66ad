/** What may be shown on a terminal, how wide it is there, and in which colours. */

import pc from 'picocolors'

export type Colors = ReturnType<typeof pc.createColors>

/** Colours for a stream: none unless it is a terminal and nobody asked for none (NO_COLOR, --no-color, TERM=dumb). */
export function colorsFor(stream: { readonly isTTY?: boolean } | null): Colors {
  return pc.createColors(stream?.isTTY === true && pc.isColorSupported && !process.argv.includes('--no-color'))
}

/** Controls, bidi and other invisible marks, line separators, halves of surrogate pairs. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu
const MAYBE_UNSAFE = /[^\x20-\x7e]/
const NAMED: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** A text as it may be shown: whatever could move the cursor, colour or reorder the line is spelled out (`\x1b`). */
export function safe(text: string): string {
  return MAYBE_UNSAFE.test(text) ? text.replace(UNSAFE, mark => NAMED[mark] ?? escaped(mark)) : text
}

/** JSON as it may be shown on a terminal; it parses to the same. */
export function safeJson(json: string): string {
  return MAYBE_UNSAFE.test(json) ? json.replace(UNSAFE, utf16Escaped) : json
}

/** The value of every UTF-16 unit of a character, as JSON spells it. */
function utf16Escaped(mark: string): string {
  return Array.from({ length: mark.length }, (_, i) => `\\u${hexDigits(mark.charCodeAt(i), 4)}`).join('')
}

function escaped(mark: string): string {
  const code = mark.codePointAt(0)!
  return code < 0x100
    ? `\\x${hexDigits(code, 2)}`
    : code < 0x10000
      ? `\\u${hexDigits(code, 4)}`
      : `\\u{${hexDigits(code, 5)}}`
}

function hexDigits(code: number, digits: number): string {
  return code.toString(16).padStart(digits, '0')
}

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/u
const VERY_WIDE = /[\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u
const MARK = /\p{M}/u
/** Colours are the only escape sequences that get into a text, and are ours: `safe` leaves none in what it is given. */
const COLOUR = /\p{Cc}\[[\d;]*m/gu

/** Columns a safe text takes on a terminal: two for the characters of East Asia, none for combining ones and colours. */
export function widthOf(text: string): number {
  if (!MAYBE_UNSAFE.test(text)) return text.length
  let width = 0
  for (const character of text.replace(COLOUR, '')) {
    if (!MARK.test(character)) width += WIDE.test(character) || VERY_WIDE.test(character) ? 2 : 1
  }
  return width
}

export function padEnd(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - widthOf(text)))
}

export function padStart(text: string, width: number): string {
  return ' '.repeat(Math.max(0, width - widthOf(text))) + text
}

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

/** Longer texts stick out of their column: one of them does not widen it for all. */
const MAX_COLUMN_WIDTH = 60
/** Nobody reads more of a text, and of a name there can be ten megabytes in every row. */
const MAX_NAME_LENGTH = 500

/** A name as it may be shown in a table: safe, and cut if it is endless. */
export function safeName(name: string): string {
  return safe(name.length > MAX_NAME_LENGTH ? `${name.slice(0, MAX_NAME_LENGTH)}…` : name)
}

/**
 * Lines of aligned columns.
 * @param rows safe texts; the rows may differ in length
 * @param right the columns that are set flush right
 */
export function columns(rows: Iterable<readonly string[]>, right: readonly number[] = []): string {
  return [...columnLines(rows, right)].join('')
}

/** The lines one by one, of any number of rows. @param rows are gone through twice */
export function* columnLines(rows: Iterable<readonly string[]>, right: readonly number[] = []): Generator<string> {
  const widths: number[] = []
  for (const row of rows) {
    for (const [i, text] of row.entries()) {
      const width = widthOf(text)
      widths[i] = Math.max(widths[i] ?? 0, width > MAX_COLUMN_WIDTH ? 0 : width)
    }
  }
  const line = (row: readonly string[]) =>
    row.map((text, i) => (right.includes(i) ? padStart(text, widths[i]!) : padEnd(text, widths[i]!))).join('  ')
  for (const row of rows) yield `${line(row).trimEnd()}\n`
}

/** A line for people, on stderr. */
export function note(message: string): void {
  process.stderr.write(`trialscan: ${safe(message)}\n`)
}
