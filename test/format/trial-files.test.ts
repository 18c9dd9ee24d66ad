/** What the files of a trial are by their names, as all of its readers take it. */

import { describe, expect, it } from 'vitest'
import { TrialFiles } from '#dist/format/trial-files.js'

const INDEX = 'index/000000000/000000000007_worker_0.json'
const PADDED_LESS = 'index/000000000/7_worker_0.json'
const CSV = INDEX.replace('json', 'csv')
const EVENT = 'events/000000000007/000000000007_worker_0.tfevents'
const EVENT_TOO = 'events/7/7_worker_0.tfevents'
const COLLECTIONS = 'collections/000000000/worker_0_collections.json'
const RUN = 'logs/events.out.tfevents.1700000000.host'

describe('whose a trial is', () => {
  it.each([
    ['nothing at all', [], false, true],
    ['a run of TensorBoard', [RUN], false, true],
    ['a run whose job has ended', [RUN, 'END_OF_JOB.ts'], true, true],
    ['an index file', [RUN, INDEX], false, false],
    ['an index file that is being written', [RUN, `${INDEX}.tmp`], false, true],
    ['an event file', [EVENT], false, false],
    ['a collections file', [RUN, COLLECTIONS], false, false],
    ['a collections file that is being written', [RUN, `${COLLECTIONS}.tmp`], false, false],
    ['such files elsewhere', [INDEX, EVENT, COLLECTIONS].map(path => `other/${path}`), false, true],
    ['an index of Tornasole', [CSV], true, false],
    ['the same, beside one of smdebug', [CSV, INDEX], true, false],
    ['the collections of Tornasole', ['collections.ts'], true, false],
  ] as const)('%s', (_, paths, isTornasole, isPlain) => {
    expect(new TrialFiles(paths)).toMatchObject({ isTornasole, isPlain })
  })
})

describe('which files count', () => {
  it('one index file of a step and worker, and that is what the hook would call it', () => {
    const files = new TrialFiles([PADDED_LESS, INDEX, `${INDEX}.tmp`])
    expect(files.index).toEqual([INDEX])
    expect([...files.duplicates]).toEqual([[PADDED_LESS, INDEX]])
    expect(files.temporaries).toEqual([`${INDEX}.tmp`])
  })

  it('one of smdebug before that of Tornasole beside it, which is no duplicate', () => {
    const files = new TrialFiles([CSV, INDEX])
    expect(files.index).toEqual([INDEX])
    expect([...files.superseded]).toEqual([CSV])
    expect(files.duplicates.size).toBe(0)
    expect(files.indexName(CSV)).toBeNull()
    expect(files.indexName(INDEX)).toEqual({ step: 7, worker: 'worker_0', kind: 'json' })
  })

  it('all event files, of which one is that of the step and worker where no index tells', () => {
    const files = new TrialFiles([EVENT, EVENT_TOO, RUN])
    expect(files.events).toEqual([EVENT, EVENT_TOO])
    expect([...files.eventDuplicates]).toEqual([[EVENT_TOO, EVENT]])
    expect(files.plainEvents).toEqual([RUN])
  })

  it('only what lies where it belongs', () => {
    const root = ['7_worker_0.json', '7_worker_0.tfevents', 'worker_0_collections.json', 'training_job_end.ts']
    const files = new TrialFiles([...root, 'index/-1_worker_0.json', 'other/-1_worker_0.json'])
    const { index, events, collections, duplicates, ofNoStep } = files
    expect({ index, events, collections, duplicates: duplicates.size, ofNoStep }).toEqual({
      index: [],
      events: [],
      collections: [],
      duplicates: 0,
      ofNoStep: ['index/-1_worker_0.json'],
    })
    expect([files.root, files.ended]).toEqual([['training_job_end.ts'], true])
  })
})
