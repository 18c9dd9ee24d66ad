/** The formats that data can be printed in: one table for every command. */

export type FormatName = 'table' | 'jsonl' | 'csv' | 'json' | 'npy'

/** What each command can print, the default on a terminal first; `piped`: the default elsewhere. */
export const FORMATS = {
  ls: { names: ['table', 'json', 'jsonl', 'csv'], piped: 'table' },
  scan: { names: ['table', 'jsonl', 'csv'], piped: 'jsonl' },
  show: { names: ['table', 'json', 'jsonl', 'csv', 'npy'], piped: 'table' },
  check: { names: ['table', 'jsonl', 'csv'], piped: 'jsonl' },
  'rule-invoker': { names: ['table', 'jsonl', 'csv'], piped: 'table' },
  verify: { names: ['table', 'jsonl', 'csv'], piped: 'jsonl' },
  reindex: { names: ['table', 'json', 'jsonl', 'csv'], piped: 'table' },
  repair: { names: ['table', 'json', 'jsonl', 'csv'], piped: 'jsonl' },
} as const satisfies Readonly<Record<string, { readonly names: readonly FormatName[]; readonly piped: FormatName }>>

export type Command = keyof typeof FORMATS

/** What a command can print. */
export type FormatOf<C extends Command> = (typeof FORMATS)[C]['names'][number]

/** What the ending of a file name says. */
const ENDINGS: Readonly<Record<string, FormatName>> = {
  '.csv': 'csv',
  '.json': 'json',
  '.jsonl': 'jsonl',
  '.ndjson': 'jsonl',
  '.npy': 'npy',
  '.txt': 'table',
}

/** The format that the name of a file stands for; undefined where it says nothing. */
export function formatOfName(path: string): FormatName | undefined {
  return ENDINGS[/\.[^./\\]+$/.exec(path)?.[0].toLowerCase() ?? '']
}

/** `table, jsonl or csv`. */
export function formatNames(command: Command): string {
  const { names } = FORMATS[command]
  return `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`
}
