/** What CI reads: the verdict, and findings as one object, as annotations, as JUnit's XML and as SARIF. */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Report } from '#dist/cli/format/ci/report.js'
import { type ReportFormat, reportText } from '#dist/cli/format/ci/text.js'
import { safe, safeJson } from '#dist/cli/terminal.js'
import { copyTrial, corruptions } from '../../fixtures/corrupt.js'
import { ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'
import { objects, PLAIN, trialscan } from './run.js'

const VANISHING = join(ROOT, 'fixtures/trials/mlp-vanishing')
const RULE = ['--rule', 'VanishingGradient', '--rule', 'ExplodingTensor', '--rule', 'DeadRelu']
const scratch = scratchDirectory('ci')
/** Cuts an event file of a copy. */
function damage(trial: string): void {
  copyTrial(PLAIN, trial)
  corruptions[0]!.apply(trial)
}

/** The elements of an XML text. @throws for one that is not well-formed, as far as its tags go */
function elements(xml: string): { name: string; attributes: Record<string, string>; parent: string | null }[] {
  const open: string[] = []
  const found: ReturnType<typeof elements> = []
  for (const [, end, name, attributes, self] of xml.matchAll(/<(\/?)([\w-]+)((?: [\w-]+="[^"<]*")*)(\/?)>/g)) {
    if (end) expect(open.pop()).toBe(name)
    else {
      const pairs = [...attributes!.matchAll(/ ([\w-]+)="([^"]*)"/g)].map(([, key, value]) => [key, value])
      found.push({ name: name!, attributes: Object.fromEntries(pairs), parent: open.at(-1) ?? null })
      if (!self) open.push(name!)
    }
  }
  expect(open).toEqual([])
  const text = xml.replace(/<[^>]*>/g, '').replace(/&(amp|lt|gt|quot);/g, '')
  expect(text).not.toMatch(/[<&]|[^\P{Cc}\n]/u)
  return found
}

/** The attributes and parents of elements, as Jenkins' schema of JUnit has them. */
const JUNIT: Record<string, { in: (string | null)[]; required: string[]; optional: string[] }> = {
  testsuites: { in: [null], required: [], optional: ['name', 'tests', 'failures', 'errors'] },
  testsuite: { in: ['testsuites'], required: ['name', 'tests', 'failures', 'errors'], optional: ['skipped'] },
  testcase: { in: ['testsuite'], required: ['name'], optional: ['classname'] },
  skipped: { in: ['testcase'], required: [], optional: ['message', 'type'] },
  failure: { in: ['testcase'], required: [], optional: ['message', 'type'] },
  error: { in: ['testcase'], required: [], optional: ['message', 'type'] },
  'system-out': { in: ['testcase', 'testsuite'], required: [], optional: [] },
}

function expectJunit(xml: string): ReturnType<typeof elements> {
  expect(xml).toMatch(/^<\?xml version="1\.0" encoding="UTF-8"\?>\n/)
  const all = elements(xml.replace(/^<\?.*\?>/, ''))
  for (const { name, attributes, parent } of all) {
    const { in: parents, required, optional } = JUNIT[name]!
    expect(parents).toContain(parent)
    expect(Object.keys(attributes)).toEqual(expect.arrayContaining(required))
    expect([...required, ...optional]).toEqual(expect.arrayContaining(Object.keys(attributes)))
  }
  const suites = all.filter(({ name }) => name === 'testsuite')
  for (const kind of ['failure', 'error'] as const) {
    const sum = suites.reduce((sum, { attributes }) => sum + Number(attributes[`${kind}s`]), 0)
    expect(all.filter(({ name }) => name === kind)).toHaveLength(sum)
    expect(all[0]!.attributes[`${kind}s`]).toBe(`${sum}`)
  }
  return all
}

/** The parts of SARIF 2.1.0 that its schema requires, and the words that it allows. */
function expectSarif(text: string) {
  const log = JSON.parse(text)
  expect(Object.keys(log)).toEqual(['$schema', 'version', 'runs'])
  expect(log.version).toBe('2.1.0')
  for (const run of log.runs) {
    expect(Object.keys(run)).toEqual(['tool', 'invocations', 'results'])
    const { rules, ...driver } = run.tool.driver
    expect(driver).toEqual({ name: 'trialscan', semanticVersion: expect.stringMatching(/^\d+\.\d+\.\d+/) })
    expect(new Set(rules.map(({ id }: { id: string }) => id)).size).toBe(rules.length)
    for (const { executionSuccessful, toolExecutionNotifications } of run.invocations) {
      expect(executionSuccessful).toBeTypeOf('boolean')
      for (const { level, message } of toolExecutionNotifications) {
        expect(['error', 'note']).toContain(level)
        expect(message.text).toBeTypeOf('string')
      }
    }
    for (const { ruleId, ruleIndex, level, message, occurrenceCount, locations } of run.results) {
      expect(rules[ruleIndex].id).toBe(ruleId)
      expect(['error', 'warning']).toContain(level)
      expect(message.text).not.toBe('')
      expect(occurrenceCount).toBeGreaterThan(0)
      expect(locations[0].physicalLocation.artifactLocation.uri).toMatch(/^[\w./%'-]+$/)
    }
  }
  return log.runs[0]
}

const NASTY = 'a<b>&"c\'%,:\n::error::x\x1b[2J\ufffe'
const nasty: Report = {
  command: 'check',
  trial: `runs/${NASTY}#?`,
  verdict: { word: 'failed', exitCode: 1, text: NASTY },
  cases: [
    {
      name: NASTY,
      state: 'failed',
      message: NASTY,
      help: NASTY,
      results: [{ message: NASTY, tensor: NASTY, offset: 7 }],
    },
    { name: 'Noted', state: 'noted', message: NASTY, results: [{ message: NASTY, file: 'events/0/x' }] },
    { name: 'Unread', state: 'unread', message: NASTY, results: [] },
    { name: 'Unjudged', state: 'unjudged', message: NASTY, results: [] },
    { name: 'Passed', state: 'passed', message: '', results: [] },
  ],
}

describe('texts that mean harm', () => {
  it('stay in their annotation', () => {
    const lines = reportText('github', [nasty]).split('\n')
    expect(lines.map(line => line.replace(/^(::\w+).*/s, '$1'))).toEqual([
      '::error',
      '::warning',
      '::error',
      '::notice',
      '',
    ])
    for (const line of lines.slice(0, 4)) {
      expect(line).toMatch(/^::\w+ title=[^:,]*::.*$/)
      expect(line).not.toContain('\x1b')
      expect(line.replace(/%(25|0D|0A|3A|2C)/g, '')).not.toContain('%')
    }
    expect(lines[0]).toContain('%25,:%0A\\x3a:error::x\\x1b[2J')
  })

  it('are no commands to a log that shows tables and messages', () => {
    expect(safe('::error file=x::y')).toBe('\\x3a:error file=x::y')
    expect(safe('  ::stop-commands::y, std::vector')).toBe('  \\x3a:stop-commands::y, std::vector')
    expect(safe('a##[add-mask]a')).toBe('a\\x23#[add-mask]a')
    const json = JSON.stringify('a##[error]::x')
    expect(safeJson(json)).toBe('"a\\u0023#[error]::x"')
    expect(JSON.parse(safeJson(json))).toBe('a##[error]::x')
  })

  it('stay in their element', () => {
    const all = expectJunit(reportText('junit', [nasty]))
    expect(all.map(({ name }) => name)).toEqual(
      'testsuites testsuite testcase failure testcase system-out testcase error testcase skipped testcase system-out'.split(
        ' ',
      ),
    )
    expect(all[1]!.attributes).toMatchObject({ tests: '5', failures: '1', errors: '1', skipped: '1' })
  })

  it('are text in SARIF, and their paths URLs', () => {
    const { results, invocations } = expectSarif(reportText('sarif', [nasty]))
    const [failed, noted] = results
    expect(failed.locations[0].physicalLocation.region).toEqual({ byteOffset: 7 })
    expect([failed.message.text, failed.level, noted.level]).toEqual([NASTY, 'error', 'warning'])
    expect(noted.locations[0].physicalLocation.artifactLocation.uri).toMatch(/%23%3F\/events\/0\/x$/)
    expect(invocations[0].toolExecutionNotifications.map(({ level }: { level: string }) => level)).toEqual([
      'error',
      'note',
    ])
  })
})

describe('check', () => {
  it('is one object with the verdict, the findings, and what was not judged and why', async () => {
    const { code, stdout, stderr } = await trialscan('check', VANISHING, ...RULE, '--format', 'json')
    const { findings, not_judged, ...rest } = JSON.parse(stdout)
    expect(rest).toEqual({
      trial: VANISHING,
      verdict: 'failed',
      exit_code: 1,
      text: expect.stringMatching(
        /^1 of 2 rules fired; .*1 rule had nothing to judge; first VanishingGradient at step 0/,
      ),
      selection: null,
      state: 'ended',
      steps: 15,
      learning_rates: [],
      to_save: [expect.objectContaining({ CollectionName: 'relu_output' })],
      problems: [],
    })
    expect(code).toBe(1)
    expect(stderr.split('\n').at(-2)).toBe(`trialscan: verdict: failed; ${rest.text}`)
    const lines = objects((await trialscan('check', VANISHING, ...RULE, '--format', 'jsonl')).stdout)
    expect(findings).toEqual(lines.filter(one => 'step' in one))
    expect(not_judged).toEqual(lines.filter(one => 'missing' in one))
  })

  it.each<[ReportFormat, string]>([
    ['junit', 'xml'],
    ['sarif', 'sarif'],
    ['github', 'txt'],
  ])('is a report as %s', async (format, ending) => {
    const out = join(scratch, `report.${ending}`)
    const asked = ending === 'txt' ? ['--format', format] : []
    expect((await trialscan('check', VANISHING, PLAIN, ...RULE, '--out', out, ...asked)).code).toBe(1)
    const text = readFileSync(out, 'utf8')
    if (format === 'junit') {
      const all = expectJunit(text)
      const cases = all.filter(({ parent }) => parent === 'testcase')
      expect(cases.map(({ name }) => name)).toEqual(['failure', 'skipped', 'skipped', 'skipped'])
    } else if (format === 'sarif') {
      const { results, invocations } = expectSarif(text)
      expect(results.map(({ ruleId }: { ruleId: string }) => ruleId)).toEqual(
        Array.from({ length: 8 }, () => 'VanishingGradient'),
      )
      expect(invocations).toMatchObject([{ executionSuccessful: true }, { executionSuccessful: false }])
    } else {
      expect(text.match(/^::\w+/gm)).toEqual(['::error', '::notice', '::error'])
    }
  })

  it('counts the findings of some rules alone where --fail-on names them', async () => {
    const run = (...more: string[]) => trialscan('check', VANISHING, '--format', 'github', ...more)
    const other = await run('--fail-on', 'exploding_tensor')
    expect(other.code).toBe(0)
    expect(other.stdout).toMatch(/^::warning title=VanishingGradient/)
    expect(other.stderr).toMatch(/verdict: passed; 1 of 6 rules fired; /)
    expect((await run('--fail-on', 'ExplodingTensor,VanishingGradient')).code).toBe(1)
    // Nobody is to take for a pass what was not judged.
    const idle = await run('--fail-on', 'DeadRelu')
    expect([idle.code, idle.stderr]).toEqual([
      5,
      expect.stringMatching(/DeadRelu had nothing to judge.*\n.*verdict: unjudged/),
    ])
    expect((await run('--fail-on', 'DeadRelo')).stderr).toContain('did you mean DeadRelu?')
    const left = await run('--rule', 'AllZero', '--fail-on', 'DeadRelu')
    expect([left.code, left.stderr]).toEqual([2, expect.stringContaining('got DeadRelu, which --rule does not name')])
  })

  it('has an error in place of a verdict where it can not begin', async () => {
    const { code, stdout, stderr } = await trialscan('check', join(scratch, 'nosuch'), '--format', 'json')
    expect([code, stdout, stderr]).toEqual([
      3,
      '',
      expect.stringMatching(/^trialscan: .*: no such file or directory\n$/),
    ])
  })

  it('prints the verdict alone where it is to be quiet', async () => {
    const { code, stdout, stderr } = await trialscan('check', VANISHING, PLAIN, '--quiet')
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toBe('trialscan: verdict: failed; 1 of 2 trials failed, 1 passed\n')
    const out = join(scratch, 'quiet.json')
    expect((await trialscan('check', VANISHING, '--quiet', '--out', out)).stdout).toBe('')
    expect(JSON.parse(readFileSync(out, 'utf8'))).toMatchObject({ verdict: 'failed' })
  })

  it.each<[string[], number, RegExp | string]>([
    [['--tensor', 'hidden\\.1\\.bias'], 1, 'gradient/DeepSigmoid_hidden.1.bias'],
    [
      ['--tensor', 'CrossEntropy'],
      5,
      'tensors of the collection "gradients" among those that are selected; the trial has',
    ],
    [['--collection', 'losses'], 5, 'among those that are selected'],
    [['--collection', 'nosuch'], 5, 'nosuch'],
    [['--mode', 'TRAIN', '--steps', ':21'], 1, 'only --steps :21 --mode TRAIN; '],
    [['--mode', 'EVAL'], 5, 'only --mode EVAL; '],
    [['--mode', 'PREDICT'], 5, 'no step is in --mode PREDICT; '],
  ])('judges what %j selects, and says so', async (selection, code, text) => {
    const rule = ['--rule', 'VanishingGradient,mode=TRAIN']
    const found = await trialscan('check', VANISHING, ...rule, ...selection)
    expect([found.code, found.stderr + found.stdout]).toEqual([code, expect.stringContaining(text as string)])
    if (code !== 1) return
    const findings = objects(found.stdout).filter(one => 'step' in one)
    if (selection.includes('--tensor')) expect(new Set(findings.map(({ tensor }) => tensor))).toEqual(new Set([text]))
    expect(found.stderr).toContain(
      `only ${selection.includes('--mode') ? '--steps :21 --mode TRAIN' : selection.join(' ')}`,
    )
  })

  it('tells of several trials the verdict of each, and of one that can’t be read', async () => {
    const bad = join(scratch, 'bad')
    damage(bad)
    const { code, stdout } = await trialscan('check', VANISHING, bad, PLAIN, '--format', 'json')
    const { trials, ...rest } = JSON.parse(stdout)
    expect(rest).toMatchObject({ exit_code: code, text: expect.stringMatching(/^\d of 3 trials failed, /) })
    expect(trials.map(({ trial }: { trial: string }) => trial)).toEqual([VANISHING, bad, PLAIN])
  })
})

describe('verify, nan and diff', () => {
  const damaged = join(scratch, 'damaged')
  const commands = (): [string, string[], string, number][] => {
    if (!existsSync(damaged)) damage(damaged)
    return [
      ['verify', [damaged], 'failed', 4],
      ['verify', [VANISHING], 'passed', 0],
      ['nan', [VANISHING], 'passed', 0],
      ['diff', [VANISHING, VANISHING], 'passed', 0],
      ['diff', [VANISHING, join(ROOT, 'fixtures/trials/mlp-all-zero')], 'failed', 1],
      ['nan', [VANISHING, '--tensor', 'nosuch'], 'unjudged', 5],
      ['check', [VANISHING, '--tensor', 'nosuch'], 'unjudged', 5],
    ]
  }

  it('have the same reports and verdicts', async () => {
    for (const [command, args, verdict, exitCode] of commands()) {
      const run = (format: string) => trialscan(command, ...args, '--format', format)
      const json = await run('json')
      expect([json.code, JSON.parse(json.stdout)], command).toEqual([
        exitCode,
        expect.objectContaining({ verdict, exit_code: exitCode }),
      ])
      expect(json.stderr).toContain(`trialscan: verdict: ${verdict}; ${JSON.parse(json.stdout).text}\n`)
      const kinds = expectJunit((await run('junit')).stdout).filter(({ parent }) => parent === 'testcase')
      const child = { passed: undefined, failed: 'failure', unjudged: 'skipped' }[verdict]
      expect(kinds[0]?.name).toBe(child)
      expect(expectSarif((await run('sarif')).stdout).results.length > 0).toBe(verdict === 'failed')
      expect(/^::error/.test((await run('github')).stdout)).toBe(verdict !== 'passed')
      const quiet = await trialscan(command, ...args, '--quiet')
      expect([quiet.code, quiet.stdout]).toEqual([exitCode, ''])
      expect(quiet.stderr).toMatch(new RegExp(`trialscan: verdict: ${verdict}; .*\\n$`))
    }
  })

  it('verify counts the problems that --fail-on names', async () => {
    commands()
    const problems = JSON.parse((await trialscan('verify', damaged, '--format', 'json')).stdout)
    const [code] = Object.keys(problems.problem_counts)
    expect((await trialscan('verify', damaged, '--fail-on', code!)).code).toBe(4)
    const other = await trialscan('verify', damaged, '--fail-on', 'NaNValues', '--quiet')
    expect([other.code, other.stderr]).toEqual([0, expect.stringContaining('; only NaNValues counts; ')])
    expect((await trialscan('verify', damaged, '--fail-on', 'NaNValue')).stderr).toContain('did you mean "NaNValues"?')
  })
})

describe('what a name could do to a terminal', () => {
  const trial = join(scratch, 'a\u009b31m\u202e')
  it.each([
    ['check', trial, ...RULE],
    ['verify', trial],
    ['nan', trial],
    ['diff', trial, PLAIN],
  ])('is escaped in every format of %s', async (...args) => {
    if (!existsSync(trial)) copyTrial(PLAIN, trial)
    for (const format of ['json', 'github', 'junit', 'sarif']) {
      const { stdout } = await trialscan(...args, '--format', format)
      expect(stdout, format).not.toMatch(/[\u0080-\u009f\u202a-\u202e]/)
      if (format === 'json') expect(JSON.stringify(JSON.parse(stdout))).toContain('a\u009b31m\u202e')
    }
  })
})
