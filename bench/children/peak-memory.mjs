// `node --import peak-memory.mjs PROGRAM`: says in the end, on standard error, how much memory the process held at most, and what it took of CPUs.
// Linux counts in `maxRSS` what the parent held when it forked, so its own account goes first.
import { readFileSync } from 'node:fs'

process.once('exit', () => {
  const { user, system } = process.cpuUsage()
  process.stderr.write(`peak memory: ${peakKiB()} KiB\nCPU: ${(user + system) / 1e6} s\n`)
})

function peakKiB() {
  try {
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync('/proc/self/status', 'utf8'))[1])
  } catch {
    return process.resourceUsage().maxRSS
  }
}
