/** The recipes of deploy/: schemas, and stand-ins that set what the services would. */

import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, join } from 'node:path'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { CLI, trialscan } from './cli/run.js'
import { isRequired, ROOT } from './support/golden.js'
import { scratchDirectory } from './support/scratch.js'

const DEPLOY = join(ROOT, 'deploy')
const FIXTURES = join(ROOT, 'fixtures/trials')
const SHARDS = 4
const scratch = scratchDirectory('deploy')
const bin = join(scratch, 'bin')
const HAS_PARALLEL = spawnSync('parallel', ['--version']).status === 0

let expected: string
beforeAll(async () => {
  mkdirSync(bin)
  symlinkSync(CLI, join(bin, 'trialscan'))
  expected = (await trialscan('scan', FIXTURES, '--format', 'csv')).stdout
})

let count = 0
let plan: string
beforeEach(async () => {
  plan = join(scratch, `plan-${count++}`)
  const made = await trialscan('fleet', 'plan', FIXTURES, '--out', plan, '--shards', String(SHARDS), '--format', 'csv')
  expect(made.code).toBe(0)
})

/** Runs it as the service would, with trialscan in the path. */
function run(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): void {
  const path = [bin, process.env.PATH].join(delimiter)
  const { status, stderr } = spawnSync(command, args, { encoding: 'utf8', env: { ...process.env, PATH: path, ...env } })
  expect([stderr, status]).toEqual([expect.any(String), 0])
}

async function expectWhole(): Promise<void> {
  const { code, stdout } = await trialscan('fleet', 'merge', plan, '--out', '-')
  expect([code, stdout]).toEqual([0, expected])
}

it('has nothing that is not told of in docs/fleet.md', () => {
  const text = readFileSync(join(ROOT, 'docs/fleet.md'), 'utf8')
  for (const file of readdirSync(DEPLOY)) expect(text).toContain(`../deploy/${file})`)
})

describe('Kubernetes', () => {
  const job = parse(readFileSync(join(DEPLOY, 'kubernetes.yaml'), 'utf8'))
  const { spec } = job

  it('is an Indexed Job whose pods end as such jobs require', () => {
    expect([job.apiVersion, job.kind, spec.completionMode]).toEqual(['batch/v1', 'Job', 'Indexed'])
    expect(spec.parallelism).toBeLessThanOrEqual(spec.completions)
    // backoffLimitPerIndex and podFailurePolicy ask for it.
    expect(spec.template.spec.restartPolicy).toBe('Never')
    for (const { action } of spec.podFailurePolicy.rules)
      expect(['FailIndex', 'Ignore', 'Count', 'FailJob']).toContain(action)
  })

  it('runs each shard once', async () => {
    const { args } = spec.template.spec.containers[0] as { args: string[] }
    const own = args.map(arg => (arg.startsWith('s3://') ? plan : arg))
    for (let i = 0; i < SHARDS; i++) run('trialscan', own, { JOB_COMPLETION_INDEX: String(i) })
    await expectWhole()
  })
})

it('Slurm runs each shard once', async () => {
  const script = join(DEPLOY, 'slurm.sh')
  expect(readFileSync(script, 'utf8')).toMatch(/^#!\/bin\/bash\n(#.*\n)*#SBATCH --cpus-per-task=2\n/)
  for (let i = 0; i < SHARDS; i++) {
    run('bash', [script, plan], { SLURM_ARRAY_TASK_ID: String(i), SLURM_CPUS_PER_TASK: '1' })
  }
  await expectWhole()
})

it('AWS Batch runs each shard once', async () => {
  const definition = JSON.parse(readFileSync(join(DEPLOY, 'aws-batch-job-definition.json'), 'utf8'))
  expect(Object.keys(definition).sort()).toEqual([
    'containerProperties',
    'jobDefinitionName',
    'parameters',
    'platformCapabilities',
    'retryStrategy',
    'timeout',
    'type',
  ])
  expect(definition.retryStrategy.attempts).toBeLessThanOrEqual(10)
  expect(definition.retryStrategy.evaluateOnExit.length).toBeLessThanOrEqual(5)
  // A stand-in for the command line of AWS: it runs an array job as the definition says.
  const aws = join(bin, 'aws')
  const { command, ...others } = definition.containerProperties
  expect(others.resourceRequirements).toHaveLength(2)
  writeFileSync(
    aws,
    `#!/bin/bash
set -euo pipefail
[ "$1 $2 $3 $4 $5 $6 $7 $8" = "batch submit-job --job-name trialscan --job-definition ${definition.jobDefinitionName} --job-queue queue" ]
[ "$9" = --array-properties ]; size="\${10#size=}"
[ "\${11}" = --parameters ]; plan="\${12#plan=}"
for ((i = 0; i < size; i++)); do AWS_BATCH_JOB_ARRAY_INDEX=$i trialscan ${command.join(' ').replace('Ref::plan', '"$plan"')}; done
`,
  )
  chmodSync(aws, 0o755)
  run('bash', [join(DEPLOY, 'aws-batch.sh'), plan, String(SHARDS), 'queue'])
  await expectWhole()
})

it('Step Functions: the state machine is one, and its command is that of a shard', async () => {
  const machine = JSON.parse(readFileSync(join(DEPLOY, 'step-functions.json'), 'utf8'))
  const validate = createRequire(import.meta.url)('asl-validator') as (machine: unknown) => {
    isValid: boolean
    errors: unknown[]
  }
  expect(validate(machine)).toMatchObject({ isValid: true, errors: [] })
  const [override] = machine.States.Shards.ItemProcessor.States.Run.Parameters.Overrides.ContainerOverrides
  const [, text] = /^States\.Array\((.*)\)$/.exec(override['Command.$'])!
  const { shards } = JSON.parse(readFileSync(join(plan, 'plan.json'), 'utf8')) as { shards: unknown[] }
  for (const i of shards.keys()) {
    const args = text!
      .split(', ')
      .map(arg => (arg === '$.plan' ? plan : arg === '$.shard' ? String(i) : arg.slice(1, -1)))
    run('trialscan', args)
  }
  await expectWhole()
})

it.runIf(HAS_PARALLEL || isRequired('parallel'))(
  'GNU parallel runs each shard once, and again where one fails',
  async () => {
    const script = join(DEPLOY, 'parallel.sh')
    run('bash', [script, plan, String(SHARDS)], { PARALLEL_HOME: scratch })
    await expectWhole()
    expect(existsSync(join(plan, 'joblog'))).toBe(true)
    run('bash', [script, plan, String(SHARDS)], { PARALLEL_HOME: scratch })
  },
)

it('Docker: the image is made of what npm pack makes', () => {
  const text = readFileSync(join(DEPLOY, 'Dockerfile'), 'utf8')
  const { name, bin } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { name: string; bin: object }
  expect(text).toContain(`COPY ${name}-*.tgz`)
  expect(Object.keys(bin)).toContain(/^ENTRYPOINT \["(.*)"\]$/m.exec(text)![1])
  expect(text).toMatch(/^FROM node:2[04]-slim$/m)
})
