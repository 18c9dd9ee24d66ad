/** Writes the table of README.md's "Speed" from the newest record. `npm run bench:readme` */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { RECORDS, type Record } from './record.js'
import { digits } from './report.js'
import { type Target, targetsOf } from './targets.js'

const README = new URL('../README.md', import.meta.url)
const START = '<!-- speed: written by bench/readme.ts -->'
const END = '<!-- speed: end -->'

const NOT_DONE = [
  'disk speed (all files were in the page cache)',
  'CPUs other than the one above',
  'Node.js 24',
  'sse4_crc32, which needs a compiler to install',
]

function section(record: Record, name: string): string {
  const { date, machine } = record
  const targets = targetsOf(record)
  const missed = targets.filter(({ outcome }) => outcome !== undefined && !outcome.isMet).length
  const met = targets.filter(({ outcome }) => outcome?.isMet).length
  const absent = [
    ...(machine.numpy === null ? ['numpy, which was not installed'] : []),
    ...(machine.compiler === null ? ['C, for lack of a compiler'] : []),
  ]
  const tools = [
    `Node.js ${machine.node.slice(1)}`,
    ...(machine.numpy === null ? [] : [`numpy ${machine.numpy}`]),
    ...(machine.compiler === null ? [] : [machine.compiler]),
  ]
  return [
    `${date.slice(0, 10)}, ${machine.cpu}, ${machine.cores} cores, ${tools.join(', ')}; [the record](bench/record/${name}).`,
    'For a target with ≥, the ratio is their time divided by ours; for one with ≤, ours divided by theirs.',
    '',
    '| work | ours | beside | ratio | target | |',
    '| --- | ---: | --- | ---: | ---: | --- |',
    ...targets.map(line),
    '',
    `${met} targets met, ${missed} not. Not measured: ${[...absent, ...NOT_DONE].join('; ')}.`,
    ...losses(record),
  ].join('\n')
}

/** Where somebody else is faster in the record. C is the limit: of it, how far off it is. */
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

/** Full runs only: quick ones are for use during development. */
function newestRecord(): { name: string; record: Record } {
  const records = readdirSync(RECORDS)
    .filter(name => name.endsWith('.json'))
    .map(name => ({ name, record: JSON.parse(readFileSync(new URL(name, RECORDS), 'utf8')) as Record }))
    .filter(({ record }) => !record.quick)
    .sort((a, b) => a.record.date.localeCompare(b.record.date))
  const newest = records.at(-1)
  if (newest === undefined) throw new Error('expected a record: npm run bench -- --record')
  return newest
}

const { name, record } = newestRecord()
const text = readFileSync(README, 'utf8')
const [start, end] = [text.indexOf(START), text.indexOf(END)]
if (start < 0 || end < start) throw new Error(`expected ${START} and ${END} in README.md`)
writeFileSync(README, `${text.slice(0, start + START.length)}\n\n${section(record, name)}\n\n${text.slice(end)}`)
