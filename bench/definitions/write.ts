/** A trial written, beside the same bytes written as they are. */

import {
  closeSync,
  mkdirSync,
  mkdtempSync,
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
  measures: 'steps of tensors saved from memory into the page cache, each time into a new directory',
  *cases({ quick }: Options): Generator<Case> {
    yield writeCase('4 MiB', 1 << 20, quick ? 1 : 10)
    yield writeCase('40 KB', 10_000, quick ? 4 : 100)
  },
}

function writeCase(size: string, elements: number, steps: number): Case {
  const data = Float32Array.from({ length: elements }, (_, i) => i / 3)
  const bytes = new Uint8Array(data.buffer)
  const byteLength = steps * TENSORS * bytes.length
  const places = new Places(byteLength)
  const save = (checksums: boolean) => async (place: string) => {
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
  const recorded = (place: string) => recordStream(lines(), place)
  const wrongTrial = async (place: string) => {
    const { ok, stats } = await verifyTrial(place, { deep: true })
    return ok && stats.tensors === steps * TENSORS ? undefined : `${stats.tensors} tensors, ${ok ? 'sound' : 'damaged'}`
  }
  const writeTensors = (path: string) => {
    const file = openSync(path, 'wx')
    for (let i = 0; i < TENSORS; i++) writeSync(file, bytes)
    closeSync(file)
  }
  const plain = async (place: string) => {
    mkdirSync(place, { recursive: true })
    for (let step = 0; step < steps; step++) writeTensors(join(place, `${step}`))
  }
  // What the format asks for: a directory a step, a second file, and that each is there as a whole or not at all.
  const renamed = async (place: string) => {
    for (let step = 0; step < steps; step++) {
      const [events, index] = [join(place, `${step}`, 'events'), join(place, `index${step}`)]
      mkdirSync(dirname(events), { recursive: true })
      writeTensors(`${events}.tmp`)
      renameSync(`${events}.tmp`, events)
      closeSync(openSync(`${index}.tmp`, 'wx'))
      renameSync(`${index}.tmp`, index)
    }
  }
  const wrongFiles = async (place: string) => {
    const paths = readdirSync(place, { recursive: true, encoding: 'utf8' }).map(name => statSync(join(place, name)))
    const total = paths.reduce((sum, stats) => sum + (stats.isFile() ? stats.size : 0), 0)
    return total === byteLength ? undefined : `${total} bytes`
  }
  return {
    size: `${steps} steps of ${TENSORS} tensors of ${size}`,
    byteLength,
    rounds: 5,
    contenders: [
      writing(`${ours.NAME}, true checksums`, places, save(true), wrongTrial),
      writing(`${ours.NAME}, smdebug's constant`, places, save(false), wrongTrial),
      writing(`${ours.NAME}, recorded from .npy files`, places, recorded, wrongTrial),
      writing('fs.writeSync', places, plain, wrongFiles),
      writing('fs.writeSync, into two files a step, renamed', places, renamed, wrongFiles),
      ...smdebug.writers.map(write => {
        return writing(smdebug.NAME, places, place => write(place, steps, TENSORS, elements), wrongTrial)
      }),
    ],
  }
}

/** Directories that are written to, one for each run. File systems such as ext4 take long to make files after as many were removed, so all are removed at once, and seldom. */
class Places {
  /** Bytes that a run writes, and those that may be there: of many the disk would get some, while others are written. */
  readonly #byteLength: number
  readonly #most = 1.5e9
  #written = 0

  constructor(byteLength: number) {
    this.#byteLength = byteLength
  }

  next(): string {
    const root = scratchPath('written')
    if (this.#written + this.#byteLength > this.#most) {
      rmSync(root, { recursive: true, force: true })
      this.#written = 0
    }
    mkdirSync(root, { recursive: true })
    this.#written += this.#byteLength
    return mkdtempSync(join(root, 'run-'))
  }
}

/** Somebody who writes to an empty place, which takes as long as it takes, or as one with a clock of their own says. */
function writing(
  engine: string,
  places: Places,
  work: (place: string) => Promise<unknown>,
  wrong: (place: string) => Promise<string | undefined>,
): Contender {
  const run = async (place: string) => {
    const start = performance.now()
    const ms = await work(place)
    return typeof ms === 'number' ? ms : performance.now() - start
  }
  return {
    engine,
    turn: () => run(places.next()),
    check: async () => {
      const place = places.next()
      await run(place)
      const got = await wrong(place)
      if (got !== undefined) throw new WrongAnswer(`${engine}: expected all that was written, got ${got}`)
    },
  }
}
