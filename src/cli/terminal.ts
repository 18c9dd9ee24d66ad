/** Text on a terminal: safe characters, widths and colours. */

import pc from 'picocolors'

export type Colors = ReturnType<typeof pc.createColors>

/** Colours for a stream: none unless it is a terminal, and none with NO_COLOR, --no-color or TERM=dumb. */
export function colorsFor(stream: { readonly isTTY?: boolean } | null): Colors {
  return pc.createColors(stream?.isTTY === true && pc.isColorSupported && !process.argv.includes('--no-color'))
}

/** Controls, bidi and other invisible marks, line separators, halves of surrogate pairs. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu
const MAYBE_UNSAFE = /[^\x20-\x7e]|::|##\[/
/** Commands to a log of GitHub Actions: `::error` at the start of a line, or of a word that a line may begin with, and `##[error]` anywhere. */
const COMMAND = /(?<!\S):(?=:)|#(?=#\[)/g
const NAMED: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** Escapes characters that could move the cursor, colour or reorder the line, or be a command of a log: `\x1b`. */
export function safe(text: string): string {
  if (!MAYBE_UNSAFE.test(text)) return text
  return text.replace(UNSAFE, mark => NAMED[mark] ?? escaped(mark)).replace(COMMAND, escaped)
}

/** Escapes the same in JSON, which still parses to the same. */
export function safeJson(json: string): string {
  return MAYBE_UNSAFE.test(json) ? json.replace(UNSAFE, utf16Escaped).replace(/#(?=#\[)/g, utf16Escaped) : json
}

/** The UTF-16 units of a character as JSON escapes them. */
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
/** The escape sequences of colours, the only ones in a safe text. */
const COLOUR = /\p{Cc}\[[\d;]*m/gu

/** The columns that a safe text takes: two for wide East Asian characters, none for combining ones and colours. */
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

/** The number of columns of the terminal; elsewhere 80. */
export function screenWidth(onTerminal: boolean): number {
  return onTerminal ? process.stdout.columns || SCREEN_WIDTH : SCREEN_WIDTH
}

/** A text that fits a width, cut in its middle, since names differ at their ends. */
export function elided(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  const tail = Math.ceil((width - 1) * 0.7)
  return `${text.slice(0, width - 1 - tail)}…${text.slice(-tail)}`
}

/** Wraps a text at words. A word that is too long for a line gets one of its own. */
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

const SCREEN_WIDTH = 80
/** The width from which a text overflows its column, instead of widening it for all rows. */
const MAX_COLUMN_WIDTH = 60
/** The length from which names are cut. A name can have ten megabytes in every row. */
const MAX_NAME_LENGTH = 500

/** A name for a table: safe, and cut if it is too long. */
export function safeName(name: string): string {
  return safe(name.length > MAX_NAME_LENGTH ? `${name.slice(0, MAX_NAME_LENGTH)}…` : name)
}

/**
 * Lines of aligned columns.
 * @param rows safe texts; the rows may differ in length
 * @param right the indices of the columns that are aligned right
 */
export function columns(rows: Iterable<readonly string[]>, right: readonly number[] = []): string {
  return [...columnLines(rows, right)].join('')
}

/** The shortest width of cut cells. */
const MIN_CELL_WIDTH = 16

/**
 * Rows whose lines fit a width, with the cells of a column cut in their middle.
 * @param width null for no limit
 */
export function fitted(
  rows: readonly (readonly string[])[],
  column: number,
  width: number | null,
): readonly (readonly string[])[] {
  if (width === null) return rows
  const widths: number[] = []
  for (const row of rows) for (const [i, text] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, widthOf(text))
  const excess = widths.reduce((sum, width) => sum + width + 2, -2) - width
  if (excess <= 0) return rows
  const most = Math.max(MIN_CELL_WIDTH, (widths[column] ?? 0) - excess)
  return rows.map(row => row.map((text, i) => (i === column ? elided(text, most) : text)))
}

/** Names and the cells of the long column keep these widths as long as there is another column to leave out. */
const NAME_WIDTH = 36
const LONG_WIDTH = 24

/** The columns of a table: those aligned right, those left out where the lines don't fit, in that order, and one of long texts. */
export interface NarrowedColumns {
  readonly right: readonly number[]
  readonly spare: readonly number[]
  readonly long: number
}

/**
 * A table with names in its first column, whose lines fit a width: columns are left out, then long texts and names cut in their middle.
 * @param width null for no limit
 */
export function narrowed(
  rows: readonly (readonly string[])[],
  { right, spare, long }: NarrowedColumns,
  width: number | null,
): string {
  if (width === null) return columns(rows, right)
  const widths = rows[0]!.map((_, i) => rows.reduce((most, row) => Math.max(most, widthOf(row[i] ?? '')), 0))
  widths[0] = Math.min(widths[0]!, NAME_WIDTH)
  widths[long] = Math.min(widths[long]!, LONG_WIDTH)
  let kept = widths.map((_, i) => i)
  const total = () => kept.reduce((sum, i) => sum + widths[i]! + 2, -2)
  for (const column of spare) if (total() > width) kept = kept.filter(i => i !== column)
  const most = Math.max(LONG_WIDTH, width - total() + widths[long]!)
  const cells = rows.map(row => kept.map(i => (i === long ? elided(row[i] ?? '', most) : (row[i] ?? ''))))
  return columns(
    fitted(cells, 0, width),
    right.map(i => kept.indexOf(i)),
  )
}

/** The number of rows measured between two empty texts, at which a writer may yield. */
const MEASURED_AT_ONCE = 4096

/**
 * The lines one by one, after empty texts if there are many rows.
 * @param rows are iterated twice
 */
export function* columnLines(rows: Iterable<readonly string[]>, right: readonly number[] = []): Generator<string> {
  const widths: number[] = []
  let measured = 0
  for (const row of rows) {
    if (++measured % MEASURED_AT_ONCE === 0) yield ''
    for (const [i, text] of row.entries()) {
      const width = widthOf(text)
      widths[i] = Math.max(widths[i] ?? 0, width > MAX_COLUMN_WIDTH ? 0 : width)
    }
  }
  const line = (row: readonly string[]) =>
    row.map((text, i) => (right.includes(i) ? padStart(text, widths[i]!) : padEnd(text, widths[i]!))).join('  ')
  for (const row of rows) yield `${line(row).trimEnd()}\n`
}

/** Writes a line for people to stderr. */
export function note(message: string): void {
  process.stderr.write(`trialscan: ${safe(message)}\n`)
}
