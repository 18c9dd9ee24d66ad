/** DuckDB, which is loaded only here. It is an optional package: whoever wants SQL installs it. */

import { rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { UsageError } from '../../index.js'

const PACKAGE = '@duckdb/node-api'

/** What is used of it. Its types can't be imported where it is not installed. */
interface DuckDB {
  readonly DuckDBInstance: {
    create(path: string, options: Readonly<Record<string, string>>): Promise<{ connect(): Promise<Connection> }>
  }
}

interface Connection {
  run(statement: string): Promise<unknown>
  runAndReadAll(query: string, values: readonly string[]): Promise<{ getRows(): readonly (readonly unknown[])[] }>
  stream(query: string): Promise<{
    columnNames(): readonly string[]
    fetchChunk(): Promise<{ readonly rowCount: number; getRows(): readonly (readonly unknown[])[] } | null>
  }>
  interrupt(): void
  closeSync(): void
}

/** What a query can be about. */
export const TABLES = ['scan', 'tensors', 'steps', 'workers', 'collections', 'findings'] as const

/** What a query names. */
export interface Named {
  /** Tables, in lower case. */
  readonly tables: ReadonlySet<string>
  /** Columns, and fields of structs. */
  readonly columns: ReadonlySet<string>
  /** Whether it wants all columns, or can't be looked into. */
  readonly hasStar: boolean
}

/** Rows of an answer. */
export interface Answer {
  readonly names: readonly string[]
  rows(): AsyncGenerator<readonly unknown[]>
}

export class Database {
  readonly #connection: Connection
  /** For tables that are made, and what doesn't fit into memory. It is removed at the end. */
  readonly directory: string
  readonly #remove: () => void

  private constructor(connection: Connection, directory: string) {
    this.#connection = connection
    this.directory = directory
    this.#remove = () => rmSync(directory, { recursive: true, force: true })
    process.once('exit', this.#remove)
  }

  /** @throws UsageError if DuckDB is not installed */
  static async open(threads: number | undefined, signal: AbortSignal): Promise<Database> {
    const { DuckDBInstance } = await load()
    const directory = await mkdtemp(join(tmpdir(), 'trialscan-sql-'))
    const instance = await DuckDBInstance.create(':memory:', {
      memory_limit: '1GB',
      temp_directory: directory,
      // Extensions would be fetched from the network.
      autoinstall_known_extensions: 'false',
      autoload_known_extensions: 'false',
      ...(threads !== undefined && { threads: String(Math.max(1, threads)) }),
    })
    const database = new Database(await instance.connect(), directory)
    signal.addEventListener('abort', () => database.#connection.interrupt(), { once: true })
    return database
  }

  /** @throws UsageError for a query that can't be parsed */
  async named(query: string): Promise<Named> {
    const reader = await this.#connection.runAndReadAll('select json_serialize_sql($1::varchar)', [query])
    const tree = JSON.parse(String(reader.getRows()[0]?.[0])) as Tree
    if (tree.error === true && tree.error_type === 'parser') throw badQuery(String(tree.error_message))
    const found = { tables: new Set<string>(), columns: new Set<string>(), hasStar: tree.error === true }
    collect(tree, found)
    return found
  }

  /** Runs a statement without an answer. */
  async run(statement: string): Promise<void> {
    await answered(() => this.#connection.run(statement))
  }

  /** @throws UsageError that says what DuckDB says */
  async ask(query: string): Promise<Answer> {
    const result = await answered(() => this.#connection.stream(query))
    return {
      names: result.columnNames(),
      async *rows() {
        for (;;) {
          const chunk = await answered(() => result.fetchChunk())
          if (chunk === null || chunk.rowCount === 0) return
          yield* chunk.getRows()
        }
      },
    }
  }

  async close(): Promise<void> {
    this.#connection.closeSync()
    process.removeListener('exit', this.#remove)
    await rm(this.directory, { recursive: true, force: true })
  }
}

/** A text as SQL writes it. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

async function load(): Promise<DuckDB> {
  try {
    return await import(PACKAGE)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new UsageError(`SQL needs DuckDB, which is not installed: npm install ${PACKAGE}`, {}, error)
  }
}

/** What DuckDB parsed, as JSON. */
interface Tree {
  readonly [key: string]: unknown
}

function collect(part: unknown, found: { tables: Set<string>; columns: Set<string>; hasStar: boolean }): void {
  if (typeof part !== 'object' || part === null) return
  const { class: kind, column_names, table_name } = part as Tree
  if (kind === 'STAR') found.hasStar = true
  if (Array.isArray(column_names)) for (const name of column_names) found.columns.add(String(name))
  if (typeof table_name === 'string') found.tables.add(table_name.toLowerCase())
  for (const value of Object.values(part)) collect(value, found)
}

async function answered<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw badQuery(error instanceof Error ? error.message : String(error), error)
  }
}

/** DuckDB's message in a line, without the excerpt of the query. */
function badQuery(message: string, cause?: unknown): UsageError {
  const [told = message] = message.replace(/^(?:Parser|Binder|Catalog) Error: /, '').split(/\n+LINE \d+: /)
  const line = told.trim().replace(/\n+/g, ' ')
  const tables = /^Table with name .* does not exist/.test(line)
    ? `${line.replace(/ Did you mean .*/, '')} There are ${TABLES.join(', ')}; of a table in a file scan alone`
    : line
  return new UsageError(`the query is wrong: ${tables}`, {}, cause)
}
