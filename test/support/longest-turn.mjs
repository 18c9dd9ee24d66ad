/** Loaded before a program, notes the longest turn of its main thread, in milliseconds of CPU: signals and timers wait that long. */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isMainThread } from 'node:worker_threads'

/** The thread's own, in microseconds; of the whole process where that can't be had. */
function used() {
  const { user, system } = (process.threadCpuUsage ?? process.cpuUsage)()
  if (process.threadCpuUsage || process.platform !== 'linux') return user + system
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'latin1').split(' ')[0]) / 1000
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
    writeFileSync(join(process.env.LONGEST_TURNS, `${process.pid}`), `${longest / 1000}`)
  })
}
