/** A trial written, beside the same bytes written as they are. */

import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { createWriter, npyChunks, recordStream, verifyTrial } from '#dist/index.js'
import { type Case, type Contender, type Definition, type Options, WrongAnswer } from '../definition.js'
import * as ours from '../engines/ours.js'
import * as smdebug from '../engines/smdebug.js'
import { scratchPath } from '../scratch.js'

const TENSORS = 25

export const write: Definition = {
  name: 'write',
  measures:
    'steps of tensors saved from memory into the page cache; the files of the run before are removed between two runs',
  *cases({ quick }: Options): Generator<Case> {
    yield writeCase('4 MiB', 1 << 20, quick ? 1 : 10)
    yield writeCase('40 KB', 10_000, quick ? 4 : 100)
  },
}

function writeCase(size: string, elements: number, steps: number): Case {
  const data = Float32Array.from({ length: elements }, (_, i) => i / 3)
  const bytes = new Uint8Array(data.buffer)
  const byteLength = steps * TENSORS * bytes.length
  const place = scratchPath('written')
  const save = (checksums: boolean) => async () => {
    const writer = await createWriter(place, { saveConfig: { saveInterval: 1 }, checksums })
    for (let step = 0; step < steps; step++) {
      await writer.step()
      for (let i = 0; i < TENSORS; i++) await writer.save(`tensor${i}`, data)
    }
    await writer.close()
  }
  const file = scratchPath(`tensor-${elements}.npy`)
  const shape = [elements]
  writeFileSync(file, Buffer.concat([...npyChunks({ dtype: 'float32', shape, stride: [1], offset: 0, data, bytes })]))
  // As a pipe gives them: a step's lines at a time.
  const lines = function* () {
    for (let step = 0; step < steps; step++) {
      const tensors = Array.from({ length: TENSORS }, (_, i) => [`tensor${i}`, { file }] as const)
      yield `${JSON.stringify({ step, tensors: Object.fromEntries(tensors) })}\n`
    }
  }
  const recorded = () => recordStream(lines(), place)
  const wrongTrial = async () => {
    const { ok, stats } = await verifyTrial(place, { deep: true })
    return ok && stats.tensors === steps * TENSORS ? undefined : `${stats.tensors} tensors, ${ok ? 'sound' : 'damaged'}`
  }
  const writeTensors = (path: string) => {
    const file = openSync(path, 'wx')
    for (let i = 0; i < TENSORS; i++) writeSync(file, bytes)
    closeSync(file)
  }
  const plain = async () => {
    mkdirSync(place, { recursive: true })
    for (let step = 0; step < steps; step++) writeTensors(join(place, `${step}`))
  }
  // What the format asks for: a directory a step, a second file, and that each is there as a whole or not at all.
  const renamed = async () => {
    for (let step = 0; step < steps; step++) {
      const [events, index] = [join(place, `${step}`, 'events'), join(place, `index${step}`)]
      mkdirSync(dirname(events), { recursive: true })
      writeTensors(`${events}.tmp`)
      renameSync(`${events}.tmp`, events)
      closeSync(openSync(`${index}.tmp`, 'wx'))
      renameSync(`${index}.tmp`, index)
    }
  }
  const wrongFiles = async () => {
    const paths = readdirSync(place, { recursive: true, encoding: 'utf8' }).map(name => statSync(join(place, name)))
    const total = paths.reduce((sum, stats) => sum + (stats.isFile() ? stats.size : 0), 0)
    return total === byteLength ? undefined : `${total} bytes`
  }
  return {
    size: `${steps} steps of ${TENSORS} tensors of ${size}`,
    byteLength,
    rounds: 5,
    contenders: [
      writing(`${ours.NAME}, true checksums`, place, save(true), wrongTrial),
      writing(`${ours.NAME}, smdebug's constant`, place, save(false), wrongTrial),
      writing(`${ours.NAME}, recorded from .npy files`, place, recorded, wrongTrial),
      writing('fs.writeSync', place, plain, wrongFiles),
      writing('fs.writeSync, into two files a step, renamed', place, renamed, wrongFiles),
      ...smdebug.writers.map(write => {
        return writing(smdebug.NAME, place, () => write(place, steps, TENSORS, elements), wrongTrial)
      }),
    ],
  }
}

/** Somebody who writes to an empty place, which takes as long as it takes, or as one with a clock of their own says. */
function writing(
  engine: string,
  place: string,
  work: () => Promise<unknown>,
  wrong: () => Promise<string | undefined>,
): Contender {
  const run = async () => {
    rmSync(place, { recursive: true, force: true })
    const start = performance.now()
    const ms = await work()
    return typeof ms === 'number' ? ms : performance.now() - start
  }
  return {
    engine,
    turn: run,
    check: async () => {
      await run()
      const got = await wrong()
      if (got !== undefined) throw new WrongAnswer(`${engine}: expected all that was written, got ${got}`)
    },
  }
}
