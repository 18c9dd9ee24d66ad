/** The kind of a place, by the names of its files. */

import { expect, it } from 'vitest'
import { kindOfFolders, kindOfPlace } from '#dist/format/place-kind.js'

it.each<[ReturnType<typeof kindOfPlace>, string[]]>([
  ['smdebug', ['index/000000000/000000000000_w.json', 'step_5/model.safetensors']],
  ['smdebug', ['collections.ts', 'a.npz']],
  ['checkpoint', ['step_5/model.safetensors', 'runs/events.out.tfevents.1.host']],
  ['checkpoint', ['step-5/__0_0.distcp']],
  ['checkpoint', ['step0/rank0/dump_tensor_data/a.pt']],
  ['TensorBoard', ['events.out.tfevents.1.host', 'model.safetensors']],
  [null, ['training_job_end.ts', 'notes.txt', 'events.out.tfevents.1.host.tmp']],
])('%s: %j', (kind, paths) => {
  expect(kindOfPlace(paths)).toBe(kind)
})

it('a directory, by those in it', () => {
  expect(kindOfFolders(['a', 'events'])).toEqual({ isTrial: true, part: undefined })
  expect(kindOfFolders(['.step-1', 'logs', 'rank_0', 'step-2'])).toEqual({ isTrial: false, part: 'rank_0' })
})
