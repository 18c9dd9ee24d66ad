/**
 * DuckDB, an optional package. npm installs no optional peer of the project that it is in: where it is wanted, it is installed elsewhere and
 * linked to node_modules/@duckdb, as .ci/run does.
 */

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
