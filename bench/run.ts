/**
 * Measures trialscan beside what one would use instead. `npm run bench [-- NAME… --quick --record]`
 *
 *   NAME      only these definitions
 *   --quick   small inputs and few rounds
 *   --record  write the results to bench/record/<date>-<cpu>-node<version>.json, with the machine's description
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { parseArgs } from 'node:util'
import { type Effort, measure } from '#dist/cli/bench/measure.js'
import { type Definition, WrongAnswer } from './definition.js'
import { allclose } from './definitions/allclose.js'
import { arrays } from './definitions/arrays.js'
import { calls } from './definitions/calls.js'
import { capture } from './definitions/capture.js'
import { checkpoint } from './definitions/checkpoint.js'
import { cli } from './definitions/cli.js'
import { crc32c } from './definitions/crc32c.js'
import { decode } from './definitions/decode.js'
import { diff } from './definitions/diff.js'
import { floor } from './definitions/floor.js'
import { kernels } from './definitions/kernels.js'
import { moments } from './definitions/moments.js'
import { open } from './definitions/open.js'
import { rows } from './definitions/rows.js'
import { rules } from './definitions/rules.js'
import { s3 } from './definitions/s3.js'
import { scan } from './definitions/scan.js'
import { several } from './definitions/several.js'
import { sketch } from './definitions/sketch.js'
import { table } from './definitions/table.js'
import { tensorboard } from './definitions/tensorboard.js'
import { verify } from './definitions/verify.js'
import { view } from './definitions/view.js'
import { write } from './definitions/write.js'
import * as native from './engines/native.js'
import * as numpy from './engines/numpy.js'
import { manifest } from './package.js'
import { endAnswerers } from './processes.js'
import { nodeOf, RECORDS, type Record } from './record.js'
import { caseTable, type Result, summary } from './report.js'

const DEFINITIONS: readonly Definition[] = [
  crc32c,
  decode,
  moments,
  sketch,
  kernels,
  arrays,
  allclose,
  open,
  scan,
  rows,
  calls,
  verify,
  rules,
  cli,
  floor,
  several,
  table,
  tensorboard,
  checkpoint,
  diff,
  write,
  capture,
  view,
  s3,
]

const FULL: Effort = { rounds: 5, turnMs: 50 }
const QUICK: Effort = { rounds: 3, turnMs: 20 }

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { quick: { type: 'boolean', default: false }, record: { type: 'boolean', default: false } },
  })
  const unknown = positionals.filter(name => !DEFINITIONS.some(definition => definition.name === name))
  if (unknown.length > 0) {
    const known = DEFINITIONS.map(({ name }) => name).join(', ')
    throw new Error(`expected names of definitions (${known}), got ${unknown.join(', ')}`)
  }
  const { quick, record } = values
  const chosen = DEFINITIONS.filter(({ name }) => positionals.length === 0 || positionals.includes(name))
  const effort = quick ? QUICK : FULL
  const results: Result[] = []
  for (const { name, measures, cases } of chosen) {
    console.log(`\n${name}: ${measures}`)
    for await (const { contenders, rounds = effort.rounds, ...input } of cases({ quick })) {
      for (const { check } of contenders) await check()
      const engines = await measure(contenders, { ...effort, rounds: Math.min(rounds, effort.rounds) })
      const result = { definition: name, ...input, engines }
      results.push(result)
      console.log(`\n${caseTable(result)}`)
    }
  }
  console.log(`\n${summary(results)}`)
  if (record) writeRecord({ date: new Date().toISOString(), quick, machine: machine(), effort, results })
}

function writeRecord(record: Record): void {
  const cpu = record.machine.cpu.toLowerCase().replace(/[^a-z0-9]+/g, '-')
  mkdirSync(RECORDS, { recursive: true })
  const name = `${record.date.slice(0, 10)}-${cpu.replace(/^-|-$/g, '')}-node${nodeOf(record)}.json`
  writeFileSync(new URL(name, RECORDS), `${JSON.stringify(record, null, 2)}\n`)
  console.log(`\nbench/record/${name}`)
}

/** The machine and the versions of a measurement. */
function machine(): Record['machine'] {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    platform: `${process.platform} ${process.arch}`,
    node: process.version,
    v8: process.versions.v8,
    compiler: native.compiler ?? null,
    numpy: numpy.version ?? null,
    packages: manifest.devDependencies,
  }
}

try {
  await main()
} catch (error) {
  console.error(error instanceof WrongAnswer ? `wrong answer: ${error.message}` : error)
  process.exitCode = 1
} finally {
  endAnswerers()
}
