/** The recipes of docs/ci.md: their YAML is read, and their commands run on a fixture. */

import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'
import { CLI } from './run.js'

const scratch = scratchDirectory('ci-docs')
const page = readFileSync(join(ROOT, 'docs/ci.md'), 'utf8')
const blockOf = (title: string): string =>
  new RegExp(`^## ${title}$.*?^\`\`\`\\w+\n(.*?)^\`\`\`$`, 'ms').exec(page)![1]!

/** Programs that the recipes call: ours, and two that note what they were given. */
function programs(): string {
  const directory = join(scratch, 'bin')
  if (existsSync(directory)) return directory
  mkdirSync(directory)
  const program = (name: string, text: string) => {
    writeFileSync(join(directory, name), `#!/bin/sh\n${text}\n`)
    chmodSync(join(directory, name), 0o755)
  }
  program('npx', `shift\nexec '${process.execPath}' '${CLI}' "$@"`)
  program('curl', 'echo "$3" >>posted.jsonl')
  program('scontrol', 'echo "$@" >>comment.txt')
  return directory
}

function run(script: string, name: string, environment: Record<string, string> = {}) {
  const cwd = join(scratch, name)
  const trial = join(cwd, 'run')
  cpSync(join(ROOT, 'fixtures/trials/mlp-vanishing'), trial, { recursive: true })
  const path = `${programs()}${delimiter}${process.env.PATH}`
  const env = { ...process.env, ...environment, TRIAL: trial, PATH: path }
  const { status, stdout, stderr } = spawnSync('bash', ['-c', script], { cwd, env, encoding: 'utf8' })
  return { status, stdout, stderr, file: (name: string) => readFileSync(join(cwd, name), 'utf8') }
}

it('GitHub: errors are annotations, and the step fails', () => {
  const [{ run: script }] = parse(blockOf('GitHub')).steps
  const { status, stdout } = run(script, 'github')
  expect([status, stdout]).toEqual([1, expect.stringMatching(/^::error title=VanishingGradient%3A /)])
})

it('GitLab: reports are where the job says', () => {
  const { script, artifacts } = parse(blockOf('GitLab'))['check-training']
  const { status, file } = run(script.join('\n'), 'gitlab')
  expect(status).toBe(1)
  const [files, rules] = artifacts.reports.junit.map(file)
  expect(files).toContain('name="files"/>')
  expect(rules).toContain('<failure message=')
})

it('Slurm: the comment of the job is its verdict', () => {
  const { status, file } = run(blockOf('Slurm'), 'slurm', { SLURM_JOB_ID: '17' })
  expect([status, file('comment.txt')]).toEqual([
    0,
    expect.stringMatching(/^update JobId=17 Comment=trialscan: verdict: failed; 1 of 6 rules fired; /),
  ])
  expect(JSON.parse(file('run.check.json'))).toMatchObject({ verdict: 'failed' })
})

it('Kubernetes: the sidecar posts what it finds', () => {
  const { containers } = parse(blockOf('Kubernetes')).spec.template.spec
  const { command, args } = containers[1]
  expect(command).toEqual(['bash', '-c'])
  const { status, stderr, file } = run(args[0], 'kubernetes', { WEBHOOK: 'https://hooks.example.com/training' })
  expect([status, stderr]).toEqual([0, expect.stringMatching(/trialscan: verdict: passed; 1 of 6 rules fired; /)])
  const posted = file('posted.jsonl')
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  expect(posted[0]).toMatchObject({ rule: 'VanishingGradient', step: 0 })
})

it('the verdict is what check prints', () => {
  const { stderr } = run('npx trialscan check "$TRIAL"', 'verdict')
  const shown = /^trialscan: verdict: .*(?=…$)/m.exec(page)![0]
  expect(stderr.split('\n').at(-2)!.slice(0, shown.length)).toBe(shown)
})
