/** Runs of TensorBoard: every record checked, names and steps listed, and scalars read, beside reading the bytes alone. */

import { closeSync, existsSync, mkdirSync, openSync, readSync, writeFileSync } from 'node:fs'
import { createTrial } from '#dist/index.js'
import { type Summary, summaryRecord, versionRecord } from '#dist/write/tensorboard/summary.js'
import { type Case, contender, type Definition, expectSame, type Options } from '../definition.js'
import * as ours from '../engines/ours.js'
import { scratchPath } from '../scratch.js'

interface Shape {
  readonly runs: number
  readonly steps: number
  readonly scalars: number
  /** The images of each step, and the bytes of one. */
  readonly images: number
  readonly imageBytes: number
}

export const tensorboard: Definition = {
  name: 'tensorboard',
  measures: 'from opening a log directory of made runs; files in the page cache',
  *cases({ quick }: Options): Generator<Case> {
    const shapes: Readonly<Record<string, Shape>> = {
      'scalars and images': { runs: 4, steps: quick ? 250 : 1000, scalars: 10, images: 4, imageBytes: 34_000 },
      'scalars alone': { runs: 2, steps: quick ? 2500 : 10_000, scalars: 20, images: 0, imageBytes: 0 },
    }
    for (const [name, shape] of Object.entries(shapes)) {
      const { runs, steps, scalars, images } = shape
      const { directory, files, byteLength } = made(name.replaceAll(' ', '-'), shape)
      const scalarCount = runs * steps * scalars
      const records = runs * (1 + steps * (scalars + images))
      yield {
        size: `${runs} runs, ${name}`,
        byteLength,
        records,
        rounds: 5,
        contenders: [
          contender(
            'ours, every record checked, one thread',
            ours.verify(directory, 0),
            expectSame(`${scalarCount} tensors, nothing wrong`),
          ),
          contender('ours, names and steps, one thread', () => listed(directory), expectSame(`${scalars} × ${steps}`)),
          contender('ours, scalars, one thread', () => sumOf(directory), expectSame(scalarCount)),
          contender('only reading, Node.js', () => read(files), expectSame(byteLength)),
        ],
      }
    }
  },
}

/** Runs on the disk. */
function made(name: string, { runs, steps, scalars, images, imageBytes }: Shape) {
  const directory = scratchPath(`tensorboard-${name}`)
  const files = Array.from({ length: runs }, (_, run) => `${directory}/run_${run}/events.out.tfevents.1700000000.host`)
  let byteLength = 0
  const png = Uint8Array.from({ length: imageBytes }, (_, i) => (i * 7 + (i >> 3)) & 255)
  for (const file of files) {
    const at = (step: number, tag: string, summary: Summary) =>
      summaryRecord({ wallTime: 1.7e9 + step, step, tag }, summary)
    const records = [versionRecord(1.7e9)]
    for (let step = 0; step < steps; step++) {
      for (let i = 0; i < scalars; i++) records.push(at(step, `metrics/tag_${i}`, { scalar: 1 }))
      const image = { height: 104, width: 104, channels: 3, png }
      for (let i = 0; i < images; i++) records.push(at(step, `image/${i}`, { image }))
    }
    const bytes = Buffer.concat(records)
    byteLength += bytes.length
    if (existsSync(file)) continue
    mkdirSync(file.slice(0, file.lastIndexOf('/')), { recursive: true })
    writeFileSync(file, bytes)
  }
  return { directory, files, byteLength }
}

const buffer = new Uint8Array(1 << 20)
const OPENED = { threads: 0, refresh: 'manual' } as const

async function listed(directory: string): Promise<string> {
  const trial = await createTrial(directory, OPENED)
  const { tensors } = await trial.summary()
  await trial.close()
  return `${tensors.length} × ${trial.steps({ showIncompleteSteps: true }).length}`
}

/** The sum of all scalars, each of which is 1. */
async function sumOf(directory: string): Promise<number> {
  const trial = await createTrial(directory, OPENED)
  let sum = 0
  for await (const { reductions } of trial.scan({ reductions: ['sum'], threads: 0, checkLevel: 'full' })) {
    sum += reductions.sum as number
  }
  await trial.close()
  return sum
}

function read(files: readonly string[]): number {
  let byteLength = 0
  for (const path of files) {
    const file = openSync(path, 'r')
    for (let got = -1; got !== 0; byteLength += got) got = readSync(file, buffer, 0, buffer.length, null)
    closeSync(file)
  }
  return byteLength
}
