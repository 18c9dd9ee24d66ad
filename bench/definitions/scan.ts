/** The whole way through the library: open a trial on disk and reduce all of it. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CHECK_LEVELS, REDUCTIONS } from '#dist/types.js'
import { eventFilePath, indexFilePath } from '../../fixtures/event-writer.js'
import { type Made, makeLarge, makeMany } from '../../fixtures/make.js'
import { decodeEvent } from '../../test/support/event-schema.js'
import { type Case, contender, type Definition, expectClose, expectSame, type Options } from '../definition.js'
import * as ours from '../engines/ours.js'
import * as plainJs from '../engines/plain-js.js'
import { expectedReductions } from '../reductions.js'

export const scan: Definition = {
  name: 'scan',
  measures: 'createTrial, and all 18 reductions of every tensor; files in the page cache, threads running',
  *cases({ quick }: Options): Generator<Case> {
    yield* trialCase('large', dir => makeLarge(dir, { steps: 1, scale: quick ? 0.25 : 1, checksum: 'true' }))
    yield* trialCase('many', dir => makeMany(dir, { steps: quick ? 25 : 100, checksum: 'true' }))
  },
}

function* trialCase(name: string, make: (dir: string) => Made): Generator<Case> {
  const dir = mkdtempSync(join(tmpdir(), `trialscan-bench-${name}-`))
  try {
    const { steps, tensors } = make(dir)
    const { reductions, byteLength } = readTrial(dir, steps)
    const wrong = expectClose(reductions, i => {
      const row = Math.floor(i / REDUCTIONS.length)
      const step = steps[Math.floor(row / tensors.length)]
      return `${tensors[row % tensors.length]!.name} at step ${step}, ${REDUCTIONS[i % REDUCTIONS.length]}`
    })
    yield {
      size: `${name}, ${Math.round(byteLength / 1e6)} MB, ${steps.length * tensors.length} tensors`,
      byteLength,
      ...(name === 'many' ? { records: steps.length * tensors.length } : {}),
      contenders: [
        ...CHECK_LEVELS.filter(check => check !== 'none').flatMap(check =>
          [0, 1, 2].map(threads =>
            contender(`${ours.NAME}, ${check}, threads ${threads}`, ours.scan(dir, threads, check), wrong),
          ),
        ),
        contender(plainJs.NAME, plainJs.scan(dir), wrong),
        contender('only reading', plainJs.read(dir), expectSame(byteLength)),
      ],
    }
  } finally {
    rmSync(dir, { recursive: true })
  }
}

/** What is expected of a trial: its reductions in the order of its records, decoded by the tests' judge. */
function readTrial(dir: string, steps: readonly number[]): { reductions: Float64Array; byteLength: number } {
  const reductions: number[] = []
  let byteLength = 0
  for (const step of steps) {
    const file = readFileSync(join(dir, eventFilePath(step, 'worker_0')))
    const index = JSON.parse(readFileSync(join(dir, indexFilePath(step, 'worker_0')), 'utf8')) as {
      tensor_payload: { start_idx: number; length: number }[]
    }
    byteLength += file.length
    for (const { start_idx, length } of index.tensor_payload) {
      const { values } = decodeEvent(file.subarray(start_idx + 12, start_idx + length - 4))
      const { content } = values[0]!.tensor!
      const elements = new Float32Array(content.buffer, content.byteOffset, content.length / 4)
      reductions.push(...expectedReductions(Float64Array.from(elements)))
    }
  }
  return { reductions: Float64Array.from(reductions), byteLength }
}
