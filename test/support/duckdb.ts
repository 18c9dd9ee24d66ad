/** DuckDB, an optional package: `npm install --no-save @duckdb/node-api` brings it to a developer's machine, and .ci/run to CI. */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isRequired, ROOT } from './golden.js'

const PACKAGE = '@duckdb/node-api'

export const HAS_DUCKDB = existsSync(join(ROOT, 'node_modules', PACKAGE)) || isRequired('duckdb')

/** The rows of a query as objects. */
export async function askDuckDB(query: string): Promise<readonly unknown[]> {
  const { DuckDBInstance } = await import(PACKAGE)
  const connection = await (await DuckDBInstance.create()).connect()
  const reader = await connection.runAndReadAll(query)
  const rows = reader.getRowObjects()
  connection.closeSync()
  return rows
}
