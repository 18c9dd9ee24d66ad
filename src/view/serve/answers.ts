/** Answers: rows and values as bytes, and errors as statuses of HTTP. */

import { createHash } from 'node:crypto'
import { MissingCollectionFiles, QueryError, StoreError, TrialscanError, UsageError } from '../../base/errors.js'
import { tableBytes } from '../../table/table.js'
import type { ScanOptions } from '../../trial/scan-selection.js'
import type { Trial } from '../../trial/trial.js'
import { problem } from './access.js'
import type { ScanFormat } from './asked.js'
import type { Context } from './http.js'
import type { ServedTrial } from './served-trial.js'
import { Busy } from './turns.js'

/** A trial in the list. */
export function listed(served: ServedTrial) {
  const { id, path, opened, error, judging } = served
  if (opened === undefined) {
    const message = error === undefined ? null : error instanceof Error ? error.message : String(error)
    return { id, path, state: error === undefined ? 'opening' : 'failed', error: message }
  }
  const steps = opened.steps({ showIncompleteSteps: true })
  const [cause] = judging?.findings ?? []
  return {
    id,
    path,
    state: opened.loadedAllSteps ? 'ended' : 'running',
    error: null,
    name: opened.name,
    steps: steps.length,
    firstStep: steps[0] ?? null,
    lastStep: steps.at(-1) ?? null,
    modes: opened.modes(),
    workers: opened.workers(),
    tensors: opened.tensorNames().length,
    findings: judging?.findingCount ?? null,
    judged: judging?.judged ?? null,
    ...served.course,
    cause:
      cause === undefined ? null : { rule: cause.name, step: cause.step, tensor: cause.tensor, message: cause.message },
  }
}

/** JSON in which NaN and infinities are texts, as in the lines of a scan. */
export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, (_, item) => {
    if (typeof item === 'bigint') return Number.isSafeInteger(Number(item)) ? Number(item) : String(item)
    return typeof item === 'number' && !Number.isFinite(item) ? String(item) : item
  })}\n`
}

/** The rows of a scan as text or as a table. @throws at once what `trial.scan` throws */
export function chunksOf(trial: Trial, format: ScanFormat, options: ScanOptions): AsyncGenerator<Uint8Array> {
  const scan = trial.scan(options)
  if (format === 'arrow' || format === 'parquet') return tableBytes(scan, format)
  return format === 'json' ? arrayOf(scan.lines('jsonl')) : scan.lines(format)
}

/** Lines of JSON as one array. */
async function* arrayOf(lines: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder()
  const decoder = new TextDecoder()
  let separator = '['
  for await (const some of lines) {
    const rows = decoder.decode(some).trimEnd().replaceAll('\n', ',\n')
    if (rows === '') continue
    yield encoder.encode(separator + rows)
    separator = ',\n'
  }
  yield encoder.encode(separator === '[' ? '[]\n' : ']\n')
}

/** True if the client has this answer already. Compressed answers come back with a weak tag. */
export function has(context: Context, tag: string): boolean {
  const known = (context.req.header('if-none-match') ?? '').split(',').map(entry => entry.trim().replace(/^W\//, ''))
  return known.includes(tag)
}

export function etag(text: string): string {
  return `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`
}

export function failure(error: unknown, context: Context): Response {
  if (error instanceof Busy) return context.json(problem('Busy', error.message), 503, { 'retry-after': '1' })
  if (error instanceof TrialscanError) return context.json(problem(error.code, error.message), statusOf(error))
  if (error instanceof Error && error.name === 'AbortError')
    return context.json(problem('Aborted', 'the request was given up'), 499 as 408)
  return context.json(problem('Internal', error instanceof Error ? error.message : String(error)), 500)
}

function statusOf(error: TrialscanError): 400 | 404 | 413 | 422 | 500 | 502 {
  if (error instanceof UsageError) return 400
  if (error.code === 'ValueTooLarge') return 413
  if (error instanceof MissingCollectionFiles || error instanceof QueryError) return 404
  if (error instanceof StoreError) return 502
  return 422
}
