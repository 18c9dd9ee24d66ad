/** The sizes of jobs, and the division of a thread's memory. */

import type { StoreSpec } from '../../../storage/store.js'

/** Records longer than this are cut into parts of about this size, one job each, so that threads can share them. */
export const PART_BYTES = 16 << 20
/** The number of parts that a job has under way where reading makes requests, each within this much memory. */
export const PARTS_AT_ONCE = 8
export const STREAM_BYTES = 1 << 20
/**
 * A job is closed once it reads this many bytes or records: several milliseconds of work, which hide the 50 µs of a
 * round trip to a thread.
 */
export const JOB_BYTES = 8 << 20
export const JOB_RECORDS = 16384
/** A job comes to no more numbers than these, besides moments: histograms can be far larger than what they are made of. */
const JOB_NUMBERS = 1 << 19

/** The number of records in a job at most. @param numbers the number of answers per record, besides moments */
export function recordsOfJob(numbers: number): number {
  return Math.max(1, Math.min(JOB_RECORDS, Math.floor(JOB_NUMBERS / Math.max(1, numbers))))
}

/**
 * Jobs on threads are longer while much is left to do, since each takes 0.4 ms to plan, send and answer: of 8.2 GB two threads take 2.9
 * instead of 3.5 s of CPU. They become shorter in the end, so that no thread waits long for another, and those of a scan
 * are short at first: where the calling thread works, too, threads that have started get work only between two jobs of it.
 */
const LONG_JOB_BYTES = 64 << 20
const JOBS_LEFT = 8

/**
 * The number of bytes that the next job should read.
 * @param left bytes that are left to read
 * @param threads that share them
 * @param planned bytes of the jobs before it, of the same work
 */
export function jobByteLength(left: number, threads: number, planned = Number.POSITIVE_INFINITY): number {
  if (threads === 0) return JOB_BYTES
  return Math.max(JOB_BYTES, Math.min(LONG_JOB_BYTES, planned / JOBS_LEFT, left / (threads * JOBS_LEFT)))
}
/** No record of an event file is longer: a protobuf message holds less than 2 GiB, and the core counts in 32 bits. */
export const RECORD_LIMIT = 0xffffffff

/** The longest record that a store can have. Those that are put together from elsewhere, the tensors of checkpoints, are of any length. */
export function recordLimit({ kind }: StoreSpec): number {
  return kind === 'composed' ? Number.MAX_SAFE_INTEGER : RECORD_LIMIT
}

/** The least memory, in bytes, that a thread can work in. */
export const MIN_MEMORY = 4 << 20
export const DEFAULT_MEMORY = 64 << 20

/**
 * The longest record, in bytes, that is read into memory at once; of a longer one, the most that is held besides the
 * elements that stream. It is one number for both, so that whatever can be scanned can also be described and handed
 * out.
 */
export function windowByteLength(memory: number): number {
  return Math.min(PART_BYTES, Math.floor(memory / 2))
}

/** Jobs under way on one thread, if they wait for requests. */
export function jobsAtOnce(memory: number): number {
  return Math.max(1, Math.min(4, Math.floor(memory / PART_BYTES)))
}

/** The bytes that each of these jobs may read ahead. */
export function aheadByteLength(memory: number): number {
  return Math.floor(memory / jobsAtOnce(memory))
}

/** The parts that one of these jobs has under way. */
export function partsAtOnce(memory: number): number {
  return Math.max(1, Math.min(PARTS_AT_ONCE, Math.floor(aheadByteLength(memory) / STREAM_BYTES)))
}
