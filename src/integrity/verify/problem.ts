/** The problems of a trial. docs/verify.md has a table of their codes. */

/** All codes; those of notes come last. */
export const VERIFY_CODES = [
  'TruncatedRecord',
  'BadLengthChecksum',
  'BrokenFrame',
  'BadPayloadChecksum',
  'MalformedEvent',
  'UnknownDType',
  'ShapeMismatch',
  'BadShape',
  'BadStep',
  'Unreadable',
  'BadIndexFile',
  'DuplicateFile',
  'UnsafePath',
  'EntryPastEnd',
  'EntryNotARecord',
  'LengthMismatch',
  'TagMismatch',
  'NoTensor',
  'SavedShapeMismatch',
  'StepMismatch',
  'EntriesOverlap',
  'RecordNotIndexed',
  'EventFileMissing',
  'IndexFileMissing',
  'BadCollectionsFile',
  'MissingCollectionFiles',
  'LeftoverTemporary',
  'BadText',
  'ReductionMismatch',
  // Codes of checkpoints.
  'MissingShard',
  'ZeroHeader',
  'GitLfsPointer',
  'TruncatedFile',
  'BadSafetensors',
  'BadShardIndex',
  'MissingWorkers',
  'UnfinishedSave',
  'IndexMismatch',
  'DuplicateTensor',
  'MissingParts',
  'UnreadableDType',
  'BadMemberChecksum',
  'BadCheckpointFile',
  // Codes of values.
  'NaNValues',
  'InfiniteValues',
  // Codes of digests.
  'DigestMismatch',
  'NotInTrial',
  'NotInList',
  'BadDigestList',
  // Codes of notes.
  'EmptyEventFile',
  'ModeMismatch',
  'NoEndMarker',
  'NoIndex',
  'RecordNotChecked',
  'StepIncomplete',
  'TemporaryFile',
  'TensorNeverSaved',
  'OtherWorker',
  'OddEncoding',
  'NotRead',
  'NoChecksums',
  'RunsCode',
  'WrongTotalSize',
  'ZeroTensor',
  'ConstantTensor',
  'BeyondHalf',
  'AdapterWithoutEffect',
  'OtherDigestList',
] as const

export type VerifyCode = (typeof VERIFY_CODES)[number]

/** A problem of a trial, or a note about it. */
export interface VerifyProblem {
  /** A `note` does no harm: the trial is still good. */
  readonly severity: 'problem' | 'note'
  readonly code: VerifyCode
  /** The path relative to the trial; '' for the trial as a whole. */
  readonly file: string
  /** The offset in bytes; null for the file as a whole. For an index entry: the offset in the event file that it points to. */
  readonly offset: number | null
  readonly tensor: string | null
  /** The global step. */
  readonly step: number | null
  readonly expected: string
  readonly found: string
  /** The data that is lost; '' if none is. */
  readonly lost: string
  readonly advice: string
  /** The problem as a sentence, without the advice. */
  readonly message: string
}

/** A problem, before the advice is added. */
export interface VerifyFinding {
  readonly code: VerifyCode
  readonly file: string
  readonly offset?: number | null
  readonly tensor?: string | null
  readonly step?: number | null
  readonly expected: string
  readonly found: string
  readonly lost?: string
}
