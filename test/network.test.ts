/** Of a local trial nothing is asked over the network: whoever tries to connect is ended. */

import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { CLI } from './cli/run.js'
import { fixtureTrial } from './support/golden.js'
import { part } from './support/part.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('network')

/** In the main thread and in the others, before anything else is loaded. */
const WATCH = `data:text/javascript,${encodeURIComponent(`
  import net from 'node:net'
  import dns from 'node:dns'
  import dgram from 'node:dgram'
  const refuse = () => { process.stderr.write('CONNECTS'); process.kill(process.pid, 'SIGKILL') }
  net.Socket.prototype.connect = refuse
  dns.lookup = refuse
  dgram.Socket.prototype.send = refuse
`)}`

const run = (args: readonly string[]) =>
  promisify(execFile)(process.execPath, ['--import', WATCH, ...args], { maxBuffer: 1 << 26 }).catch(error => error)

it('sees who connects', async () => {
  const { signal, stderr } = await run(['-e', "fetch('http://127.0.0.1:8009')"])
  expect([signal, stderr]).toEqual(['SIGKILL', 'CONNECTS'])
})

const { directory } = fixtureTrial('mlp-vanishing')

const commands = [
  ['ls', directory],
  ['scan', directory, '--threads', '2'],
  ['show', directory, 'scalar/lr', '--step', '0'],
  ['check', directory, '--threads', '2'],
  ['verify', directory, '--threads', '2'],
  ['repair', directory, '--out', join(scratch, 'clean')],
  ['reindex', directory, '--out', join(scratch, 'index')],
]
it.each(part(commands, ([name]) => ['ls', 'scan', 'check'].includes(name!)))('is not done by %s', async (...args) => {
  const { signal, stdout, stderr } = await run([CLI, ...args])
  expect([signal ?? null, stderr.includes('CONNECTS')]).toEqual([null, false])
  expect(stdout + stderr).not.toBe('')
})
