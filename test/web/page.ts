/** What the tests run in a page. It is bundled with trialscan/web in the place of trialscan: see support/bundle-page.ts. */

import * as web from '#dist/web/index.js'
import { type GoldenBits, trialBits } from '../support/bits.js'
import type { GoldenPlace } from '../support/checkpoint-answers.js'
import * as answers from '../support/checkpoint-answers.js'

export interface Options {
  readonly threads?: number
  readonly memory?: number
}

/** Copies a trial from the server into the page's own storage, as a folder that could have been picked. */
async function folderOf(url: string): Promise<FileSystemDirectoryHandle> {
  const paths = (await (await fetch(`${url}listing.txt`)).text()).split('\n').filter(line => line !== '')
  const root = await navigator.storage.getDirectory()
  const other = await root.getDirectoryHandle(`copy-${performance.now()}`, { create: true })
  const trial = await other.getDirectoryHandle(url.split('/').at(-2)!, { create: true })
  for (const path of paths.map(path => path.replace(/^\.\//, ''))) {
    const parts = path.split('/')
    let folder = trial
    for (const part of parts.slice(0, -1)) folder = await folder.getDirectoryHandle(part, { create: true })
    const file = await (await folder.getFileHandle(parts.at(-1)!, { create: true })).createWritable()
    await file.write(await (await fetch(url + path.split('/').map(encodeURIComponent).join('/'))).arrayBuffer())
    await file.close()
  }
  return trial
}

function pickedFiles(): File[] {
  return [...(document.querySelector('input')?.files ?? [])]
}

type Kind = 'http' | 'folder' | 'files' | 'file'

async function placeOf(kind: Kind, url: string): Promise<web.TrialPlace> {
  if (kind === 'http') return url
  if (kind === 'file') return new File([await (await fetch(url)).blob()], decodeURIComponent(url.split('/').at(-1)!))
  return kind === 'folder' ? folderOf(url) : pickedFiles()
}

async function bits(kind: Kind, url: string, options: Options): Promise<GoldenBits> {
  const trial = await web.createTrial(await placeOf(kind, url), { requireCollections: false })
  try {
    return await trialBits(trial as never, options)
  } finally {
    await trial.close()
  }
}

/** How a checkpoint differs from golden answers. */
async function differences(kind: Kind, url: string, golden: GoldenPlace, options: Options): Promise<string[]> {
  const trial = await web.createTrial(await placeOf(kind, url), { refresh: 'manual', ...options })
  try {
    const wrong = await answers.differences(trial as never, golden)
    return [...wrong, ...trial.problems.map(({ message }) => message)]
  } finally {
    await trial.close()
  }
}

/** What a piece of work throws, as data. */
async function failure(work: () => Promise<unknown>): Promise<web.ErrorData | string> {
  try {
    await work()
    return 'nothing'
  } catch (error) {
    return error instanceof web.TrialscanError ? error.toJSON() : `not ours: ${String(error)}`
  }
}

/** Scans the first steps of a trial. */
async function scan(place: web.TrialPlace, steps: number, options: Options) {
  const trial = await web.createTrial(place)
  const startedAt = performance.now()
  let [rows, failed] = [0, 0]
  const only = trial.steps().slice(0, steps)
  for await (const { error } of trial.scan({ ...options, steps: only, reductions: ['mean', 'max'] })) {
    rows++
    if (error !== undefined) failed++
  }
  return { rows, failed, seconds: (performance.now() - startedAt) / 1000 }
}

const all = { web, bits, differences, failure, folderOf, placeOf, pickedFiles, scan }

declare global {
  var tests: typeof all
}

globalThis.tests = all
