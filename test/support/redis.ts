/** A real Redis, where it is installed with the packages that talk to it. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isRequired, ROOT } from './golden.js'

/** Whether tests that need it run. In CI nothing is skipped: without it they then fail. */
export const HAS_REDIS =
  isRequired('redis') ||
  (existsSync(join(ROOT, 'node_modules/bullmq')) && spawnSync('redis-server', ['--version']).status === 0)

export interface RedisServer {
  readonly port: number
  /** As `redis-server` takes them, beside those for a port and a log of all that was done. */
  start(...options: readonly string[]): Promise<void>
  /** At once, as a machine that goes away. */
  kill(): Promise<void>
}

/** @param directory for its log, which a restart reads */
export async function redisServer(directory: string): Promise<RedisServer> {
  const port = await freePort()
  let child: ChildProcess | undefined
  return {
    port,
    async start(...options) {
      const log = ['--appendonly', 'yes', '--save', '', '--dir', directory]
      child = spawn('redis-server', ['--port', String(port), ...log, ...options], { stdio: 'ignore' })
      const ports = [port, ...options.flatMap((option, i) => (option === '--tls-port' ? Number(options[i + 1]) : []))]
      for (const port of ports) while (!(await answers(port))) await sleep(20)
    },
    async kill() {
      const ended = new Promise(resolve => child?.on('close', resolve))
      child?.kill('SIGKILL')
      await ended
    },
  }
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}

function answers(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}
