/**
 * Loaded before a program, notes the longest turn of its main thread, in milliseconds of CPU: signals and timers wait that long. Beside it
 * stands how many times slower the machine is than one that parses TEXT in NOMINAL_MS.
 */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isMainThread } from 'node:worker_threads'

const TEXT = JSON.stringify(Array.from({ length: 200_000 }, (_, i) => i))
const NOMINAL_MS = 4

/** The thread's own in microseconds, where Linux counts it; else 0. */
function scheduled() {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'latin1').split(' ')[0]) / 1000
  } catch {
    return 0
  }
}

const isScheduled = !process.threadCpuUsage && scheduled() > 0

/** The thread's own, in microseconds; of the whole process where that can't be had. */
function used() {
  if (isScheduled) return scheduled()
  const { user, system } = (process.threadCpuUsage ?? process.cpuUsage)()
  return user + system
}

function slowness() {
  const times = Array.from({ length: 9 }, () => {
    const start = used()
    JSON.parse(TEXT)
    return used() - start
  })
  return times.sort((a, b) => a - b)[4] / 1000 / NOMINAL_MS
}

if (isMainThread) {
  let [since, longest] = [used(), 0]
  const note = () => {
    const now = used()
    longest = Math.max(longest, now - since)
    since = now
  }
  const turn = () => {
    note()
    setImmediate(turn).unref()
  }
  setImmediate(turn).unref()
  process.on('exit', () => {
    note()
    writeFileSync(join(process.env.LONGEST_TURNS, `${process.pid}`), `${longest / 1000} ${slowness()}`)
  })
}
