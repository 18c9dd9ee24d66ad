/** The checkpoints of spec/checkpoints.md, with what they must decode to: by numpy, over bytes decoded apart from ours. */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { GoldenPlace, GoldenTensors } from './checkpoint-answers.js'
import { isRequired, ROOT } from './golden.js'

export const CHECKPOINTS = join(ROOT, '..', 'shared', 'checkpoints')
export const FIXTURES = join(ROOT, 'fixtures', 'checkpoints')

/** Whether they are there. In CI they must be. */
export const hasCheckpoints = existsSync(CHECKPOINTS) || isRequired('shared')

export function expectedOf(name: string): unknown {
  return JSON.parse(readFileSync(join(CHECKPOINTS, 'expected', `${name}.json`), 'utf8'))
}

export function stepsOf(name: string): Readonly<Record<string, GoldenTensors>> {
  return (expectedOf(name) as { readonly steps: Readonly<Record<string, GoldenTensors>> }).steps
}

/** All places that have answers. */
export function goldenPlaces(): GoldenPlace[] {
  if (!hasCheckpoints) return []
  const trial = (name: string, place = name, more: Partial<GoldenPlace> = {}): GoldenPlace => ({
    place: `trials/${place}`,
    steps: stepsOf(name),
    ...more,
  })
  const megatron = [0, 1].flatMap(rank =>
    Object.entries(expectedOf(`megatron-rank${rank}`) as GoldenTensors).map(
      ([name, answer]) => [`mp_rank_0${rank} model.${name}`, answer] as const,
    ),
  )
  const dump = expectedOf('sglang-dump') as GoldenTensors
  const { dcp, ...newer } = expectedOf('torch-2.13') as Readonly<Record<string, GoldenTensors>>
  const published = expectedOf('public') as Readonly<Record<string, GoldenTensors>>
  const optimizers = JSON.parse(readFileSync(join(FIXTURES, 'expected/hf-optimizer.json'), 'utf8')) as Readonly<
    Record<string, GoldenTensors>
  >
  return [
    ...['base', 'tuned', 'st-run', 'npz-run', 'every-dtype', 'fp8-block', 'dcp'].map(name => trial(name)),
    trial('hf-run', 'hf-run', { extra: '^(?:loss|grad_norm|learning_rate)$|^(?:optimizer|scheduler)\\.' }),
    ...Object.entries(optimizers).map(([directory, answers]) => ({
      place: `trials/hf-run/${directory}/optimizer.pt`,
      steps: { 0: answers },
    })),
    ...['zip', 'legacy', 'protocol4'].map(file => trial('torch', `torch/${file}.pt`)),
    { place: 'trials/sglang-dump', steps: { 1: dump }, byWorker: true },
    { place: 'trials/megatron', steps: { 100: Object.fromEntries(megatron) }, byWorker: true },
    { place: 'trials/torch-2.13/dcp', steps: dcp as never, extra: '\\.step$' },
    ...Object.entries(newer).map(([file, answers]) => ({ place: `trials/torch-2.13/${file}`, steps: { 0: answers } })),
    ...Object.entries(published)
      .filter(([, answers]) => !('error' in answers))
      .map(([file, answers]) => ({ place: `public/${file}`, steps: { 0: answers } })),
  ]
}
