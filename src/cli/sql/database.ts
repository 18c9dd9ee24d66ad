/** DuckDB, an optional package, in a process of its own. */

import { type ChildProcess, fork } from 'node:child_process'
import { rmSync } from 'node:fs'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, parse } from 'node:path'
import { fileURLToPath } from 'node:url'
import { TrialscanError, UsageError } from '../../base/errors.js'

const PACKAGE = '@duckdb/node-api'
const DEFAULT_MEMORY_MIB = 1024
const DEFAULT_SECONDS = 600

/** The used part of DuckDB, whose types can't be imported where it is not installed. */
export interface DuckDB {
  readonly DuckDBInstance: {
    create(path: string, options: Readonly<Record<string, string>>): Promise<{ connect(): Promise<Connection> }>
  }
}

interface Connection {
  run(statement: string): Promise<unknown>
  runAndReadAll(query: string, values: readonly string[]): Promise<{ getRows(): readonly (readonly unknown[])[] }>
  extractStatements(query: string): Promise<{ readonly count: number; prepare(index: number): Promise<Prepared> }>
}

export interface Prepared {
  readonly statementType: number
  stream(): Promise<{
    columnNames(): readonly string[]
    fetchChunk(): Promise<{ readonly rowCount: number; getRows(): readonly (readonly unknown[])[] } | null>
  }>
}

/** A request to the database process. */
export type DatabaseRequest =
  | {
      readonly kind: 'open'
      readonly package: string
      readonly directory: string
      /** MiB. */
      readonly memory: number
      readonly threads: number | undefined
      readonly allowFiles: boolean
    }
  /** Asks for the first value of the first row. */
  | { readonly kind: 'get'; readonly query: string; readonly values: readonly string[] }
  | { readonly kind: 'run'; readonly statement: string }
  | {
      readonly kind: 'lock'
      readonly paths: { readonly files: readonly string[]; readonly directories: readonly string[] }
    }
  /** Begins a query; the result is the names of its columns. */
  | { readonly kind: 'ask'; readonly query: string }
  /** Asks for the next rows; null if there are no more. */
  | { readonly kind: 'next' }

/** The answer of the process, or the report that it has taken too much memory. */
export type Reply =
  | { readonly result: unknown }
  | { readonly error: { readonly message: string; readonly code?: string } }
  | { readonly isTooLarge: true }

export interface DatabaseOptions {
  readonly threads?: number | undefined
  /** MiB. Default: 1,024. */
  readonly memory?: number | undefined
  /** The time limit of a query in seconds. Default: 600. */
  readonly seconds?: number | undefined
  /** True if queries may read and write files of the disk. */
  readonly allowFiles?: boolean | undefined
  readonly signal: AbortSignal
}

/** The tables that a query can name. */
export const TABLES = ['scan', 'tensors', 'steps', 'workers', 'collections', 'findings'] as const

/** The tables and columns that a query names. */
export interface Named {
  /** Tables, in lower case. */
  readonly tables: ReadonlySet<string>
  /** Columns, and fields of structs. */
  readonly columns: ReadonlySet<string>
  /** True if the query selects all columns, or can't be parsed. */
  readonly hasStar: boolean
}

/** Rows of an answer. */
export interface Answer {
  readonly names: readonly string[]
  rows(): AsyncGenerator<readonly unknown[]>
}

export class Database {
  readonly #process: ChildProcess
  readonly #options: DatabaseOptions
  /** The directory of generated tables, and of data that doesn't fit into memory. It is removed at the end. */
  readonly directory: string
  readonly #remove: () => void
  /** The receiver of the answer to the current request. */
  #settle: { resolve(result: unknown): void; reject(error: unknown): void } | null = null
  /** The reason why there are no more answers; null while there are. */
  #failure: unknown = null
  /** The timer that ends a query. */
  #timer: NodeJS.Timeout | undefined

  private constructor(directory: string, options: DatabaseOptions) {
    this.directory = directory
    this.#options = options
    const entry = fileURLToPath(new URL('./database-process.cjs', import.meta.url))
    const child = fork(entry, { serialization: 'advanced', stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    this.#process = child
    child.on('message', (reply: Reply) => this.#take(reply))
    child.on('error', error => this.#fail(error))
    child.on('exit', () => this.#fail(new UsageError('the process of the query has ended before it was done')))
    this.#remove = () => {
      child.kill('SIGKILL')
      rmSync(directory, { recursive: true, force: true })
    }
    process.once('exit', this.#remove)
    options.signal.addEventListener('abort', () => this.#fail(options.signal.reason), { once: true })
  }

  /** @throws UsageError if DuckDB is not installed */
  static async open(options: DatabaseOptions): Promise<Database> {
    options.signal.throwIfAborted()
    const directory = await realpath(await mkdtemp(join(tmpdir(), 'trialscan-sql-')))
    const database = new Database(directory, options)
    const { threads, memory = DEFAULT_MEMORY_MIB, allowFiles = false } = options
    try {
      await database.#request({ kind: 'open', package: PACKAGE, directory, memory, threads, allowFiles })
      return database
    } catch (error) {
      await database.close()
      if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
      throw new UsageError(
        `SQL needs DuckDB, which is not installed: npm install ${PACKAGE}; in a clone of trialscan: npm install --no-save --save-dev ${PACKAGE}`,
        {},
        error,
      )
    }
  }

  /** @throws UsageError for a query that can't be parsed */
  async named(query: string): Promise<Named> {
    const get = { kind: 'get', query: 'select json_serialize_sql($1::varchar)', values: [query] } as const
    const tree = JSON.parse((await this.#request(get)) as string) as Tree
    if (tree.error === true && tree.error_type === 'parser') throw badQuery(String(tree.error_message))
    const names = { tables: new Set<string>(), columns: new Set<string>(), hasStar: tree.error === true }
    collect(tree, names)
    return names
  }

  /** Runs a statement without an answer. */
  async run(statement: string): Promise<void> {
    await answered(() => this.#request({ kind: 'run', statement }))
  }

  /**
   * Runs a query within its time limit. From here on, statements reach no extensions, no network, and no other files
   * than these and the generated ones, unless files are allowed.
   * @throws UsageError with DuckDB's message
   */
  async ask(query: string, files: readonly string[]): Promise<Answer> {
    const { allowFiles = false, seconds = DEFAULT_SECONDS } = this.#options
    const directories = [this.directory, ...(allowFiles ? [parse(process.cwd()).root] : [])]
    const late = `the query took more than ${seconds} s: ask for less, or give it more with --timeout`
    this.#timer = setTimeout(() => this.#fail(new UsageError(late)), seconds * 1000)
    const stopTimer = () => clearTimeout(this.#timer)
    try {
      await this.#request({
        kind: 'lock',
        paths: { files: await Promise.all(files.map(file => realpath(file))), directories },
      })
      const names = (await answered(() => this.#request({ kind: 'ask', query }))) as readonly string[]
      const next = () => answered(() => this.#request({ kind: 'next' }))
      const rows = async function* (): AsyncGenerator<readonly unknown[]> {
        try {
          for (;;) {
            const rows = (await next()) as readonly (readonly unknown[])[] | null
            if (rows === null) return
            yield* rows
          }
        } finally {
          stopTimer()
        }
      }
      return { names, rows }
    } catch (error) {
      stopTimer()
      throw error
    }
  }

  async close(): Promise<void> {
    // Nobody may have asked for the rows.
    clearTimeout(this.#timer)
    this.#fail(new UsageError('the database was closed'))
    process.removeListener('exit', this.#remove)
    await rm(this.directory, { recursive: true, force: true, maxRetries: 5 })
  }

  #request(request: DatabaseRequest): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== null) {
        reject(this.#failure)
        return
      }
      this.#settle = { resolve, reject }
      this.#process.send(request, error => error && this.#fail(error))
    })
  }

  #take(reply: Reply): void {
    if ('isTooLarge' in reply) {
      const { memory = DEFAULT_MEMORY_MIB } = this.#options
      this.#fail(new UsageError(`the query took more than ${memory} MiB: ask for less, or give it more with --memory`))
      return
    }
    const settle = this.#settle
    this.#settle = null
    if ('error' in reply) settle?.reject(Object.assign(new Error(reply.error.message), { code: reply.error.code }))
    else settle?.resolve(reply.result)
  }

  /** Ends the process, whatever it is doing. */
  #fail(error: unknown): void {
    this.#failure ??= error
    this.#process.kill('SIGKILL')
    this.#settle?.reject(this.#failure)
    this.#settle = null
  }
}

/** A text as an SQL literal. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

/** DuckDB's parse tree, as JSON. */
interface Tree {
  readonly [key: string]: unknown
}

function collect(part: unknown, names: { tables: Set<string>; columns: Set<string>; hasStar: boolean }): void {
  if (typeof part !== 'object' || part === null) return
  const { class: kind, column_names, table_name } = part as Tree
  if (kind === 'STAR') names.hasStar = true
  if (Array.isArray(column_names)) for (const name of column_names) names.columns.add(String(name))
  if (typeof table_name === 'string') names.tables.add(table_name.toLowerCase())
  for (const value of Object.values(part)) collect(value, names)
}

async function answered<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    // What is not of the query: it was ended.
    if (error instanceof TrialscanError || !(error instanceof Error) || error.name === 'AbortError') throw error
    throw badQuery(error.message, error)
  }
}

/** DuckDB's message in a line, without the excerpt of the query. */
function badQuery(message: string, cause?: unknown): UsageError {
  const [text = message] = message.replace(/^(?:Parser|Binder|Catalog|Permission) Error: /, '').split(/\n+LINE \d+: /)
  const line = text
    .trim()
    .replace(/\n+/g, ' ')
    .replace('file system operations are disabled by configuration', 'a query reaches files only with --allow-files')
  const tables = /^Table with name .* does not exist/.test(line)
    ? `${line.replace(/ Did you mean .*/, '')} There are ${TABLES.join(', ')}; of a table in a file scan alone`
    : line
  return new UsageError(`the query is wrong: ${tables}`, {}, cause)
}
