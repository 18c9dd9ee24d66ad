/** A disk that is full: a small file system in memory, where this process may mount one (root, outside of most containers). */

import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTrial, createWriter, verifyTrial, type WriterOptions } from '#dist/index.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('disk-full')
const place = join(scratch, 'small')
const STEPS = 12

const mount = (): void => {
  mkdirSync(place, { recursive: true })
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'trialscan-test', place], { stdio: 'pipe' })
}
const unmount = (): void => {
  execFileSync('umount', [place])
}

function canMount(): boolean {
  try {
    mount()
    unmount()
    return true
  } catch {
    console.log('skipped: a full disk; no file system can be mounted here')
    return false
  }
}

describe.runIf(process.platform === 'linux' && canMount())('a disk of 1 MB', () => {
  beforeEach(mount)
  afterEach(unmount)

  /** A training that would need more. @returns how many steps it came to */
  async function train(path: string, options: WriterOptions, byteLength: number): Promise<number> {
    const writer = await createWriter(path, { saveConfig: { saveInterval: 1 }, checksums: true, ...options })
    const data = new Float32Array(byteLength / 4)
    let step = 0
    try {
      for (; step < STEPS; step++) {
        await writer.step()
        await writer.save('x', data.fill(step))
      }
    } finally {
      await writer.close()
    }
    expect(writer.failure).toMatchObject({ name: 'StoreError', code: 'Unavailable' })
    expect(writer.failure!.message).toMatch(/^cannot write .*: no space left on the device$/)
    expect(writer.shouldSave('x')).toBe(false)
    return step
  }

  /** Whole steps from the first one on, and nothing half. */
  async function expectStepsOf(path: string): Promise<void> {
    const { ok, problems } = await verifyTrial(path, { deep: true })
    expect([ok, problems.filter(({ severity }) => severity !== 'note')]).toEqual([true, []])
    const trial = await createTrial(path)
    const steps = trial.steps()
    expect(steps.length).toBeGreaterThan(0)
    expect(steps).toEqual(Array.from({ length: steps.length }, (_, step) => step))
    for (const step of steps) expect((await trial.tensor('x').value(step)).data[0]).toBe(step)
    // It does not wait for more.
    await trial.waitForSteps([STEPS]).catch(error => expect(error.name).toBe('NoMoreData'))
    await trial.close()
    const names = readdirSync(path, { recursive: true, encoding: 'utf8' })
    expect(names.filter(name => name.endsWith('.tmp'))).toEqual([])
    expect(names).toContain('training_job_end.ts')
  }

  it.each([
    ['short', 100_000],
    ['long', 400_000],
  ])('does not end a training that is to go on, by %s tensors', async (name, byteLength) => {
    const path = join(place, name)
    expect(await train(path, { whenFailing: 'stop' }, byteLength)).toBe(STEPS)
    await expectStepsOf(path)
  })

  it('leaves no records of a step whose index file found no room', async () => {
    const path = join(place, 'index')
    const writer = await createWriter(path, { saveConfig: { saveInterval: 1 }, whenFailing: 'stop' })
    await writer.step()
    await writer.save('x', new Float32Array(1500))
    await writer.step()
    await writer.save('x', new Float32Array(1500).fill(1))
    // What is left is room for its records, 6 kB, and for nothing else.
    const { bavail, bsize } = statfsSync(place)
    writeFileSync(join(place, 'others'), Buffer.alloc((bavail - 2) * bsize))
    await writer.close()
    expect(writer.failure?.message).toMatch(/index.*no space left/)
    await expectStepsOf(path)
    expect(readdirSync(join(path, 'events'), { recursive: true })).not.toContain(
      '000000000001/000000000001_worker_0.tfevents',
    )
  })

  it('ends any other, with the reason', async () => {
    const path = join(place, 'thrown')
    await expect(train(path, {}, 100_000)).rejects.toThrow(/cannot write .*: no space left on the device/)
    const trial = await createTrial(path)
    expect(trial.steps().length).toBeGreaterThan(0)
  })
})
