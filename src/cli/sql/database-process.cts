/**
 * DuckDB, in a process of its own: a query can be at work on a single value for minutes, in which nothing but the end of its process
 * stops it, and takes memory that DuckDB does not count. Requests come one at a time; each has one answer.
 */

import type { DatabaseRequest, DuckDB, Prepared, Reply } from './database.js'

/** Kinds of statements that write files, or that hide one which does, by DuckDB's numbers. */
const WRITING: ReadonlyMap<number, string> = new Map([
  [6, 'PREPARE'],
  [8, 'EXECUTE'],
  [11, 'COPY'],
  [16, 'EXPORT'],
  [25, 'ATTACH'],
  [28, 'COPY FROM DATABASE'],
])
const EXPLAIN = 4
/** LOAD and INSTALL, and UPDATE EXTENSIONS. */
const OF_EXTENSIONS: readonly number[] = [21, 29]
/** The interval at which memory is checked. */
const LOOK_MS = 20
const MIB = 1 << 20
/** The memory of Node.js, and DuckDB's beside what it counts. */
const BESIDE_MIB = 256

type Connection = Awaited<ReturnType<Awaited<ReturnType<DuckDB['DuckDBInstance']['create']>>['connect']>>

let connection: Connection | undefined
let mayWrite = false
let chunks: Awaited<ReturnType<Prepared['stream']>> | undefined

async function answer(request: DatabaseRequest): Promise<unknown> {
  switch (request.kind) {
    case 'open':
      return open(request)
    case 'get': {
      const reader = await connection!.runAndReadAll(request.query, request.values)
      return String(reader.getRows()[0]?.[0])
    }
    case 'run':
      await connection!.run(request.statement)
      return null
    case 'lock':
      await lock(request.paths)
      return null
    case 'ask':
      return ask(request.query)
    case 'next': {
      const chunk = await chunks!.fetchChunk()
      return chunk === null || chunk.rowCount === 0 ? null : chunk.getRows().map(row => row.map(plainValue))
    }
  }
}

async function open({ package: name, directory, memory, threads, allowFiles }: DatabaseRequest & { kind: 'open' }) {
  const { DuckDBInstance } = (await import(name)) as DuckDB
  mayWrite = allowFiles
  const instance = await DuckDBInstance.create(':memory:', {
    memory_limit: `${memory}MiB`,
    temp_directory: directory,
    // Extensions would be fetched from the network.
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    ...(threads !== undefined && { threads: String(Math.max(1, threads)) }),
  })
  connection = await instance.connect()
  const most = (memory * 1.25 + BESIDE_MIB) * MIB
  setInterval(() => {
    if (process.memoryUsage.rss() > most) process.send!({ isTooLarge: true } satisfies Reply)
  }, LOOK_MS)
  return null
}

/** Locks the database: from here on no other files, no extensions and no network, whatever a statement says. */
async function lock({
  files,
  directories,
}: {
  readonly files: readonly string[]
  readonly directories: readonly string[]
}) {
  const list = (paths: readonly string[]) => `[${paths.map(path => `'${path.replaceAll("'", "''")}'`).join(', ')}]`
  await connection!.run(`set allowed_directories = ${list(directories)}`)
  await connection!.run(`set allowed_paths = ${list(files)}`)
  await connection!.run('set enable_external_access = false')
  await connection!.run('set lock_configuration = true')
}

async function ask(query: string): Promise<readonly string[]> {
  const statements = await connection!.extractStatements(query).catch((error: Error) => {
    // DuckDB's words for a text without a statement, such as a comment alone.
    throw error.message === 'Error in native callback' ? new Error('expected one statement, got 0') : error
  })
  if (statements.count !== 1) throw new Error(`expected one statement, got ${statements.count}`)
  const statement = await statements.prepare(0)
  const { statementType } = statement
  const writing = WRITING.get(statementType) ?? (statementType === EXPLAIN && /\bcopy\b/i.test(query) ? 'COPY' : null)
  if (OF_EXTENSIONS.includes(statementType)) throw new Error('a query loads no extensions')
  if (writing !== null && !mayWrite) throw new Error(`${writing} is only there with --allow-files`)
  chunks = await statement.stream()
  return chunks.columnNames()
}

/** Lists, structs and maps of DuckDB as arrays and objects; all else as it is, or as DuckDB writes it. */
function plainValue(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if ('items' in value) return (value.items as readonly unknown[]).map(plainValue)
  if ('entries' in value) {
    const { entries } = value
    if (Array.isArray(entries)) return entries.map(({ key, value }) => [plainValue(key), plainValue(value)])
    return Object.fromEntries(Object.entries(entries as object).map(([name, value]) => [name, plainValue(value)]))
  }
  return String(value)
}

process.on('message', (request: DatabaseRequest) => {
  answer(request).then(
    result => process.send!({ result } satisfies Reply),
    (error: NodeJS.ErrnoException) => {
      const { message = String(error), code } = error
      process.send!({ error: { message, ...(code !== undefined && { code }) } } satisfies Reply)
    },
  )
})
// Signals of a terminal come to all of its processes: the command ends this one. It may have been killed.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
