/** Ranks that are missing, by the names of the others. */

import { expect, it } from 'vitest'
import { missingRanks } from '#dist/format/checkpoint/missing-ranks.js'

it.each<[string, string[], number, ReturnType<typeof missingRanks>]>([
  [
    'a name says how many there are',
    ['actor/model_world_size_4_rank_0.pt', 'actor/model_world_size_4_rank_3.pt'],
    0,
    [
      {
        expected: 4,
        found: 2,
        paths: ['actor/model_world_size_4_rank_1.pt', 'actor/model_world_size_4_rank_2.pt'],
      },
    ],
  ],
  [
    'a gap among tensor-parallel ranks',
    ['mp_rank_00/model.pt', 'mp_rank_02/model.pt'],
    0,
    [{ expected: 3, found: 2, paths: ['mp_rank_01/model.pt'] }],
  ],
  [
    'a gap in a grid',
    ['mp_rank_00_000/m.pt', 'mp_rank_01_000/m.pt', 'mp_rank_00_001/m.pt'],
    0,
    [{ expected: 4, found: 3, paths: ['mp_rank_01_001/m.pt'] }],
  ],
  [
    'files say how many partitions there are',
    ['bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt', 'bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt'],
    3,
    [{ expected: 3, found: 2, paths: ['bf16_zero_pp_rank_2_mp_rank_00_optim_states.pt'] }],
  ],
  ['none is missing', ['m/mp_rank_00/a.pt', 'm/mp_rank_01/a.pt', 'x_world_size_1_rank_0.pt', 'rank_7.pt'], 0, []],
  ['a number that is no rank', ['mp_rank_4000000000/a.pt'], 0, []],
])('%s', (_, paths, partitions, expected) => {
  expect(missingRanks(paths, partitions)).toEqual(expected)
})
