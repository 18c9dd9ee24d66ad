/**
 * Measures trialscan beside what one would use instead. `npm run bench [-- NAME… --quick --record FILE.json]`
 *
 *   NAME           only these definitions: crc32c, decode, moments, allclose, scan, rules
 *   --quick        small inputs and few rounds: a minute in all
 *   --record FILE  write the results, with the machine's description
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { parseArgs } from 'node:util'
import { type Definition, WrongAnswer } from './definition.js'
import { allclose } from './definitions/allclose.js'
import { crc32c } from './definitions/crc32c.js'
import { decode } from './definitions/decode.js'
import { moments } from './definitions/moments.js'
import { rules } from './definitions/rules.js'
import { scan } from './definitions/scan.js'
import { type Effort, measure } from './measure.js'
import { caseTable, type Result, summary } from './report.js'

const DEFINITIONS: readonly Definition[] = [crc32c, decode, moments, allclose, scan, rules]

const FULL: Effort = { rounds: 7, turnMs: 60 }
const QUICK: Effort = { rounds: 5, turnMs: 20 }

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { quick: { type: 'boolean', default: false }, record: { type: 'string' } },
  })
  const unknown = positionals.filter(name => !DEFINITIONS.some(definition => definition.name === name))
  if (unknown.length > 0) {
    const known = DEFINITIONS.map(({ name }) => name).join(', ')
    throw new Error(`expected names of definitions (${known}), got ${unknown.join(', ')}`)
  }
  const { quick, record } = values
  const effort = quick ? QUICK : FULL
  const results: Result[] = []
  for (const { name, measures, cases } of DEFINITIONS) {
    if (positionals.length > 0 && !positionals.includes(name)) continue
    console.log(`\n${name}: ${measures}`)
    for await (const { contenders, ...input } of cases({ quick })) {
      for (const { check } of contenders) await check()
      const result = { definition: name, ...input, engines: await measure(contenders, effort) }
      results.push(result)
      console.log(`\n${caseTable(result)}`)
    }
  }
  console.log(`\n${summary(results)}`)
  if (record !== undefined) {
    const text = JSON.stringify({ date: new Date().toISOString(), machine: machine(), effort, results }, null, 2)
    writeFileSync(record, `${text}\n`)
  }
}

/** Where and with what it was measured. */
function machine() {
  const { devDependencies } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    platform: `${process.platform} ${process.arch}`,
    node: process.version,
    v8: process.versions.v8,
    packages: devDependencies as Record<string, string>,
  }
}

try {
  await main()
} catch (error) {
  console.error(error instanceof WrongAnswer ? `wrong answer: ${error.message}` : error)
  process.exitCode = 1
}
