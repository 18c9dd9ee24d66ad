/** Writes the table of targets in bench/README.md from the newest records. `npm run bench:readme` */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { nodeOf, RECORDS, type Record } from './record.js'
import { digits } from './report.js'
import { type Target, targetsOf } from './targets.js'

const README = new URL('README.md', import.meta.url)
const START = '<!-- speed: written by bench/readme.ts -->'
const END = '<!-- speed: end -->'

const NOT_DONE = [
  'disk speed (all files were in the page cache)',
  'CPUs other than the one above',
  'sse4_crc32, which needs a compiler to install',
]

/** The Node.js that the table is about, the oldest that is supported; of the other there is a column. */
const NODE = 20
const OTHER_NODE = 24

function section({ name, record }: Named, other: Named | undefined): string {
  const { date, machine } = record
  const targets = targetsOf(record)
  const others = other === undefined ? undefined : targetsOf(other.record)
  const absent = [
    ...(machine.numpy === null ? ['numpy, which was not installed'] : []),
    ...(machine.compiler === null ? ['C, for lack of a compiler'] : []),
    ...(other === undefined ? [`Node.js ${OTHER_NODE}`] : []),
  ]
  const tools = [
    `Node.js ${machine.node.slice(1)}`,
    ...(machine.numpy === null ? [] : [`numpy ${machine.numpy}`]),
    ...(machine.compiler === null ? [] : [machine.compiler]),
  ]
  return [
    `${date.slice(0, 10)}, ${machine.cpu}, ${machine.cores} cores, ${tools.join(', ')}; the record is \`record/${name}\`${
      other === undefined
        ? ''
        : `, and another with Node.js ${other.record.machine.node.slice(1)}, \`record/${other.name}\`, from the same machine`
    }.`,
    ...losses(record),
    '',
    'The targets. For one with ≥, the ratio is their time divided by ours; for one with ≤, ours divided by theirs.',
    '',
    `| work | ours | beside | ratio | target | |${others === undefined ? '' : ` Node.js ${OTHER_NODE} |`}`,
    `| --- | ---: | --- | ---: | ---: | --- |${others === undefined ? '' : ' ---: |'}`,
    ...targets.map((target, i) => `${line(target)}${others === undefined ? '' : otherCell(others[i])}`),
    '',
    `${verdicts(targets)}${
      others === undefined ? '' : `; on Node.js ${OTHER_NODE}, of those that were measured there, ${verdicts(others)}`
    }. Not measured: ${[...absent, ...NOT_DONE].join('; ')}.`,
  ].join('\n')
}

/** A list of work in which a peer is faster in the record, with the distance to C, which is the limit. */
function losses({ results }: Record): string[] {
  const faster = (peer: RegExp) =>
    results.flatMap(({ definition, size, engines }) =>
      engines.flatMap(({ engine, ratio }) =>
        ratio < 1 && peer.test(engine) ? [{ work: `${definition}: ${size}`, engine, ratio }] : [],
      ),
    )
  const limits = faster(/^C$/)
  const ratios = limits.map(({ ratio }) => ratio).sort((a, b) => a - b)
  const limit = `${limits.length} cases`
  return [
    '',
    'Where others are faster than trialscan; the ratio is their time divided by ours:',
    '',
    '| work | faster | ratio |',
    '| --- | --- | ---: |',
    ...faster(/^(plain JS|numpy|tfjs|protobufjs|@)/).map(
      ({ work, engine, ratio }) => `| ${work} | ${engine} | ${digits(ratio)}× |`,
    ),
    `| kernels and checksums in memory: ${limit} | C, the limit | ${digits(ratios[0]!)}× to ${digits(ratios.at(-1)!)}× |`,
  ]
}

function line({ what, beside, limit, outcome }: Target): string {
  const { ours, measured, isMet } = outcome ?? { ours: '', measured: '', isMet: undefined }
  const verdict = isMet === undefined ? 'not measured' : isMet ? 'met' : '**not met**'
  return `| ${[what, ours, beside, measured, limit, verdict].join(' | ')} |`.replace(/ {2,}/g, ' ')
}

/** The ratio with the other Node.js, and whether it meets the target. */
function otherCell(target: Target | undefined): string {
  if (target?.outcome === undefined) return ' – |'
  const { ours, measured, isMet } = target.outcome
  return ` ${measured || ours}${isMet ? ', met' : ''} |`
}

function verdicts(targets: readonly Target[]): string {
  const outcomes = targets.flatMap(({ outcome }) => outcome ?? [])
  const met = outcomes.filter(({ isMet }) => isMet).length
  return `${met} targets met, ${outcomes.length - met} not`
}

interface Named {
  readonly name: string
  readonly record: Record
}

/** Full runs only: quick ones are for use during development. */
function newestRecord(node: number): Named | undefined {
  return readdirSync(RECORDS)
    .filter(name => name.endsWith('.json'))
    .map(name => ({ name, record: JSON.parse(readFileSync(new URL(name, RECORDS), 'utf8')) as Record }))
    .filter(({ record }) => !record.quick && nodeOf(record) === node)
    .sort((a, b) => a.record.date.localeCompare(b.record.date))
    .at(-1)
}

const newest = newestRecord(NODE)
if (newest === undefined) throw new Error(`expected a record of Node.js ${NODE}: npm run bench -- --record`)
const text = readFileSync(README, 'utf8')
const [start, end] = [text.indexOf(START), text.indexOf(END)]
if (start < 0 || end < start) throw new Error(`expected ${START} and ${END} in README.md`)
const table = section(newest, newestRecord(OTHER_NODE))
writeFileSync(README, `${text.slice(0, start + START.length)}\n\n${table}\n\n${text.slice(end)}`)
