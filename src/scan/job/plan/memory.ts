/** The sizes of jobs, and the division of a thread's memory. */

import type { StoreSpec } from '../../../storage/store.js'

/**
 * The size of a part. A record longer than `windowByteLength` is cut into parts, so that threads can share it: one per job on disk,
 * several where reads are requests or a statistic needs all elements.
 */
export const PART_BYTES = 16 << 20
/** The largest number of parts that a job reads at once from a store that makes requests, and the memory in which each streams. */
export const PARTS_AT_ONCE = 8
export const STREAM_BYTES = 1 << 20
/** The number of bytes at which a job is closed: several milliseconds of work, which hide the 50 µs of a round trip to a thread. */
export const JOB_BYTES = 8 << 20
export const JOB_RECORDS = 16384
/** The limit for a job's numbers besides moments: histograms can be far larger than their tensors. */
const JOB_NUMBERS = 1 << 19

/** The largest number of records in a job. @param numbers the number of answers per record, besides moments */
export function recordsOfJob(numbers: number): number {
  return Math.max(1, Math.min(JOB_RECORDS, Math.floor(JOB_NUMBERS / Math.max(1, numbers))))
}

/**
 * The size of jobs on threads while much is left to do: each job takes 0.4 ms to plan, send and answer; for 8.2 GB two threads take 2.9
 * instead of 3.5 s of CPU. Jobs become shorter at the end, so that no thread waits long for another. Those of a scan are short at first:
 * if the calling thread works too, threads that have started get work only between two of its jobs.
 */
const LONG_JOB_BYTES = 64 << 20
const JOBS_LEFT = 8

/**
 * The number of bytes that the next job should read.
 * @param remaining the bytes that are left to read
 * @param threads the number of threads that share them
 * @param planned the bytes of the earlier jobs of the same work
 */
export function jobByteLength(remaining: number, threads: number, planned = Number.POSITIVE_INFINITY): number {
  if (threads === 0) return JOB_BYTES
  return Math.max(JOB_BYTES, Math.min(LONG_JOB_BYTES, planned / JOBS_LEFT, remaining / (threads * JOBS_LEFT)))
}
/** The longest record of an event file: a protobuf message holds less than 2 GiB, and the core counts in 32 bits. */
export const RECORD_LIMIT = 0xffffffff

/** The longest record that a store can have. Composed records (tensors of checkpoints) can be of any length. */
export function recordLimit({ kind }: StoreSpec): number {
  return kind === 'composed' ? Number.MAX_SAFE_INTEGER : RECORD_LIMIT
}

/** The least memory, in bytes, that a thread can work in. */
export const MIN_MEMORY = 4 << 20
export const DEFAULT_MEMORY = 64 << 20

/**
 * The longest record, in bytes, that is read into memory at once; for a longer one, the memory besides the streamed elements. One limit
 * for both, so that what can be scanned can also be described and returned as a value.
 */
export function windowByteLength(memory: number): number {
  return Math.min(PART_BYTES, Math.floor(memory / 2))
}

/** The number of jobs on one thread, if they wait for requests. */
export function jobsAtOnce(memory: number): number {
  return Math.max(1, Math.min(4, Math.floor(memory / PART_BYTES)))
}

/** The number of bytes that each of these jobs may read ahead. */
export function aheadByteLength(memory: number): number {
  return Math.floor(memory / jobsAtOnce(memory))
}

/** The number of parts that one of these jobs reads at once. */
export function partsAtOnce(memory: number): number {
  return Math.max(1, Math.min(PARTS_AT_ONCE, Math.floor(aheadByteLength(memory) / STREAM_BYTES)))
}
