/** The formats of output: one table for all commands. */

export type FormatName = 'table' | 'jsonl' | 'csv' | 'json' | 'npy' | 'parquet' | 'arrow' | 'github' | 'junit' | 'sarif'

/** The formats of commands that judge, for other programs. */
const OF_JUDGES = ['json', 'github', 'junit', 'sarif'] as const

/** The formats of each command, the default on a terminal first. `piped` is the default elsewhere. */
export const FORMATS = {
  ls: { names: ['table', 'json', 'jsonl', 'csv'], piped: 'table' },
  summary: { names: ['table', 'json'], piped: 'table' },
  scan: { names: ['table', 'jsonl', 'csv', 'parquet', 'arrow'], piped: 'jsonl' },
  sql: { names: ['table', 'jsonl', 'csv'], piped: 'jsonl' },
  top: { names: ['table', 'jsonl', 'csv'], piped: 'jsonl' },
  show: { names: ['table', 'json', 'jsonl', 'csv', 'npy'], piped: 'table' },
  check: { names: ['table', 'jsonl', 'csv', ...OF_JUDGES], piped: 'jsonl' },
  'rule-invoker': { names: ['table', 'jsonl', 'csv'], piped: 'table' },
  diff: { names: ['table', 'jsonl', 'csv', ...OF_JUDGES, 'parquet', 'arrow'], piped: 'jsonl' },
  nan: { names: ['table', 'jsonl', 'csv', ...OF_JUDGES], piped: 'jsonl' },
  verify: { names: ['table', 'jsonl', 'csv', ...OF_JUDGES], piped: 'jsonl' },
  reindex: { names: ['table', 'json', 'jsonl', 'csv'], piped: 'table' },
  'fleet status': { names: ['table', 'json', 'jsonl', 'csv'], piped: 'table' },
  repair: { names: ['table', 'json', 'jsonl', 'csv'], piped: 'jsonl' },
} as const satisfies Readonly<Record<string, { readonly names: readonly FormatName[]; readonly piped: FormatName }>>

export type Command = keyof typeof FORMATS

export type FormatOf<C extends Command> = (typeof FORMATS)[C]['names'][number]

/** Formats by the ending of a file's name. */
const ENDINGS: Readonly<Record<string, FormatName>> = {
  '.arrow': 'arrow',
  '.arrows': 'arrow',
  '.csv': 'csv',
  '.json': 'json',
  '.jsonl': 'jsonl',
  '.ndjson': 'jsonl',
  '.npy': 'npy',
  '.parquet': 'parquet',
  '.sarif': 'sarif',
  '.txt': 'table',
  '.xml': 'junit',
}

/** The endings of formats that no command writes. */
const FOREIGN =
  /\.(avro|bz2|db|feather|gif|gz|h5|hdf5|html?|jpe?g|md|npz|ods|orc|pdf|pickle|pkl|png|pth?|safetensors|sqlite3?|svg|tsv|xlsx?|xz|ya?ml|zip|zst)$/i

/** True if a file's name tells a format that no command writes. */
export function isForeignName(path: string): boolean {
  return FOREIGN.test(path)
}

/** The format that a file's name tells, if any. */
export function formatOfName(path: string): FormatName | undefined {
  return ENDINGS[/\.[^./\\]+$/.exec(path.replace(COMPRESSED, ''))?.[0].toLowerCase() ?? '']
}

const COMPRESSED = /\.(gz|zst)$/i

/** The compression that a file's name tells, if any. */
export function compressionOf(path: string): 'gz' | 'zst' | undefined {
  return COMPRESSED.exec(path)?.[1]?.toLowerCase() as 'gz' | 'zst' | undefined
}

/** True for formats of text, which can be compressed as a whole. */
export function isText(format: FormatName): boolean {
  return format !== 'npy' && format !== 'parquet' && format !== 'arrow'
}

/** `table, jsonl or csv`. */
export function formatNames(command: Command): string {
  const { names } = FORMATS[command]
  return `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`
}
