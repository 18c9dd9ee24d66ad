/** The whole records of event files, and what is wrong between them. */

import type { ErrorData } from '../errors.js'
import type { IndexFile } from '../format/index-file.js'
import { DEFAULT_MEMORY } from '../job/memory.js'
import { VALUE_KINDS, type VerifiedRange, type VerifyRange } from '../job/verify.js'
import { runOnFiles } from '../runner/failed-job.js'
import { type Runner, runTwice } from '../runner/runner.js'
import type { StoreSpec } from '../store/store.js'
import type { FoundFile, FoundProblem, WholeRecord } from './known.js'

const OTHER = VALUE_KINDS.indexOf('other')

export interface FindOptions {
  readonly runner: Runner
  readonly store: StoreSpec
  readonly isTornasole: boolean
  /** Whether index files have saved shapes, so that those of the records are wanted. */
  readonly withShapes: boolean
  readonly urlOf: (path: string) => string
  readonly signal: AbortSignal | undefined
}

/**
 * Reads event files from end to end.
 * @param files and the index files that speak of them: where they say that records begin is where to go on behind a broken one
 * @returns one a file; an error for one that can't be read at all
 */
export async function findRecords(
  files: readonly { readonly path: string; readonly known: readonly (IndexFile | null)[] }[],
  { runner, store, isTornasole, withShapes, urlOf, signal }: FindOptions,
): Promise<(FoundFile | ErrorData)[]> {
  const drafts = files.map(({ path, known }) => ({ range: rangeOf(path, known), draft: new FileDraft() }))
  // A job that has found a great deal leaves the rest to the next.
  let open = drafts
  while (open.length > 0) {
    const ranges = open.map(({ range }) => range)
    const windowByteLength = DEFAULT_MEMORY / 2
    const job = { kind: 'verify', store, ranges, windowByteLength, isTornasole, deep: false, withShapes } as const
    const find = async (some: readonly VerifyRange[]) => {
      const { ranges, tags } = await runTwice(runner, { ...job, ranges: some }, signal)
      return { files: ranges.map(found => ('code' in found ? found : { found, tags })) }
    }
    const results = await runOnFiles(ranges, find, ({ path }) => urlOf(path))
    open = open.flatMap(({ range, draft }, i) => {
      const result = results[i]!
      if ('code' in result) {
        draft.error = result
        return []
      }
      const { found, tags } = result
      draft.add(found, tags)
      return found.endByte < found.byteLength ? [{ range: { ...range, startByte: found.endByte }, draft }] : []
    })
  }
  return drafts.map(({ draft }) => draft.error ?? draft.file)
}

function rangeOf(path: string, known: readonly (IndexFile | null)[]): VerifyRange {
  // Many index files may share a list.
  const lists = new Set(known.flatMap(index => (index === null ? [] : [index.tensors])))
  const starts = new Set<number>()
  for (const tensors of lists) for (const { startByte } of tensors) starts.add(startByte)
  return { path, startByte: 0, endByte: null, anchors: Float64Array.from(starts).sort() }
}

/** A file, range by range. */
class FileDraft {
  error: ErrorData | null = null
  readonly #records: WholeRecord[] = []
  readonly #problems: FoundProblem[] = []
  #byteLength = 0

  get file(): FoundFile {
    return { byteLength: this.#byteLength, records: this.#records, problems: this.#problems }
  }

  add(found: VerifiedRange, tags: readonly string[]): void {
    this.#byteLength = found.byteLength
    const { recordStart, recordByteLength, step, isBad, record, kind, tag, mode, modeStep, shape } = found
    let value = 0
    for (const [i, startByte] of recordStart.entries()) {
      const values: WholeRecord['values'][number][] = []
      const names = new Set<string>()
      for (; value < record.length && record[value] === i; value++) {
        const name = tags[tag[value]!]!
        // Of two Values of a name, only one is ever found.
        if (kind[value] === OTHER || names.has(name)) continue
        names.add(name)
        values.push({ name, mode: mode[value]!, modeStep: modeStep[value]!, shape: shape[value] ?? null })
      }
      if (isBad[i] === 0) this.#records.push({ startByte, byteLength: recordByteLength[i]!, step: step[i]!, values })
    }
    for (const { startByte, error } of found.problems) {
      this.#problems.push({ offset: startByte, code: error.code, message: error.message })
    }
    // More than are told one by one.
    const toldEnd = found.problems.at(-1)?.endByte ?? 0
    const untold = [...recordStart.filter((_, i) => isBad[i] === 1), ...found.skipped.filter((_, i) => i % 2 === 0)]
    for (const offset of untold) {
      if (offset >= toldEnd)
        this.#problems.push({ offset, code: 'DamagedRecord', message: 'one of many damaged records' })
    }
  }
}
