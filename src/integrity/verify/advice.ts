/** The advice for each kind of problem, in a module of its own since opening a trial doesn't need it. */

import type { VerifyCode, VerifyFinding, VerifyProblem } from './problem.js'

/** The advice by code. */
const ADVICE: Readonly<Record<VerifyCode, string>> = {
  TruncatedRecord:
    'If the job is still writing, verify again when it has ended; otherwise copy the file again, or cut the unfinished record off with `trialscan repair`.',
  BadLengthChecksum: 'Copy the file again from where it was saved. The records after the damage can be read.',
  BrokenFrame: 'Copy the file again from where it was saved. The records after the damage can be read.',
  BadPayloadChecksum: 'Copy the file again; until then don’t trust this tensor. The others can be read.',
  MalformedEvent: 'Copy the file again. The other records can be read.',
  UnknownDType: 'Copy the file again, or ask who wrote it: the type is none of TensorFlow’s numbers or strings.',
  ShapeMismatch: 'Copy the file again, or ask who wrote it. The other records can be read.',
  BadShape: 'Copy the file again, or ask who wrote it. The other records can be read.',
  BadStep: 'Ask who wrote it: no step can have that number.',
  Unreadable: 'Make sure that the file exists, is a regular file and can be read.',
  BadIndexFile: '`trialscan repair` rewrites the index from the event file; the records themselves are not changed.',
  DuplicateFile: 'Remove the one that should not be there. Until then the one with the hook’s own name counts.',
  UnsafePath: 'Don’t trust where this trial comes from; its index can be rewritten from the event files.',
  EntryPastEnd: 'Copy the event file again: it is shorter than its index says.',
  EntryNotARecord: '`trialscan repair` rewrites the index from the event file.',
  LengthMismatch: '`trialscan repair` rewrites the index from the event file.',
  TagMismatch: '`trialscan repair` rewrites the index from the event file.',
  NoTensor: '`trialscan repair` rewrites the index from the event file.',
  SavedShapeMismatch:
    '`trialscan repair` rewrites the index with the shape of the record, which is the one that values and scans use.',
  StepMismatch: '`trialscan repair` rewrites the index from the event file; or find out where the file belongs.',
  EntriesOverlap: '`trialscan repair` rewrites the index from the event file.',
  RecordNotIndexed: '`trialscan repair` rewrites the index from the event file; without it the record cannot be found.',
  EventFileMissing: 'Copy the event file again. On S3 an index file may arrive first: verify again.',
  IndexFileMissing: '`trialscan repair` rewrites the index from the event file.',
  BadCollectionsFile: 'Copy the file again; until then open the trial with requireCollections: false.',
  MissingCollectionFiles: 'Copy the files again; until then open the trial with requireCollections: false.',
  LeftoverTemporary:
    'The writer was stopped: what it wrote may be in the file, up to a point. Delete it if it is not wanted.',
  BadText: 'Copy the file again, or ask who wrote it: strings and tags are UTF-8.',
  ReductionMismatch: 'Don’t trust tensor or reduction: one of them is not what was saved, or was computed otherwise.',
  MissingShard:
    'Fetch the file again from where the checkpoint was saved; until then its tensors are lost, and the others can be read.',
  ZeroHeader: 'Fetch the file again: it was made, but its content was never written.',
  GitLfsPointer: 'Fetch the file itself: `git lfs pull`.',
  TruncatedFile: 'Fetch the file again. The tensors before the cut can be read.',
  BadSafetensors: 'Write or fetch the file again. The tensors that are not named can be read.',
  BadShardIndex: 'Write the index again; without it, all shards of the directory are read.',
  IndexMismatch: 'Write the index again from the shards: loaders that trust it look in the wrong file.',
  DuplicateTensor: 'Find out which of the two is meant, and remove the other: readers disagree about which counts.',
  MissingParts: 'Fetch the files of all ranks: a tensor is cut into parts, and one is missing or there twice.',
  MissingWorkers:
    'Fetch the files of all ranks; until then their tensors are lost, and those of the others can be read.',
  UnfinishedSave:
    'Save it again, or fetch the file that is missing (the name .metadata is hidden): without it nothing tells what the others hold.',
  UnreadableDType:
    'Nothing is wrong if the type is one that trialscan does not know yet; the other tensors can be read.',
  BadMemberChecksum: 'Fetch the file again: its bytes are not those that were written. Other members can be read.',
  BadCheckpointFile: 'Write or fetch the file again. What is not named can be read.',
  NaNValues: '`trialscan nan` tells where NaN comes from. Go back to a checkpoint without.',
  InfiniteValues: '`trialscan nan` tells where they come from. Masks may hold -∞ on purpose.',
  DigestMismatch: 'Fetch the tensor’s file again from where the list was made, unless it was meant to change.',
  NotInTrial: 'Fetch what is missing, or find out whether the list is of another checkpoint.',
  NotInList: 'Nothing tells whether it is as it was saved: record the list again if it belongs to the checkpoint.',
  BadDigestList: 'Record the list again: what the line is about was not compared.',
  // The advice for notes.
  EmptyEventFile: 'Nothing needs to be done: there is nothing in it.',
  ModeMismatch:
    'Nothing needs to be done: the hook can write a record under the mode that comes next. The index counts.',
  NoEndMarker: 'If the job has ended, nothing needs to be done: jobs of SageMaker may never write the marker.',
  NoIndex: 'Nothing needs to be done: the event files are searched instead. `trialscan reindex` makes opening faster.',
  RecordNotChecked: 'Give more memory: the record has another long field than one tensor_content.',
  StepIncomplete: 'Nothing needs to be done unless the other workers should have saved the step too.',
  TemporaryFile: 'Nothing needs to be done: a writer renames it when it is complete, or already has.',
  TensorNeverSaved: 'Nothing needs to be done unless the tensor should have been saved.',
  OtherWorker:
    'Nothing needs to be done if one process writes the files of several workers or devices; otherwise find out whose records they are.',
  OddEncoding: 'Nothing needs to be done: it can be read.',
  NoChecksums: 'Nothing needs to be done if the file was written without checksums, as torch can be told to.',
  RunsCode:
    'Do not open it with torch.load, unless you know who wrote it: trialscan runs nothing of it, and trialscan show FILE prints what it names.',
  WrongTotalSize: 'Nothing needs to be done: many writers count otherwise, and nothing here depends on it.',
  ZeroTensor: 'Nothing needs to be done if it was never trained; otherwise find out who wrote zeros.',
  ConstantTensor: 'Nothing needs to be done if it is meant to be constant; otherwise find out who wrote it.',
  BeyondHalf: 'Do not convert it to float16 without a scale: what is larger becomes infinite.',
  AdapterWithoutEffect: 'Train the adapter: as it is, the model answers as it does without.',
  OtherDigestList: 'Make sure that the list is of this checkpoint: its steps or workers have other names.',
  NotRead: 'Nothing needs to be done unless it should have been read: then name it.',
}

export function verifyProblem(severity: VerifyProblem['severity'], finding: VerifyFinding): VerifyProblem {
  const { code, file, offset = null, tensor = null, step = null, expected, found, lost = '' } = finding
  const place = [file || 'the trial', ...(offset === null ? [] : [`offset ${offset}`])].join(', ')
  const loss = lost === '' ? '' : `; lost: ${lost}`
  const message = `${place}: expected ${expected}, found ${found}${loss}`
  return { severity, code, file, offset, tensor, step, expected, found, lost, advice: ADVICE[code], message }
}
