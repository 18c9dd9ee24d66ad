/** Tensors of checkpoints cut along an axis into others, as records whose elements stay in place. */

import type { DType } from '../../../base/types.js'
import { elementByteLength } from '../../../core/dtype.js'
import type { Block } from '../../../format/checkpoint/stored-tensor.js'
import type { TensorLocation } from '../../../format/index-file.js'
import { TableBuilder } from '../../../storage/composed/table-builder.js'
import type { Access } from '../../runner/access.js'
import { contentsOf } from '../../worker/records/tensor-head.js'
import type { Catalog } from '../catalog.js'
import { IndexColumns } from '../columns/index-columns.js'
import type { IndexRows } from '../columns/saved-rows.js'
import { RECORD_END, RecordHeads } from './record-head.js'
import { sourceRecord } from './source-record.js'

/** A part of a tensor: ranges [from, to) of indices along the axis, one after the other. */
export interface CutPart {
  readonly name: string
  readonly axis: number
  readonly runs: readonly (readonly [from: number, to: number])[]
}

/** Returns how a tensor is cut; null if it isn't. */
export type Cutting = (name: string) => ((dtype: DType, shape: readonly number[]) => readonly CutPart[]) | null

/** The rows of a trial of checkpoints with parts in place of the tensors that are cut. Only record heads are read, which are in memory. */
export async function cutRecords(access: Access, catalog: Catalog, partsOf: Cutting): Promise<IndexRows> {
  const { store, spec } = access
  // A number that differs for each table.
  const cut = spec.kind === 'composed' ? spec.tables.length : 0
  const columns = new IndexColumns()
  const table = new TableBuilder(RECORD_END)
  const heads = new RecordHeads()
  for (const { step, worker, mode, modeStep, eventFile, tensors } of catalog.workerSteps) {
    const locations: TensorLocation[] = []
    const file = `${eventFile}#cut${cut}`
    let isOpen = false
    for (const [name, { value, reductions }] of tensors) {
      const parts = value && partsOf(name)
      if (!parts) {
        if (value) locations.push(value)
        locations.push(...reductions.values())
        continue
      }
      const path = value.eventFile ?? eventFile
      const headLength = store.headByteLength!(path, value.startByte)!
      const head = new Uint8Array(headLength)
      await store.readInto(path, value.startByte, head)
      const { dtype, shape } = contentsOf(head, value.byteLength)
      if (!isOpen) table.begin(file, path)
      isOpen = true
      for (const part of parts(dtype, shape)) {
        const stored = {
          ...partOf(path, value.startByte + headLength, dtype, shape, part),
          name: part.name,
          dtype,
        }
        locations.push({ name: part.name, ...table.add(sourceRecord(step, stored, heads)), eventFile: file })
      }
    }
    columns.add(step, worker, { mode, modeStep, eventFile, tensors: locations, shapes: [] })
  }
  if (!table.isEmpty) access.compose(table.finish())
  return { columns, rows: Int32Array.from({ length: columns.length }, (_, row) => row), faults: new Map() }
}

/** @param start the start of the whole tensor's elements */
function partOf(
  file: string,
  start: number,
  dtype: DType,
  shape: readonly number[],
  { axis, runs }: CutPart,
): { readonly shape: readonly number[]; readonly blocks: readonly Block[] } {
  const strides = shape.map((_, at) => shape.slice(at + 1).reduce((product, length) => product * length, 1))
  const along = (length: number) => shape.map((whole, at) => (at === axis ? length : whole))
  let done = 0
  const blocks = runs.map(([from, to]) => {
    const offsets = shape.map((_, at) => (at === axis ? done : 0))
    done += to - from
    return {
      file,
      start: start + from * strides[axis]! * elementByteLength(dtype),
      offsets,
      shape: along(to - from),
      strides,
    }
  })
  return { shape: along(done), blocks }
}
