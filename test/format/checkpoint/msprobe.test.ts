/** `dump.json` of msprobe, written by hand. */

import { expect, it } from 'vitest'
import { MSPROBE } from '#dist/format/checkpoint/dump/msprobe.js'
import { fileOf } from '../../support/checkpoint-files.js'

function read(json: string) {
  const around = { paths: [], open: () => Promise.reject(new Error('no other file')) }
  return MSPROBE.read(fileOf(Buffer.from(json), 'dump.json'), around)
}

it('has entries in the order of the text, each with its place, however their keys are written', async () => {
  const tensor = '{"dtype": "torch.int64", "shape": []}'
  const entries = [
    `"b" : ${tensor}`,
    `"\\u0061":${tensor.replace('}', ', "x": {"10": NaN, "data": {"2": 0}}}')}`,
    `"ü"\n:${tensor}`,
    `"2":${tensor}`,
    `"1" : ${tensor}`,
  ]
  const json = `{"x": ["data", {"2": []}], "data": {${entries.join(', ')}}, "2": 0}`
  const { unread } = await read(json)
  expect(unread.map(({ name, error }) => [name, error.fields.offset])).toEqual(
    ['b', 'a', 'ü', '2', '1'].map((name, i) => [name, Buffer.from(json).indexOf(entries[i]!)]),
  )
})

it('tells a limited number of faults', async () => {
  const twice = { dtype: 'torch.int64', shape: [], data_name: '../x.pt' }
  const { problems } = await read(
    JSON.stringify({
      data: Object.fromEntries(
        Array(150)
          .fill(twice)
          .map((x, i) => [i, x]),
      ),
    }),
  )
  expect([problems.length, problems.at(-1)!.message]).toEqual([
    101,
    'dump.json: expected entries without faults, got 49 more with faults',
  ])
})
