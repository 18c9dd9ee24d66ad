/** trialscan, as it was built. */

import { CHECK_LEVELS, type CheckLevel, type DType, REDUCTIONS, type ReductionName } from '#dist/base/types.js'
import { KnownMoments } from '#dist/core/border/abi.js'
import type { Address } from '#dist/core/border/memory.js'
import { instantiateCore } from '#dist/core/border/module.js'
import { dtypeNumber, elementByteLength } from '#dist/core/dtype.js'
import { Engine } from '#dist/core/engine.js'
import { Moments, setFor } from '#dist/core/moments.js'
import { createTrial, verifyTrial } from '#dist/index.js'
import { type Decoded, float32View, type Records } from './record.js'

export const NAME = 'ours'

/** The exclusive or of the checksums of consecutive stretches, one call of the core for each. */
export function crc32c(data: Uint8Array, byteLength: number): () => number {
  const engine = new Engine()
  const start = load(engine, data)
  return () => {
    let all = 0
    for (let at = 0; at < data.length; at += byteLength) all ^= engine.crc32c((start + at) as Address, byteLength)
    return all >>> 0
  }
}

/** The exclusive or of the checksums of buffers of any lengths. */
export function crc32cOf(buffers: readonly Uint8Array[]): () => number {
  const engine = new Engine()
  const start = load(engine, Buffer.concat(buffers))
  const lengths = buffers.map(({ length }) => length)
  return () => {
    let all = 0
    let at = start as number
    for (const length of lengths) {
      all ^= engine.crc32c(at as Address, length)
      at += length
    }
    return all >>> 0
  }
}

/** The tensors of records, with their checks, tags and steps: dtype, shape and a view of the elements. */
export function decode(records: Records, checkLevel: CheckLevel): () => Decoded[] {
  const { engine, batch, start, ask } = prepareDecode(records)
  const { frames } = records
  const level = CHECK_LEVELS.indexOf(checkLevel)
  // Room for what the core reserves itself (dimensions) is given back after each run.
  return () =>
    engine.scoped(() => {
      ask()
      engine.decode(batch, frames.length, level)
      const slots = engine.slots(batch, frames.length)
      return frames.map(({ startByte }, i) => {
        if (!slots.ok(i)) throw new Error(`record ${i}: status ${slots.status(i)}`)
        const { dtype, shape, dataOffset, dataByteLength } = slots.found(i)
        const data = float32View(engine.view((start + startByte + dataOffset) as Address, dataByteLength))
        return { dtype, shape, data }
      })
    })
}

/** The walk of the same records alone, as a scan needs it: what was found stays in the core. */
export function walk(records: Records, checkLevel: CheckLevel): () => number {
  const { engine, batch, ask } = prepareDecode(records)
  const count = records.frames.length
  const level = CHECK_LEVELS.indexOf(checkLevel)
  return () => {
    ask()
    engine.scoped(() => engine.decode(batch, count, level))
    const slots = engine.slots(batch, count)
    let ok = 0
    for (let i = 0; i < count; i++) ok += slots.ok(i) ? 1 : 0
    return ok
  }
}

/** The core's part of that alone: one crossing for a run of records whose slots have been filled. */
export function walkInCore(records: Records, checkLevel: CheckLevel): () => number {
  const { engine, batch, ask } = prepareDecode(records)
  const count = records.frames.length
  const level = CHECK_LEVELS.indexOf(checkLevel)
  ask()
  return () => {
    engine.scoped(() => engine.decode(batch, count, level))
    const slots = engine.slots(batch, count)
    return slots.ok(0) && slots.ok(count - 1) ? count : 0
  }
}

function prepareDecode({ bytes, frames, tags, step }: Records) {
  const engine = new Engine()
  const start = load(engine, bytes)
  const batch = engine.reserveBatch(frames.length)
  const written = engine.writeTexts(tags)
  const ask = () =>
    engine.ask(
      batch,
      frames.length,
      written,
      i => ({ byteLength: frames[i]!.byteLength, tag: i, step }),
      i => ({ address: start + frames[i]!.startByte, byteLength: frames[i]!.byteLength }),
    )
  return { engine, batch, start, ask }
}

/** All 18 reductions, in the order of REDUCTIONS. */
export function moments(dtype: DType, bytes: Uint8Array): () => Float64Array {
  const row = momentsRow(dtype, bytes)
  return () => reductionsOf(dtype, row())
}

/** The reductions of a row. */
export function reductionsOf(
  dtype: DType,
  row: Float64Array,
  names: readonly ReductionName[] = REDUCTIONS,
): Float64Array {
  const result = new Moments(dtype, row)
  const numbers = new Float64Array(names.length)
  for (let i = 0; i < numbers.length; i++) numbers[i] = result.reduction(names[i]!) as number
  return numbers
}

/** The row as it is when only some reductions are asked for. */
export function setRow(dtype: DType, bytes: Uint8Array, names: readonly ReductionName[]): () => Float64Array {
  return momentsRow(dtype, bytes, setFor(names))
}

/** The row alone that the reductions follow from: a view. */
export function momentsRow(
  dtype: DType,
  bytes: Uint8Array,
  known: KnownMoments = KnownMoments.all,
): () => Float64Array {
  const engine = new Engine()
  const start = load(engine, bytes)
  const batch = engine.reserveBatch(1)
  const count = bytes.length / elementByteLength(dtype)
  return () => {
    engine.resetRow(batch)
    engine.addToRow(batch, dtype, start, count, 0, known)
    return engine.rows(batch, 1)
  }
}

/** The number of pairs that are not close. It copies both sides into the core, as `allclose` of the library does. */
export function allclose(a: Float32Array, b: Float32Array, rtol: number, atol: number): () => number {
  const engine = new Engine()
  const left = { dtype: 'float32', bytes: bytesOf(a) } as const
  const right = { dtype: 'float32', bytes: bytesOf(b) } as const
  return () => engine.elements.countNotClose(left, right, a.length, { rtol, atol, equalNan: false })
}

/** The number of pairs that are not close, of tensors in the core's memory. */
export function allcloseInPlace(a: Float32Array, b: Float32Array, rtol: number, atol: number): () => number {
  const core = instantiateCore()
  core.arenaReset()
  const left = core.arenaReserve(a.byteLength) >>> 0
  const right = core.arenaReserve(b.byteLength) >>> 0
  new Float32Array(core.memory.buffer, left, a.length).set(a)
  new Float32Array(core.memory.buffer, right, b.length).set(b)
  const number = dtypeNumber('float32')
  return () => core.allclose(number, left, number, right, a.length, rtol, atol, 0) >>> 0
}

/** All 18 reductions of every tensor of a trial, row by row, opening it included. */
export function scan(dir: string, threads: number, checkLevel: CheckLevel): () => Promise<Float64Array> {
  return async () => {
    const trial = await createTrial(dir, { threads })
    const numbers: number[] = []
    for await (const { reductions, error } of trial.scan({ threads, checkLevel })) {
      if (error) throw error
      for (const name of REDUCTIONS) numbers.push(reductions[name] as number)
    }
    await trial.close()
    return Float64Array.from(numbers)
  }
}

/** The minimum of every tensor, opening the trial included. */
export function scanMinima(dir: string, threads: number, checkLevel: CheckLevel): () => Promise<Float64Array> {
  return async () => {
    const trial = await createTrial(dir, { threads })
    const minima: number[] = []
    for await (const { reductions, error } of trial.scan({ threads, checkLevel, reductions: ['min'] })) {
      if (error) throw error
      minima.push(reductions.min as number)
    }
    await trial.close()
    return Float64Array.from(minima)
  }
}

/** Every byte of a trial checked. */
export function verify(dir: string, threads: number, deep = false): () => Promise<string> {
  return async () => {
    const { ok, notes, problemCounts, stats } = await verifyTrial(dir, { threads, deep })
    const wrong = ok && notes.length === 0 ? 'nothing wrong' : JSON.stringify(problemCounts)
    return `${stats.tensors} tensors, ${wrong}`
  }
}

function load(engine: Engine, bytes: Uint8Array): Address {
  engine.reset()
  const address = engine.reserveBytes(bytes.length)
  engine.view(address, bytes.length).set(bytes)
  return address
}

function bytesOf({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength)
}
