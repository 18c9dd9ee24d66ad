/** Places of trials that are links, or single files. */

import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTrial, findTrials, importTensorBoard, repairTrial, serveTrials, verifyTrial } from '#dist/index.js'
import { encodeEvent, frameRecord, TrialWriter } from '../fixtures/event-writer.js'
import { trialscan } from './cli/run.js'
import { FaultyS3 } from './support/faulty-s3.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('links')
let count = 0
const place = () => join(scratch, `${count++}`)

function eventFile(path: string, value: number): void {
  mkdirSync(join(path, '..'), { recursive: true })
  const payload = encodeEvent({ wallTime: 1, step: value, tag: 'loss', simpleValue: value })
  writeFileSync(path, frameRecord(payload, { checksum: 'true' }))
}

function trialAt(path: string): void {
  const writer = new TrialWriter(path)
  writer.step({ step: 0, mode: 'TRAIN', tensors: [{ name: 'w', dtype: 'float32', shape: [1], values: [1] }] })
  writer.end()
}

describe('a tree of links', () => {
  it('has trials only if links are to be followed, each once', async () => {
    const [store, tree] = [place(), place()]
    mkdirSync(join(tree, 'group'), { recursive: true })
    trialAt(join(store, 'x/1'))
    trialAt(join(tree, 'own'))
    symlinkSync(join(store, 'x'), join(tree, 'group/linked'))
    symlinkSync(join(tree, 'own'), join(tree, 'best'))
    symlinkSync(tree, join(tree, 'group/loop'))
    symlinkSync(join(tree, 'none'), join(tree, 'lost'))
    expect(await findTrials(tree)).toEqual([join(tree, 'own')])
    const all = [join(tree, 'group/linked/1'), join(tree, 'own')]
    expect(await findTrials(tree, { allowSymlinks: true })).toEqual(all)
    // A name that was asked for is taken as it is.
    expect(await findTrials(join(tree, 'b*'), { allowSymlinks: true })).toEqual([join(tree, 'best')])
    const { stdout, code } = await trialscan('ls', tree, '--allow-symlinks')
    expect([code, all.map(path => stdout.includes(path.slice(tree.length + 1)))]).toEqual([0, [true, true]])
    const guarded = await trialscan('ls', join(tree, 'group/*'))
    expect([guarded.code, guarded.stderr]).toEqual([3, expect.stringContaining('no trial matches it')])
  })

  it("has runs of TensorBoard's, which are refused without the option", async () => {
    const [store, tree] = [place(), place()]
    mkdirSync(tree)
    eventFile(join(store, 'run/events.out.tfevents.1.h'), 3)
    symlinkSync(join(store, 'run'), join(tree, 'a'))
    const refused = await trialscan('scan', tree)
    expect([refused.code === 0, refused.stderr]).toEqual([false, expect.stringContaining('a symbolic link')])
    const { code, stdout } = await trialscan('scan', tree, '--allow-symlinks', '--format', 'csv')
    expect([code, stdout.trim().split('\n').length]).toEqual([0, 2])
    expect((await trialscan('verify', tree, '--allow-symlinks')).code).toBe(0)
    const server = await serveTrials(tree, { port: 0, allowSymlinks: true })
    const rows = await fetch(`${server.url}/api/trials/${basename(tree)}/scan?format=json`)
    expect(await rows.json()).toHaveLength(1)
    await server.close()
    const plan = place()
    const made = await trialscan('fleet', 'plan', tree, '--out', plan, '--shards', '1', '--allow-symlinks')
    expect([made.code, made.stdout]).toEqual([0, expect.stringContaining('1 row')])
    expect((await trialscan('fleet', 'run', plan, '--all')).stdout).toContain('1 row')
  })
})

describe('a single event file', () => {
  it('is a run of its own', async () => {
    const directory = place()
    for (const step of [1, 2]) eventFile(join(directory, `events.out.tfevents.${step}.h`), step)
    eventFile(join(directory, 'below/events.out.tfevents.3.h'), 3)
    const path = join(directory, 'events.out.tfevents.2.h')
    const trial = await createTrial(path, { threads: 0 })
    expect([trial.name, trial.steps(), trial.workers()]).toEqual(['events.out.tfevents.2.h', [2], ['.']])
    expect((await importTensorBoard(trial, place())).steps).toBe(1)
    await trial.close()
    expect(await findTrials(path)).toEqual([path])
    expect(await verifyTrial(path)).toMatchObject({ problems: [], stats: { eventFiles: 1 } })
    expect((await repairTrial(path, place())).files).toMatchObject({ copied: 1 })
    const { code, stdout } = await trialscan('scan', path, '--format', 'csv')
    expect([code, stdout.trim().split('\n').length]).toEqual([0, 2])
  })

  it('may lie on S3', async () => {
    const s3 = await FaultyS3.start()
    const [directory, name] = [place(), 'events.out.tfevents.2.h']
    eventFile(join(directory, name), 2)
    const bytes = readFileSync(join(directory, name))
    for (const key of [name, `${name}.v2`, 'events.out.tfevents.1.h', `below/${name}`, `${name}/sub/${name}`]) {
      s3.objects.set(`run/${key}`, bytes)
    }
    const path = `s3://bucket/run/${name}`
    const trial = await createTrial(path, { threads: 0, s3: s3.options })
    expect([trial.name, trial.steps(), trial.workers()]).toEqual([name, [2], ['.']])
    await trial.close()
    expect(await findTrials(path, { s3: s3.options })).toEqual([path])
    expect(await verifyTrial(path, { s3: s3.options })).toMatchObject({ problems: [], stats: { eventFiles: 1 } })
    const prefix = await createTrial(`${path}/`, { threads: 0, s3: s3.options })
    expect([prefix.name, prefix.workers()]).toEqual([name, ['sub']])
    await prefix.close()
    const lost = createTrial('s3://bucket/run/events.out.tfevents.3.h', { s3: s3.options })
    await expect(lost).rejects.toThrow('tfevents.3.h: no such object; a prefix of that name ends with a slash')
    await s3.stop()
  })

  it("of smdebug's is none: its trial is", async () => {
    const directory = place()
    trialAt(directory)
    const path = join(directory, 'events/000000000000/000000000000_worker_0.tfevents')
    await expect(createTrial(path)).rejects.toThrow(/expected a directory/)
  })
})
