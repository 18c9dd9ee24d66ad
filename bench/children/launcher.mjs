// Starts programs for a process that has become large: forking that one would take long, and be counted.
// A request is an array of words as JSON; the answer, a JSON object in a line, what became of it.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

// Node.js 20 reads certificates as it starts where this is set, which takes longer than all else it does then: of ratios between whole processes it would hide half.
const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await run(JSON.parse(line))))
}

function run([command, ...args]) {
  return new Promise(resolve => {
    const start = performance.now()
    const since = () => performance.now() - start
    const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    const result = { code: null, elapsedMs: null, firstByteMs: null, stdout: '', stderr: '' }
    child.stdout.once('data', () => {
      result.firstByteMs = since()
    })
    for (const name of ['stdout', 'stderr']) {
      child[name].setEncoding('utf8').on('data', text => {
        result[name] += text
      })
    }
    child.once('error', error => resolve({ ...result, stderr: String(error) }))
    child.once('exit', () => {
      result.elapsedMs = since()
    })
    child.once('close', code => resolve({ ...result, code }))
  })
}
