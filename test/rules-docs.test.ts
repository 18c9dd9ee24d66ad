/** docs/rules.md: a section for every built-in rule, true to its class; and its commands are run. */

import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { BUILTIN_RULES } from '#dist/index.js'
import { CLI } from './cli/run.js'
import { ROOT } from './support/golden.js'
import { part } from './support/part.js'

const PAGE = readFileSync(join(ROOT, 'docs/rules.md'), 'utf8')

/** The text below each heading of the third order. */
const SECTIONS = new Map(
  PAGE.split(/^### /m)
    .slice(1)
    .map(section => {
      const [title, ...lines] = section.split(/^## /m)[0]!.split('\n')
      return [title!, lines.join('\n')]
    }),
)

/** Text as it reads, whatever its lines. */
const flat = (text: string): string => text.replaceAll(/\s+/g, ' ')

/** The rows of the table of a section that begins so; none without it. */
function rowsOf(section: string, head = '| parameter |'): string[][] {
  const lines = section.split('\n')
  const from = lines.findIndex(line => line.startsWith(head))
  if (from < 0) return []
  const to = lines.findIndex((line, i) => i > from && !line.startsWith('|'))
  const rows = lines.slice(from + 2, to)
  return rows.map(row =>
    row
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map(cell => cell.trim().replaceAll('\\|', '|')),
  )
}

function textOf(byDefault: unknown): string {
  const text = Array.isArray(byDefault) ? byDefault.join(',') : String(byDefault ?? '')
  return text === '' ? 'none' : `\`${text}\``
}

it('has a section for every built-in rule, in their order', () => {
  const names = BUILTIN_RULES.map(({ name }) => name)
  expect([...SECTIONS.keys()].filter(title => /^\w+$/.test(title))).toEqual(names)
})

it('begins with a table of them, each with its meaning', () => {
  const rows = rowsOf(PAGE, '| rule |').map(([rule, meaning]) => [rule, meaning])
  expect(rows).toEqual(BUILTIN_RULES.map(({ name, meaning }) => [`[${name}](#${name.toLowerCase()})`, meaning]))
  expect(PAGE.indexOf('| rule |')).toBeLessThan(PAGE.indexOf('## '))
})

describe.each(BUILTIN_RULES.map(RuleClass => [RuleClass.name, RuleClass] as const))('%s', (name, RuleClass) => {
  const section = SECTIONS.get(name) ?? ''

  it('says what it means, when it fires, what it needs and what to do', () => {
    const { meaning, advice } = RuleClass
    expect(flat(section)).toContain(meaning)
    expect(flat(section)).toContain(`**When it fires**: ${advice[0]!.toLowerCase()}${advice.slice(1)}`)
    expect(section).toMatch(/^\*\*Fires\*\*.* where/m)
    expect(section).toMatch(/^\*\*Needs\*\* /m)
    expect(section).toMatch(new RegExp(`^\\$ trialscan check .*--rule '?${name}\\b`, 'm'))
  })

  it('has all parameters, what they take, and their defaults', () => {
    const rows = rowsOf(section)
    expect(rows.map(([parameter, , byDefault]) => [parameter, byDefault])).toEqual(
      Object.entries(RuleClass.parameters).map(([parameter, own]) => [`\`${parameter}\``, textOf(own.default)]),
    )
    for (const [i, [parameter, { expects }]] of Object.entries(RuleClass.parameters).entries()) {
      // Patterns are a list of names to the code; units are told beside.
      const takes = parameter.includes('regex') ? expects.replace(/^names/, 'patterns') : expects
      expect(rows[i]![1]!.replace(/(, in |: a ).*$/, '')).toBe(takes)
    }
  })

  it('tells what check gives, and why', () => {
    const { suggested, reasons, onlyByName } = RuleClass
    expect(rowsOf(section, '| `check` gives |')).toEqual(
      onlyByName ? [] : Object.entries(suggested).map(([name, value]) => [`\`${name}=${value}\``, reasons[name]]),
    )
    const told = /^`check` runs it only if it is named: (.*)\.$/m.exec(section)?.[1] ?? null
    expect(told).toBe(onlyByName)
  })
})

/** What a command prints, where `…` is anything in a line, or, alone, any lines. */
function pattern(printed: string): RegExp {
  const lines = printed.split('\n').map(line => {
    if (line === '…') return '(?:.*\\n)*?'
    return `${line
      .split('…')
      .map(text => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
      .join('.*')}\\n`
  })
  return new RegExp(`^${lines.join('')}$`)
}

function run(command: string): Promise<string> {
  const script = `trialscan() { "$0" "$CLI" "$@"; }; ${command}`
  const child = spawn('sh', ['-c', script, process.execPath], {
    cwd: ROOT,
    env: { ...process.env, CLI },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let stdout = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', () => resolve(stdout))
  })
}

describe('commands', () => {
  const blocks = [...PAGE.matchAll(/^```sh( run)?\n([\s\S]*?)^```$/gm)]
  it('are all run', () => {
    expect(blocks.length).toBeGreaterThan(BUILTIN_RULES.length)
    for (const [, isRun] of blocks) expect(isRun).toBe(' run')
  })

  const commands = blocks.flatMap(([, , text]) =>
    text!
      .split(/^\$ /m)
      .slice(1)
      .map(part => {
        const [command, ...printed] = part.trimEnd().split('\n')
        return [command!, printed.join('\n')] as const
      }),
  )
  // Quick: some of each.
  it.each(part(commands, (_, i) => i % 4 === 1))('%s', async (command, printed) => {
    expect(await run(command)).toMatch(pattern(printed))
  })
})
