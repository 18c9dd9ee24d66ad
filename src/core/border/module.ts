/** The compiled core: read and compiled once per process, and passed to threads. */

import { instantiateSync } from '@assemblyscript/loader'
import { EngineError } from '../../base/errors.js'
import { addressSpaceLimit, type CompiledCore, compileCore } from '../host.js'

// No types of WebAssembly here: declarations are published, and a user's compiler knows them only with the DOM library.

/** The functions that assembly/index.ts exports. Addresses are unsigned 32-bit numbers, taken as `>>> 0`. */
export interface Core {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number }
  /** Address of the table that `decimalPowers` fills in. */
  readonly POWERS: { readonly value: number }
  arenaReset(): void
  arenaReserve(byteLength: number): number
  arenaMark(): number
  arenaRelease(mark: number): void
  crc32c(data: number, byteLength: number, crc: number): number
  crc32cCombine(a: number, b: number, byteLengthB: number): number
  mask(crc: number): number
  decodeRecords(slots: number, count: number, level: number): void
  scanRecords(slots: number, count: number, level: number, rows: number, known: number): void
  askRecords(
    records: number,
    first: number,
    count: number,
    start: number,
    window: number,
    windowLength: number,
    available: number,
    slots: number,
  ): number
  ordinaryRecords(
    slots: number,
    rows: number,
    count: number,
    dtypes: number,
    ranks: number,
    dims: number,
    capacity: number,
  ): number
  reduceRecord(slot: number, row: number, known: number, sketch: number): void
  survey(slots: number, capacity: number, payloadLength: number, tail: number, tailLength: number): number
  surveyRecords(window: number, byteLength: number, slots: number, capacity: number): number
  surveyRest(slots: number, capacity: number, payloadLength: number): number
  findFrame(data: number, byteLength: number, left: number): number
  checkHeader(slot: number, level: number): number
  checkPayload(slot: number, crc: number, stored: number): number
  walkSparse(slot: number, payloadLength: number, tail: number, tailLength: number): number
  readValues(slot: number, out: number, capacity: number): number
  readString(slot: number): number
  momentsReset(row: number): void
  momentsAdd(dtype: number, data: number, count: number, row: number, known: number, sketch: number): void
  sketchTake(dtype: number, sketch: number, least: number, most: number, out: number): number
  momentsMerge(into: number, from: number): void
  widenToFloat32(dtype: number, from: number, count: number, to: number): void
  allclose(
    dtypeA: number,
    a: number,
    dtypeB: number,
    b: number,
    count: number,
    rtol: number,
    atol: number,
    equalNan: number,
  ): number
  alongReset(fold: number, lines: number, accumulators: number): void
  alongAdd(
    fold: number,
    dtype: number,
    isAbsolute: number,
    data: number,
    outer: number,
    count: number,
    inner: number,
    means: number,
    scratch: number,
    accumulators: number,
  ): void
  alongFinish(lines: number, accumulators: number, divisor: number): void
  differAt(a: number, b: number, length: number): number
  compare(
    dtypeA: number,
    a: number,
    dtypeB: number,
    b: number,
    count: number,
    scaleA: number,
    scaleB: number,
    row: number,
  ): void
  differ(
    dtypeA: number,
    a: number,
    dtypeB: number,
    b: number,
    count: number,
    rtol: number,
    atol: number,
    sampled: number,
    counts: number,
    row: number,
  ): void
  placeApart(dtypeA: number, a: number, dtypeB: number, b: number, count: number, apart: number): number
  addQuantised(
    dtypeA: number,
    a: number,
    dtypeB: number,
    b: number,
    first: number,
    count: number,
    column: number,
    columns: number,
    blockColumns: number,
    scales: number,
    largest: number,
    blocks: number,
    row: number,
  ): void
  absDifference(dtypeA: number, a: number, dtypeB: number, b: number, count: number): number
  squaredDifference(dtypeA: number, a: number, dtypeB: number, b: number, count: number): number
  countInside(dtype: number, data: number, rows: number, columns: number, lo: number, hi: number, counts: number): void
  countBelow(counts: number, columns: number, limit: number): number
  countEqual(dtype: number, data: number, count: number, value: number): number
  extendRange(dtype: number, data: number, count: number, range: number): number
  countBins(
    dtype: number,
    data: number,
    count: number,
    edges: number,
    bins: number,
    isEven: number,
    counts: number,
  ): void
  sumChannels(dtype: number, data: number, outer: number, channels: number, inner: number, sums: number): void
  widenToDoubles(dtype: number, from: number, count: number, to: number): number
  selectKth(data: number, count: number, k: number): number
  selectScratchLength(count: number, ranks: number): number
  writeLines(
    slots: number,
    rows: number,
    count: number,
    records: number,
    first: number,
    format: number,
    out: number,
    capacity: number,
    ends: number,
  ): number
  numberColumns(
    rows: number,
    count: number,
    records: number,
    first: number,
    columns: number,
    columnCount: number,
    apart: number,
    out: number,
  ): void
  packIntegers(numbers: number, count: number, width: number, out: number): number
  compress(from: number, byteLength: number, seen: number, out: number): number
  packDoubles(doubles: number, count: number, scratch: number, seen: number, out: number): number
  selectFloat32(data: number, count: number, numbers: number, ranks: number, scratch: number): number
}

let compiled: CompiledCore | undefined

/** The compiled core. Compiles it on the first call. */
export function coreModule(): CompiledCore {
  compiled ??= compileCore()
  return compiled
}

/** Uses a module that another thread has compiled. */
export function adoptModule(module: CompiledCore): void {
  compiled = module
}

/** A fresh instance. */
export function instantiateCore(): Core {
  return instantiate().exports as unknown as Core
}

function instantiate() {
  const module = coreModule() as WebAssembly.Module
  try {
    return instantiateSync(module, {}).instance
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    const needed = 'expected 10 GiB of address space (not memory) for each thread, up to 20 for the calling one'
    const limit = addressSpaceLimit()
    const got = limit === null ? 'no more' : `a limit of ${(limit / 2 ** 30).toFixed(1)} GiB (ulimit -v)`
    const hint =
      'raise the limit (ulimit -v unlimited), use no threads (`threads: 0`, --threads 0), or have Node.js reserve none ' +
      '(slower: NODE_OPTIONS=--disable-wasm-trap-handler)'
    throw new EngineError(`${needed}, got ${got}: ${hint}`, { limit }, cause, 'NoAddressSpace')
  }
}
