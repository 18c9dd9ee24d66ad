/** The cost of a scan: rows, bytes, requests and time. */

import { addTraffic, newTraffic, type Traffic } from '../../storage/store.js'
import type { ThreadTimes } from '../job/reply.js'
import type { PartReply, ScanReply } from '../job/scan-job.js'

/** The cost of a scan so far. */
export interface ScanStats {
  /** The number of rows that were yielded, and of those with an error. */
  rows: number
  failedRows: number
  records: number
  readBytes: number
  reads: number
  jobs: number
  /** The number of threads; 0 for the calling thread. */
  readonly threads: number
  elapsedMs: number
  /** The time by activity, if `timed` was set. */
  spent?: ScanTimes
  /** The number of requests, if the trial's store makes requests. */
  traffic?: Readonly<Traffic>
}

/** The time by activity in milliseconds, summed over all threads. */
export interface ScanTimes extends ThreadTimes {
  /** The time that the calling thread waited for the others. */
  readonly waitMs: number
}

/** Sums the costs of the jobs of a scan. */
export class Costs {
  readonly stats: { -readonly [K in keyof ScanStats]: ScanStats[K] } = {
    rows: 0,
    failedRows: 0,
    records: 0,
    readBytes: 0,
    reads: 0,
    jobs: 0,
    threads: 0,
    elapsedMs: 0,
  }
  #waitMs = 0

  /** @param reply null if the job has failed @param waitMs the time that the calling thread waited for it */
  add(reply: ScanReply | PartReply | null, waitMs: number): void {
    const { stats } = this
    this.#waitMs += waitMs
    stats.jobs++
    if (reply?.traffic) {
      const traffic = stats.traffic ?? newTraffic()
      addTraffic(traffic, reply.traffic)
      stats.traffic = traffic
    }
    if (reply === null) return
    stats.records += reply.stats.records
    stats.readBytes += reply.stats.readBytes
    stats.reads += reply.stats.reads
    if (reply.stats.spent) this.#spend(reply.stats.spent)
  }

  #spend({ readMs, decodeMs, reduceMs, writeMs }: ThreadTimes): void {
    const { spent } = this.stats
    this.stats.spent = {
      readMs: (spent?.readMs ?? 0) + readMs,
      decodeMs: (spent?.decodeMs ?? 0) + decodeMs,
      reduceMs: (spent?.reduceMs ?? 0) + reduceMs,
      writeMs: (spent?.writeMs ?? 0) + writeMs,
      waitMs: this.#waitMs,
    }
  }
}
