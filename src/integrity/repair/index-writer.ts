/** The index files of a clean copy. */

import { type IndexFile, indexFileText } from '../../format/index-file.js'
import { indexFilePath } from '../../format/paths.js'
import { tornasoleIndexText } from '../../format/tornasole.js'
import { MAX_INDEX_BYTES } from '../../scan/job/index-job.js'
import type { RepairContext } from './context.js'
import type { Group } from './groups.js'
import { NO_INDEX } from './index-source.js'
import type { FoundFile } from './plan/known.js'
import { type FilePlan, planFile } from './plan/plan.js'

/**
 * Writes the index files of an event file.
 * @param plan the plan of their event file; null if nothing of it is kept
 * @param superseded Tornasole index files that have an smdebug index file beside them
 */
export async function writeIndexes(
  { path: eventFile, indexes }: Group,
  plan: FilePlan | null,
  superseded: ReadonlySet<string>,
  context: RepairContext,
): Promise<void> {
  const { access, notes, output, signal } = context
  const nothing: FoundFile = { byteLength: 0, records: [], problems: [] }
  const { indexes: rewritten } = plan ?? planFile(eventFile ?? '', nothing, indexes)
  // The loss of the event file was reported for each of its index files.
  const isTold = eventFile !== null && (plan === null || plan.kept.length + plan.leftOut.length > 0)
  for (const [i, { path, content, fault, isTorn, hasEntries, step, worker }] of indexes.entries()) {
    signal?.throwIfAborted()
    const index = rewritten[i]!()
    const target = output.fits(path) ? path : indexFilePath(step, worker)
    if (isTorn || (hasEntries && !isTold)) {
      const lost = isTorn
        ? 'shapes in it are lost'
        : 'what it tells of is lost: there is nothing in an event file of its step'
      notes.leaveOutFile(path, { code: 'BadIndexFile', message: `${fault}; ${lost}` }, { step })
    }
    if (index === 'same' && fault === null) {
      await output.write(target, await access.store.read(path, { maxByteLength: MAX_INDEX_BYTES }))
      notes.countFile('copied')
      await writeSuperseded(path, content!, superseded, context)
      continue
    }
    const said = index === 'same' ? { ...content!, eventFile } : index
    if (said === null) {
      // An index file that did not exist is not counted as left out.
      if (fault !== NO_INDEX) notes.countFile('leftOut')
      continue
    }
    const isCsv = target.endsWith('.csv') && isOfLines(said)
    await output.write(
      isCsv ? target : target.replace(/csv$/, 'json'),
      isCsv ? tornasoleIndexText(said) : indexFileText(said),
    )
    await writeSuperseded(path, said, superseded, context)
    notes.rebuild(path, fault ?? 'it told of records that were left out, of where others lay, or of another shape')
  }
}

/**
 * Writes a Tornasole index file beside its smdebug counterpart, with the same content: its presence may be what marks the trial as
 * Tornasole's.
 */
async function writeSuperseded(
  path: string,
  said: IndexFile,
  superseded: ReadonlySet<string>,
  { notes, output }: RepairContext,
): Promise<void> {
  const csv = path.replace(/json$/, 'csv')
  if (!superseded.has(csv) || !output.fits(csv)) return
  await output.write(csv, isOfLines(said) ? tornasoleIndexText(said) : '')
  notes.countFile('copied')
}

/** True if no name contains a line break. Tornasole's format ends an entry there; smdebug's allows any name. */
function isOfLines({ tensors }: IndexFile): boolean {
  return !tensors.some(({ name }) => /[\r\n]/.test(name))
}
