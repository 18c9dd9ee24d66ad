/** How much a job reads, and what of a thread's memory is for what. */

/** Records longer than this are cut into parts of about this size, one job each, so that threads can share them. */
export const PART_BYTES = 16 << 20
/** Where reading is making requests, a job has as many parts at once, and holds so much of each. */
export const PARTS_AT_ONCE = 8
export const STREAM_BYTES = 1 << 20
/** A job is closed when it has read this much, or so many records: several milliseconds of work, which hide the 50 µs of a thread's round trip. */
export const JOB_BYTES = 8 << 20
export const JOB_RECORDS = 16384
/** No record is longer: a protobuf message holds less than 2 GiB, and the core counts in 32 bits. */
export const RECORD_LIMIT = 0xffffffff

/** Smallest memory a thread can work in. */
export const MIN_MEMORY = 4 << 20
export const DEFAULT_MEMORY = 64 << 20

/**
 * The longest record that is read into memory at once; of a longer one, the most that is held besides the elements that
 * stream. One number for both, so that whatever can be scanned can be described and handed out, too.
 */
export function windowByteLength(memory: number): number {
  return Math.min(PART_BYTES, Math.floor(memory / 2))
}

/** Jobs at once on one thread, where they wait for answers. */
export function jobsAtOnce(memory: number): number {
  return Math.max(1, Math.min(4, Math.floor(memory / PART_BYTES)))
}

/** What each of these jobs may hold of what is read ahead. */
export function aheadByteLength(memory: number): number {
  return Math.floor(memory / jobsAtOnce(memory))
}

/** Parts that one of these jobs follows as they come. */
export function partsAtOnce(memory: number): number {
  return Math.max(1, Math.min(PARTS_AT_ONCE, Math.floor(aheadByteLength(memory) / STREAM_BYTES)))
}
