// `node --import peak-memory.mjs PROGRAM`: says in the end, on standard error, how much memory the process held at most, and what it took of
// CPUs, in all and in its main thread (where Linux tells).
// Linux counts in `maxRSS` what the parent held when it forked, so its own account goes first.
import { readFileSync } from 'node:fs'

process.once('exit', () => {
  const { user, system } = process.cpuUsage()
  process.stderr.write(
    `peak memory: ${peakKiB()} KiB\nCPU: ${(user + system) / 1e6} s, the main thread ${mainSeconds()} s\n`,
  )
})

function mainSeconds() {
  try {
    const [, words] = readFileSync(`/proc/self/task/${process.pid}/stat`, 'utf8').split(') ')
    const ticks = words.split(' ').slice(11, 13).map(Number)
    return (ticks[0] + ticks[1]) / 100
  } catch {
    return Number.NaN
  }
}

function peakKiB() {
  try {
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync('/proc/self/status', 'utf8'))[1])
  } catch {
    return process.resourceUsage().maxRSS
  }
}
