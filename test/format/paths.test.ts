import { describe, expect, it } from 'vitest'
import {
  checkEventFileName,
  END_MARKERS,
  escapeWorker,
  indexFilePath,
  isTemporary,
  parseCollectionsFileName,
  parseEventFileName,
  parseIndexFileName,
  unescapeWorker,
  usualIndexFile,
} from '#dist/format/paths.js'

describe('index file names', () => {
  it.each([
    ['index/000000000/000000000042_worker_0.json', 42, 'worker_0', 'json'],
    ['index/0/42_worker_0.json', 42, 'worker_0', 'json'],
    ['index/0/0000000000000000000000042_w.json', 42, 'w', 'json'],
    ['000000000042_worker_0.json', 42, 'worker_0', 'json'],
    ['index/000000000/000000000001__replica-0_task-0_device-GPU-1.json', 1, '/replica:0/task:0/device:GPU:1', 'json'],
    ['index/000000000/000000000020_algo-1.csv', 20, 'algo-1', 'csv'],
    ['index/000000000/000000000020_a.b.json.json', 20, 'a.b.json', 'json'],
    ['_replica-9/5_task-1/000000000007_worker_0.json', 7, 'worker_0', 'json'],
  ])('%s', (path, step, worker, kind) => {
    expect(parseIndexFileName(path)).toEqual({ step, worker, kind })
  })

  it.each([
    '',
    'index/0/42.json',
    'index/0/42_.json',
    'index/0/_worker_0.json',
    'index/0/x42_worker_0.json',
    'index/0/-1_worker_0.json',
    'index/0/42_worker_0.json.tmp',
    'index/0/42_worker_0.tfevents',
    'index/0/42_worker_0.json/',
    'index/0/99999999999999999999_worker_0.json',
  ])('refuses %j', path => {
    expect(parseIndexFileName(path)).toBeNull()
  })
})

describe('event file names', () => {
  it('tell step and worker', () => {
    expect(parseEventFileName('events/000000000003/000000000003_worker_0.tfevents')).toEqual({
      step: 3,
      worker: 'worker_0',
    })
    expect(parseEventFileName('events/3/3__job-worker_replica-0_task-1_device-CPU-0.tfevents')?.worker).toBe(
      '/job:worker/replica:0/task:1/device:CPU:0',
    )
  })

  it('are nothing else', () => {
    for (const path of ['3_worker_0.tfevents.tmp', '3_worker_0.json', 'events.out.tfevents.1.host']) {
      expect(parseEventFileName(path)).toBeNull()
    }
  })
})

it('collections file names tell the worker', () => {
  expect(parseCollectionsFileName('collections/000000000/worker_0_collections.json')).toBe('worker_0')
  expect(parseCollectionsFileName('collections/000000000/_replica-0_task-0_device-GPU-1_collections.json')).toBe(
    '/replica:0/task:0/device:GPU:1',
  )
  expect(parseCollectionsFileName('collections/000000000/collections.json')).toBe('')
  expect(parseCollectionsFileName('collections/000000000/worker0-collections.json')).toBe('worker0-')
  expect(parseCollectionsFileName('collections/000000000/worker_0_collections.json.tmp')).toBeNull()
  expect(parseCollectionsFileName('collections.ts')).toBeNull()
})

it('workers go into file names and come back', () => {
  for (const worker of [
    'worker_0',
    'algo-1',
    '/replica:0/task:0/device:GPU:1',
    '/job:ps/task:3',
    '/device:XLA_GPU:0',
  ]) {
    expect(unescapeWorker(escapeWorker(worker))).toBe(worker)
  }
  expect(escapeWorker('/replica:0/task:0/device:GPU:1')).toBe('_replica-0_task-0_device-GPU-1')
  // Free text that merely begins with an underscore is no device.
  expect(unescapeWorker('_private')).toBe('_private')
})

it('temporary files and end markers', () => {
  expect(isTemporary('events/0/0_worker_0.tfevents.tmp')).toBe(true)
  expect(isTemporary('events/0/0_tmp.tfevents')).toBe(false)
  expect(END_MARKERS).toEqual(['training_job_end.ts', 'END_OF_JOB.ts'])
})

describe('checkEventFileName', () => {
  it.each(['events/000000000000/000000000000_worker_0.tfevents', 'a..b/..c', 'events/x:y'])('accepts %s', name => {
    expect(checkEventFileName(name, 'file:///i.json')).toBe(name)
  })

  it.each([
    '',
    '/etc/passwd',
    '../other/events/0',
    'events/../../x',
    'events/..',
    'a\0b',
    'C:\\x',
    'C:/x',
    'events\\..\\..\\x',
    'file:///etc/passwd',
    's3://bucket/key',
    'http:x',
  ])('refuses %j', name => {
    expect(() => checkEventFileName(name, 'file:///i.json')).toThrow(
      expect.objectContaining({ name: 'FormatError', code: 'UnsafePath', url: 'file:///i.json' }),
    )
  })

  it('shows no more of a long name than a line', () => {
    expect(() => checkEventFileName(`/${'x'.repeat(1e6)}`, 'u')).toThrow(/^.{0,300}$/)
  })
})

describe('the usual path of an index file', () => {
  it.each([
    [42, 'worker_0'],
    [0, 'w'],
    [999_999_999_999, 'algo-1'],
    [1_234_567, 'a.b.json'],
    [1000, 'über 1'],
  ])('says what its name says: step %i of %s', (step, worker) => {
    expect(usualIndexFile(indexFilePath(step, worker))).toEqual({ step, worker })
  })

  it.each([
    'index/000000001/000000000042_worker_0.json',
    'index/00000000/000000000042_worker_0.json',
    'index/000000000/00000000042_worker_0.json',
    'index/000000000/0000000000042_worker_0.json',
    'index/000000000/00000000004x_worker_0.json',
    'index/000000000/000000000042-worker_0.json',
    'index/000000000/000000000042_.json',
    'index/000000000/000000000042_worker_0.csv',
    'index/000000000/000000000042_worker_0.json.tmp',
    'index/000000000/000000000042_worker/0.json',
    'index/000000000/000000000042__replica-0_task-0.json',
    'index/000000000x000000000042_worker_0.json',
    'index2000000000/000000000042_worker_0.json',
    'events/00000000/000000000042_worker_0.json',
    `index/000000000/000000000042_${'w'.repeat(200)}.json`,
    '',
  ])('is no other: %s', path => {
    expect(usualIndexFile(path)).toBeNull()
  })
})
