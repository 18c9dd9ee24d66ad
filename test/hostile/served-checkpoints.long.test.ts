/** Hostile checkpoints behind `serve`, and in a browser: an answer or an error of ours for each, and others go on. */

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { counting, safetensors, writeFile } from '../../fixtures/checkpoint-writer.js'
import { objects } from '../cli/run.js'
import { WebTest } from '../support/browser-page.js'
import { hasChromium } from '../support/chromium.js'
import { isRequired } from '../support/golden.js'
import { CHECKPOINT_EXHIBITS, placed } from './checkpoint-museum.js'
import { started } from './measured.js'

const MIB = 2 ** 20

it('serve answers for each of them, in bounds of memory', { timeout: 600_000 }, async () => {
  const scratch = mkdtempSync(join(tmpdir(), 'trialscan-served-'))
  const places = CHECKPOINT_EXHIBITS.map((exhibit, i) => placed(exhibit, join(scratch, `e${i}`)))
  const good = join(scratch, 'good.safetensors')
  writeFile(good, safetensors([counting('w', [4])]))
  const { child, ended } = started('serve', good, ...places, '--port', '0', '--threads', '1')
  try {
    const url = await new Promise<string>((resolve, reject) => {
      const look = (text: string) => /http:\/\/[\d.]+:\d+/.test(text) && resolve(/http:\/\/[\d.]+:\d+/.exec(text)![0])
      child.stdout.on('data', look)
      child.stderr.on('data', look)
      void ended.then(({ code, stderr }) => reject(new Error(`ended with ${code}: ${stderr}`)))
    })
    const trials = (await (await fetch(`${url}/api/trials`)).json()) as { readonly id: string }[]
    expect(trials).toHaveLength(places.length + 1)
    for (const { id } of trials) {
      for (const path of ['', '/tensors', '/overview', '/scan?reductions=sum', '/value?tensor=w']) {
        const answer = await fetch(`${url}/api/trials/${encodeURIComponent(id)}${path}`)
        const text = await answer.text()
        expect([200, 400, 404, 422], `${id}${path}: ${answer.status} ${text.slice(0, 500)}`).toContain(answer.status)
        expect(text, `${id}${path}`).not.toMatch(/\n {4}at |internal error/)
        expect(text.length).toBeLessThan(20 * MIB)
      }
    }
    const rows = objects(await (await fetch(`${url}/api/trials/good.safetensors/scan?reductions=sum`)).text())
    expect(rows.map(({ tensor, sum }) => [tensor, sum])).toEqual([['w', 6]])
  } finally {
    child.kill('SIGINT')
  }
  const { stderr, peak } = await ended
  expect(stderr).not.toMatch(/^ {4}at |internal error/m)
  expect(peak / MIB).toBeLessThan(2500)
  rmSync(scratch, { recursive: true })
})

describe.runIf(hasChromium || isRequired('chromium'))('in Chromium', () => {
  let test: WebTest

  beforeAll(async () => {
    test = await WebTest.start()
  })
  afterAll(() => test?.stop())

  it.each(CHECKPOINT_EXHIBITS.map((exhibit, i) => [exhibit.name, i] as const))(
    '%s',
    { timeout: 300_000 },
    async (_, i) => {
      const exhibit = CHECKPOINT_EXHIBITS[i]!
      const directory = join(test.scratch, `e${i}`)
      mkdirSync(directory)
      const place = placed(exhibit, directory)
      const url = exhibit.path === '' ? test.urlOf(directory) : `${test.urlOf(directory)}${basename(place)}`
      const told = await test.page.evaluate(async url => {
        const messages: string[] = []
        const names: (string | null)[] = []
        const failure = await tests.failure(async () => {
          const trial = await tests.web.createTrial(url, { refresh: 'manual' })
          messages.push(...trial.problems.map(({ message }) => message))
          for await (const { tensor, error } of trial.scan({ reductions: ['sum'] })) {
            if (error === undefined && tensor !== null) names.push(tensor)
            else if (error !== undefined) messages.push(error.message)
          }
          await trial.close()
        })
        return { failure, messages, rows: names.length }
      }, url)
      expect(typeof told.failure === 'string' ? told.failure : 'ours').toMatch(/^(?:nothing|ours)$/)
      expect(told.rows).toBe(exhibit.rows ?? 0)
      const message = typeof told.failure === 'string' ? '' : told.failure.message
      if (exhibit.says !== null) expect(`${message}\n${told.messages.join('\n')}`).toMatch(exhibit.says)
    },
  )
})
