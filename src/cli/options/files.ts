/** The commands about the files of a trial: verify, reindex, copy and repair. */

import { type CommandDefinition, EVENTS_TRIAL, TRIAL, TRIALS } from './options.js'

/** The grace of repair, in milliseconds: if interrupted, it may have to remove thousands of files. */
const REPAIR_GRACE_MS = 60_000

export const FILE_COMMANDS: readonly CommandDefinition[] = [
  {
    name: 'verify',
    description: 'What is wrong with the files of a trial: every record, index entry and file is checked.',
    arguments: { '<TRIALS...>': TRIALS },
    options: `
      --deep                also check values: strings, and saved reductions against their tensors
      --values              also read all tensors: NaN, infinities, and what is zero, constant or beyond half precision
      --digests <FILE>      hold all tensors against a list of digests
      --record <FILE>       write such a list of all tensors
      --fail-on <CODE,…>    exit with 4 only for these problems
      --threads --memory --fail-fast --format --out --quiet --allow-symlinks`,
    help: `Examples:
  $ trialscan verify ./my-training
  $ trialscan verify ./my-training --deep --out problems.csv
  $ trialscan verify ./my-checkpoint --values
  $ trialscan verify ./my-checkpoint --record digests.jsonl
  $ trialscan verify ./its-copy --digests digests.jsonl
  $ trialscan verify 'runs/*' s3://my-bucket/experiments
  $ trialscan verify ./my-training --format jsonl | jq 'select(.severity == "problem")'

Reads all bytes of all event files and checks them against their checksums, and the index against them. Writes nothing
to the trial. The exit code is 0 if nothing is wrong and 4 if something is; notes, which do no harm, don't count.

jsonl: one object for each problem or note, as soon as it is there, with severity, code, file (relative to the trial),
offset, tensor, step, expected, found, lost, advice, message; then one object with summary, trial, ok, problems and notes
(how many of each code: of one file 100 are told one by one), event_files, index_files, records, tensors, bytes, seconds,
threads; with --values also values_read and values_found (tensors, each at each step and of each worker), with --digests
digests_equal and digests_listed. csv: the problems and notes, without the summary. Of several trials, all of these begin with trial. The codes:
docs/verify.md.`,
    load: async () => (await import('../commands/verify.js')).verify,
  },
  {
    name: 'reindex',
    description: "Writes index files for a trial that has lost its own, or has Tornasole's.",
    arguments: { '<TRIAL>': EVENTS_TRIAL },
    options: `
      !--out <DIR>           the directory to write to: the files go to DIR/index; outside of the trial
      --threads --format --allow-symlinks`,
    help: `Examples:
  $ trialscan reindex s3://my-bucket/my-training --out ./rebuilt --format csv
  $ trialscan reindex ./my-training --out ./rebuilt && cp -r ./rebuilt/index ./my-training/

The files are made from the index files there are or, where there are none, from the event files. These don't tell of
shapes that were saved. At the first file that can't be read it ends, before anything is written.

jsonl, csv: one line for each file, with file, step, worker, bytes. json: one object with trial, out, files.`,
    load: async () => (await import('../commands/reindex.js')).reindex,
  },
  {
    name: 'copy',
    description: "A trial's files on disk, as they are: those that are new, or have changed.",
    arguments: { '<TRIAL>': TRIAL, '<DIR>': 'the directory to copy to, outside of the trial' },
    options: `
      --allow-symlinks`,
    help: `Examples:
  $ trialscan copy s3://my-bucket/my-training/debug-output ./my-training
  $ trialscan copy s3://my-bucket/my-training/debug-output ./my-training && trialscan check ./my-training

A file is copied if it is not there, has another length there, or was written after its copy; nothing is removed. While the job
still runs, call it again for what has come since. Index files come after what they name, and the end of the job comes last: a copy
that was interrupted is a trial that still runs.`,
    load: async () => (await import('../commands/copy.js')).copy,
  },
  {
    name: 'repair',
    description: 'Writes a clean copy of a trial: what is whole is kept, the rest is left out and reported.',
    arguments: { '<TRIAL>': EVENTS_TRIAL },
    options: `
      !--out <DIR>           the directory to write to: new or empty, and outside of the trial
      --checksums           give every record the true checksum of its payload; the hook leaves it out by default
      --threads --format --allow-symlinks`,
    help: `Examples:
  $ trialscan repair ./my-training --out ./clean
  $ trialscan repair s3://my-bucket/my-training --out ./clean --checksums
  $ trialscan repair ./my-training --out ./clean --format jsonl | jq 'select(.left_out)'

The trial is only read. The copy gets its name when it is whole; a repair that is interrupted leaves none. Records in which
nothing is wrong are kept, byte for byte; index files that told something else are rewritten; collections files and the
end marker are copied.

jsonl: an object for each thing that was left out, with left_out (the file), offset, byte_length, step, tensors (the index
file's names), records, code, reason, each null where it is not known; 100 a file. Then { rebuilt, reason } for index,
collections and event files that are not as they were, { ignored } for files that are no part of a trial, and at the end one
object with trial, out, files, records, bytes, left_out_count. json: that last one, with left_out, rebuilt and ignored as
arrays. csv: what was left out.

Exit code 0: everything was kept. 4: something was left out; the copy is there all the same.`,
    graceMs: REPAIR_GRACE_MS,
    load: async () => (await import('../commands/repair.js')).repair,
  },
]
