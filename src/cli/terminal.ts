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

/** The width that tables fit: that of the terminal; elsewhere null, since other programs read one row a line. */
export function tableWidth(onTerminal: boolean): number | null {
  return onTerminal ? screenWidth(true) : null
}

/** A text that fits a width, cut in its middle, since names differ at their ends. A text that is cut loses its colours. */
export function elided(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  text = text.replace(COLOUR, '')
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
 * @param width that lines are to fit; null for no limit
 */
export function columns(
  rows: Iterable<readonly string[]>,
  right: readonly number[] = [],
  width: number | null = null,
): string {
  return [...columnLines(rows, right, width)].join('')
}

/** The shortest width of columns whose texts are cut. */
const MIN_CELL_WIDTH = 16

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
    cells,
    right.map(i => kept.indexOf(i)),
    width,
  )
}

/** The number of rows measured between two empty texts, at which a writer may yield. */
const MEASURED_AT_ONCE = 4096

/**
 * The lines one by one, after empty texts if there are many rows. Where they do not fit, the longest texts are cut in their middle;
 * columns for which that is not enough are below the first.
 * @param rows are iterated twice
 */
export function* columnLines(
  rows: Iterable<readonly string[]>,
  right: readonly number[] = [],
  width: number | null = null,
): Generator<string> {
  const widths: number[] = []
  let measured = 0
  for (const row of rows) {
    if (++measured % MEASURED_AT_ONCE === 0) yield ''
    for (const [i, text] of row.entries()) {
      const cell = widthOf(text)
      widths[i] = Math.max(widths[i] ?? 0, width === null && cell > MAX_COLUMN_WIDTH ? 0 : cell)
    }
  }
  if (width !== null) shorten(widths, right, width)
  const cell = (text: string, i: number) => {
    const shown = width === null ? text : elided(text, widths[i]!)
    return right.includes(i) ? padStart(shown, widths[i]!) : padEnd(shown, widths[i]!)
  }
  for (const row of rows) yield `${besideOrBelow(row.map(cell), 0, width)}\n`
}

/** Makes the widest of the columns of texts narrower, until all fit or none is wide. */
function shorten(widths: number[], right: readonly number[], width: number): void {
  for (;;) {
    const excess = widths.reduce((sum, cell) => sum + cell + 2, -2) - width
    const texts = widths.map((cell, i) => (right.includes(i) ? 0 : cell))
    const widest = Math.max(0, ...texts)
    if (excess <= 0 || widest <= MIN_CELL_WIDTH) return
    const second = Math.max(MIN_CELL_WIDTH, ...texts.filter(cell => cell < widest))
    widths[texts.indexOf(widest)] = Math.max(widest - excess, Math.min(second, widest - 1))
  }
}

/** Cells beside one another, and what a line has no room for on further lines. @param indent of those */
export function besideOrBelow(cells: readonly string[], indent: number, width: number | null): string {
  if (width === null) return cells.join('  ').trimEnd()
  const lines: string[] = []
  let line = ''
  let used = 0
  for (const cell of cells) {
    const more = widthOf(cell.trimEnd())
    if (used > 0 && more > 0 && used + 2 + more > width) {
      lines.push(line.trimEnd())
      used = Math.max(2, Math.min(indent, width - more))
      line = ' '.repeat(used) + cell
    } else {
      line += used > 0 ? `  ${cell}` : cell
      used += used > 0 ? 2 : 0
    }
    used += widthOf(cell)
  }
  return [...lines, line.trimEnd()].join('\n')
}

/** Writes a line for people to stderr. */
export function note(message: string): void {
  process.stderr.write(`trialscan: ${safe(message)}\n`)
}
