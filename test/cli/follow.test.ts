/** `check --follow`: what a followed training can go through, and what is told meanwhile. */

import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { FaultyS3, failWith } from '../support/faulty-s3.js'
import { ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'
import { following, objects, trialscan } from './run.js'

const SOURCE = join(ROOT, 'fixtures/trials/mlp-vanishing')
const scratch = scratchDirectory('follow')
const stepName = (step: number): string => String(step).padStart(12, '0')

/** A copy that has no step yet. */
function begun(name: string): string {
  const trial = join(scratch, name)
  for (const folder of ['index/000000000', 'events']) mkdirSync(join(trial, folder), { recursive: true })
  cpSync(join(SOURCE, 'collections'), join(trial, 'collections'), { recursive: true })
  return trial
}

function write(trial: string, ...steps: number[]): void {
  for (const step of steps) {
    cpSync(join(SOURCE, 'events', stepName(step)), join(trial, 'events', stepName(step)), { recursive: true })
    const file = join('index/000000000', `${stepName(step)}_worker_0.json`)
    cpSync(join(SOURCE, file), join(trial, `${file}.tmp`))
    renameSync(join(trial, `${file}.tmp`), join(trial, file))
  }
}

const end = (trial: string): void => cpSync(join(SOURCE, 'training_job_end.ts'), join(trial, 'training_job_end.ts'))

function follow(trial: string, ...more: string[]) {
  const own = ['--rule', 'VanishingGradient', '--poll', '0.05', '--threads', '0']
  const { child, texts, until, code } = following(trial, ...own, ...more)
  const steps = () => [...new Set(objects(texts.stdout).flatMap(({ step }) => (step === undefined ? [] : [step])))]
  return { child, texts, until, code, steps }
}

it('says every so often how far it is', async () => {
  const trial = begun('heart')
  write(trial, 0, 10)
  const { until, code } = follow(trial, '--heartbeat', '0.05')
  await until(
    'stderr',
    /trialscan: following: 2 steps judged, the last complete one is 10; 1 rule fired; no new step for \d+ s\n/,
  )
  end(trial)
  expect(await code).toBe(1)
})

it.each([
  ['SIGHUP', 129],
  ['SIGTERM', 143],
] as const)('ends at %s with what was found, in the file, too', async (signal, exitCode) => {
  const trial = begun(signal)
  write(trial, 0)
  const out = join(scratch, `${signal}.json`)
  const { child, texts, until, code } = follow(trial, '--out', out, '--heartbeat', '0.05')
  await until('stderr', /following: 1 step judged/)
  child.kill(signal)
  expect(await code).toBe(exitCode)
  expect(JSON.parse(readFileSync(out, 'utf8'))).toMatchObject({ verdict: 'interrupted', state: 'interrupted' })
  expect(texts.stderr).toMatch(/trialscan: verdict: interrupted; 1 of 1 rule fired; .*\n$/)
})

it('goes on behind an event file that is cut, which it tells', async () => {
  const trial = begun('cut')
  write(trial, 0)
  const { texts, until, code, steps } = follow(trial)
  await until('stdout', /"step":0,/)
  cpSync(join(SOURCE, 'events', stepName(10)), join(trial, 'events', stepName(10)), { recursive: true })
  for (const file of readdirSync(join(trial, 'events', stepName(10))))
    truncateSync(join(trial, 'events', stepName(10), file), 300)
  cpSync(
    join(SOURCE, 'index/000000000', `${stepName(10)}_worker_0.json`),
    join(trial, 'index/000000000', `${stepName(10)}_worker_0.json`),
  )
  write(trial, 20)
  await until('stdout', /"step":20,/)
  end(trial)
  expect([await code, steps()]).toEqual([4, [0, 20, 10]])
  expect(texts.stderr).toMatch(/verdict: unread; .* tensor values could be read; the job has ended/)
})

it('goes on when the directory was gone, and when the job has started again there', async () => {
  const trial = begun('again')
  write(trial, 0, 10)
  const { texts, until, code, steps } = follow(trial)
  await until('stdout', /"step":10,/)
  rmSync(trial, { recursive: true })
  begun('again')
  write(trial, 0, 10, 20)
  await until('stdout', /"step":20,/)
  end(trial)
  expect([await code, steps()]).toEqual([1, [0, 10, 20]])
  expect(texts.stderr).toMatch(/verdict: failed; 1 of 1 rule fired; 3 steps judged; the job has ended/)
})

it('waits for a network that is gone, and gives up when it stays so', async () => {
  const s3 = await FaultyS3.start()
  const put = (trial: string): void => {
    for (const path of readdirSync(trial, { recursive: true, encoding: 'utf8' })) {
      if (statSync(join(trial, path)).isFile()) s3.objects.set(`runs/one/${path}`, readFileSync(join(trial, path)))
    }
  }
  const trial = begun('network')
  write(trial, 0)
  put(trial)
  const flags = ['--s3-endpoint', s3.endpoint, '--s3-region', 'us-east-1', '--s3-force-path-style', '--s3-anonymous']
  const first = follow('s3://bucket/runs/one', ...flags)
  await first.until('stdout', /"step":0,/)
  s3.faultOf = () => failWith(403, 'AccessDenied')
  await first.until('stderr', /; looking again\n/)
  write(trial, 10)
  end(trial)
  put(trial)
  s3.faultOf = undefined
  expect([await first.code, first.steps()]).toEqual([1, [0, 10]])
  expect(first.texts.stderr.match(/looking again/g)).toHaveLength(1)
  s3.objects.delete('runs/one/training_job_end.ts')
  const second = follow('s3://bucket/runs/one', ...flags, '--timeout', '1')
  await second.until('stdout', /"step":10,/)
  s3.faultOf = () => failWith(403, 'AccessDenied')
  expect(await second.code).toBe(3)
  await s3.stop()
})

it('counts StalledTrainingRule as having judged only where it waited for steps, or the job has ended', async () => {
  const trial = begun('stalled')
  const check = async (...args: string[]) => {
    const { code, stdout } = await trialscan('check', trial, '--format', 'table', ...args)
    return [code, stdout.split('\n')[0], /Nothing found by\n(?: {2}.*\n)*? .*StalledTrainingRule/.test(stdout)]
  }
  const nothing = [5, 'stalled: nothing was judged; the job may still run: --follow goes on with it', false]
  expect(await check()).toEqual(nothing)
  expect(await check('--rule', 'StalledTrainingRule')).toEqual(nothing)
  const waited = 'stalled: 1 rule judged 0 steps and found nothing wrong; the job may still run'
  expect(await check('--follow', '--timeout', '0.2', '--poll', '0.05')).toEqual([0, waited, true])
  write(trial, 0)
  expect(await check('--rule', 'StalledTrainingRule')).toEqual(nothing)
  expect(await check('--rule', 'ExplodingTensor', '--rule', 'StalledTrainingRule')).toEqual([
    5,
    'stalled: 1 rule judged 1 step and found nothing wrong; the job may still run: --follow goes on with',
    false,
  ])
  end(trial)
  expect((await check('--rule', 'StalledTrainingRule')).at(-1)).toBe(true)
})
