/** What messages call a file: its path, whatever URL it has. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTrial, repairTrial, TrialscanError, verifyTrial } from '#dist/index.js'
import { copyTrial, corruptions, PLAIN_TRIAL } from '../fixtures/corrupt.js'

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'trialscan 100% é-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** All that is said of a trial. */
async function told(trial: string): Promise<TrialscanError[]> {
  const errors: unknown[] = []
  try {
    const opened = await createTrial(trial, { requireCollections: false })
    errors.push(...opened.problems)
    for await (const { error } of opened.scan({ checkLevel: 'full', threads: 0 })) if (error) errors.push(error)
    for (const name of opened.tensorNames()) {
      const tensor = opened.tensor(name)
      for (const step of tensor.steps()) {
        await tensor.value(step, { checkLevel: 'full' }).catch(error => errors.push(error))
        await tensor.shape(step).catch(error => errors.push(error))
      }
    }
    errors.push(...(await opened.summary()).tensors.flatMap(({ error }) => error ?? []))
  } catch (error) {
    errors.push(error)
  }
  return errors.filter(error => error instanceof TrialscanError)
}

const all = corruptions.filter(({ needsUnprivilegedUser }) => !needsUnprivilegedUser)

it.each(all)('$name: paths in what is said, URLs in the fields', async ({ name, apply }) => {
  const trial = join(directory, name.replaceAll(/\W+/g, '-'))
  copyTrial(PLAIN_TRIAL, trial)
  apply(trial)
  const errors = await told(trial)
  for (const { message, fields } of errors) {
    expect(message).not.toMatch(/file:\/\/|100%25/)
    if (typeof fields.url !== 'string') continue
    expect(fields.url).toMatch(/^file:\/\/.*100%25/)
    expect(message).toContain(fileURLToPath(fields.url))
  }
  const verified = await verifyTrial(trial, { threads: 0 }).catch(error => error)
  const repaired = await repairTrial(trial, `${trial} copy`, { threads: 0 }).catch(error => error)
  for (const one of [verified, repaired]) {
    const { url: _, out: __, ...said } = one instanceof Error ? { message: one.message } : one
    expect(JSON.stringify(said)).not.toMatch(/file:\/\/|100%25/)
  }
})
