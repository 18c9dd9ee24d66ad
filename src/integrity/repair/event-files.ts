/** The event files of a clean copy: found, planned and copied, several at a time, each with its index files. */

import type { ErrorData } from '../../base/errors.js'
import type { CopiedFile } from '../../scan/job/copy-job.js'
import { DEFAULT_MEMORY } from '../../scan/job/plan/memory.js'
import { pumpAll } from '../../scan/runner/pump.js'
import { isFaultOfJob, type Runner } from '../../scan/runner/runner.js'
import { EventFileReader } from '../verify/event-files.js'
import type { RepairContext } from './context.js'
import { entangled, type Group, type Grouping, NAMES_ANOTHER } from './groups.js'
import type { IndexSource } from './index-source.js'
import { writeIndexes } from './index-writer.js'
import { findRecords } from './plan/find.js'
import type { FoundFile } from './plan/known.js'
import { planFile } from './plan/plan.js'
import { MAX_TENSORS, type Reason, type RepairNotes } from './report.js'

/** The largest number of event files that one job copies. */
const EVENT_FILES_PER_JOB = 32

const NO_EVENT_FILE: Reason = {
  code: 'EventFileMissing',
  message: 'an index file calls it its event file, which it is not',
}

const NAME_TOO_LONG: Reason = {
  code: 'NameTooLong',
  message: 'its path would be too long in the copy',
}

/** The trial whose event files are copied. */
export interface CopiedTrial {
  readonly grouping: Grouping
  readonly isTornasole: boolean
  /** True for a TensorBoard run: event files without an index. */
  readonly isPlain: boolean
  /** Tornasole index files that have an smdebug index file beside them. */
  readonly superseded: ReadonlySet<string>
}

/** Copies event files, and writes their index files. */
export async function copyEventFiles(
  groups: readonly Group[],
  trial: CopiedTrial,
  context: RepairContext,
): Promise<void> {
  const { access, signal, threads } = context
  let total = 0
  const withFile: Group[] = []
  for (const group of groups) {
    if (group.path === null) await writeIndexes(group, null, trial.superseded, context)
    else withFile.push(group)
  }
  for (const { path } of withFile) total += await access.store.byteLength(path!).catch(() => 0)
  const runner = await access.runner(
    threads,
    withFile.length > 2 * EVENT_FILES_PER_JOB ? Number.POSITIVE_INFINITY : total,
  )
  const perJob = Math.max(1, Math.min(EVENT_FILES_PER_JOB, Math.ceil(withFile.length / (4 * runner.ahead))))
  const parts: Group[][] = []
  for (const together of entangled(withFile)) {
    const last = parts.at(-1)
    if (last && last.length + together.length <= perJob) last.push(...together)
    else parts.push(together)
  }
  const copy = (some: readonly Group[]): Promise<void> => copySome(some, runner, trial, context)
  // No job is running once this ends, so nothing is written after the output is discarded.
  for await (const _ of pumpAll(parts, copy, { ahead: runner.ahead, signal, settles: true }));
}

async function copySome(
  groups: readonly Group[],
  runner: Runner,
  trial: CopiedTrial,
  context: RepairContext,
): Promise<void> {
  const { access, checksums, notes, output, signal, source } = context
  const { grouping, isPlain, isTornasole } = trial
  const hasShapes = ({ content, saved }: IndexSource): boolean => ((content ?? saved)?.shapes.length ?? 0) > 0
  const withShapes = groups.some(({ indexes }) => indexes.some(hasShapes))
  const job = { isTornasole, deep: false, withShapes, windowByteLength: DEFAULT_MEMORY / 2 }
  const reader = new EventFileReader({ access, runner: async () => runner, signal, job })
  const files = groups.map(({ path, indexes }) => ({ path: path!, indexes, isListed: true }))
  const surveyed: (FoundFile | ErrorData)[] = []
  for await (const { found: read } of reader.read(files)) surveyed.push('code' in read ? read : findRecords(read))
  if (!isPlain) grouping.settle(groups, surveyed)
  const copied: CopiedFile[] = []
  for (const [i, group] of groups.entries()) {
    const path = group.path!
    const refusal = group.isOther ? NO_EVENT_FILE : output.fits(path) ? null : NAME_TOO_LONG
    const file = refusal ?? surveyed[i]!
    if ('code' in file) {
      if ('fields' in file) source.expectTold(path, file)
      loseEventFile(group, file, notes)
      await writeIndexes(group, null, trial.superseded, context)
      continue
    }
    if (group.indexes.length === 0 && !isPlain) {
      const { byteLength, records } = file
      notes.keep(0, 0, byteLength)
      if (byteLength === 0) notes.ignore(path)
      else notes.loseFile(path, NAMES_ANOTHER, { byteLength, records: records.length })
      continue
    }
    const plan = planFile(path, file, group.indexes)
    for (const omission of plan.leftOut) notes.leaveOut(omission)
    notes.leaveOutMore(plan.moreLeftOut)
    notes.keep(plan.kept.length, plan.keptByteLength, file.byteLength - plan.keptByteLength)
    if (plan.kept.length > 0) {
      const startByte = Float64Array.from(plan.kept, record => record.startByte)
      const byteLength = Float64Array.from(plan.kept, record => record.byteLength)
      copied.push({ path, target: await output.place(path), startByte, byteLength })
      if (plan.keptByteLength === file.byteLength) notes.countFile('copied')
      else
        notes.rebuild(
          path,
          `${file.byteLength - plan.keptByteLength} bytes that belong to no whole record are left out`,
        )
    } else if (file.byteLength === 0 && plan.leftOut.length === 0) notes.ignore(path)
    else notes.countFile('leftOut')
    await writeIndexes(group, plan, trial.superseded, context)
  }
  if (copied.length === 0) return
  const copying = { kind: 'copy', store: access.spec, files: copied, checksums } as const
  try {
    await runner.run(copying, signal)
  } catch (error) {
    signal?.throwIfAborted()
    if (!isFaultOfJob(error)) throw error
    // A second attempt from the start. The partial files of the thread that died are removed first.
    await Promise.all(copied.map(({ target }) => output.remove(target)))
    await runner.run(copying, signal)
  }
}

/** Records that an event file is missing or can't be read. */
function loseEventFile({ path, indexes }: Group, error: ErrorData | Reason, notes: RepairNotes): void {
  notes.countFile('leftOut')
  if (indexes.length === 0) notes.leaveOutFile(path!, error)
  for (const { step, content } of indexes) {
    const tensors = content?.tensors ?? []
    const names = tensors.slice(0, MAX_TENSORS).map(({ name }) => name)
    const { message } = error
    const missing: ErrorData | Reason = error.code === 'NotFound' ? { code: 'EventFileMissing', message } : error
    notes.leaveOutFile(path!, missing, { step, tensors: names, records: tensors.length })
  }
}
