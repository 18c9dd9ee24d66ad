/** The problems of a trial. docs/verify.md has a table of their codes. */

/** All codes, those of notes last. */
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
  // Of checkpoints.
  'MissingShard',
  'ZeroHeader',
  'GitLfsPointer',
  'TruncatedFile',
  'BadSafetensors',
  'BadShardIndex',
  'UnfinishedSave',
  'IndexMismatch',
  'DuplicateTensor',
  'MissingParts',
  'UnreadableDType',
  'BadMemberChecksum',
  'BadCheckpointFile',
  // Of values.
  'NaNValues',
  'InfiniteValues',
  // Of digests.
  'DigestMismatch',
  'NotInTrial',
  'NotInList',
  'BadDigestList',
  // Notes.
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

/** Something that is wrong with a trial, or worth knowing. */
export interface VerifyProblem {
  /** A `note` is no harm: it does not make a trial a bad one. */
  readonly severity: 'problem' | 'note'
  readonly code: VerifyCode
  /** Relative to the trial; '' is the trial as a whole. */
  readonly file: string
  /** In bytes; null where the file as a whole is meant. Of an entry of an index file: where in the event file it points to. */
  readonly offset: number | null
  readonly tensor: string | null
  /** The global step. */
  readonly step: number | null
  readonly expected: string
  readonly found: string
  /** The data that is lost because of the problem; '' for none. */
  readonly lost: string
  readonly advice: string
  /** All of it but the advice, as a sentence. */
  readonly message: string
}

/** A problem as it is found. */
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
