/** Copies elements of any layout in memory into C order. */

import { elementByteLength } from '../../../core/dtype.js'
import type { ArrayElements } from '../array-job.js'
import type { View } from './indices.js'

/** Copies `count` elements in C order, from the `first` on. @param to the index in `into` of the first copy */
export function copyElements(
  { dtype, bytes, layout }: Pick<ArrayElements, 'dtype' | 'bytes' | 'layout'>,
  first: number,
  count: number,
  into: Uint8Array,
  to = 0,
): void {
  const size = elementByteLength(dtype)
  if (layout !== null) gather(layout, bytes, size, first, count, into, to)
  else if (size < 1 && (first | to | count) & 1) halves(bytes, into, 1)(first, count, to)
  else into.set(bytes.subarray(first * size, (first + count) * size), to * size)
}

function gather(
  { shape, stride, offset }: View,
  bytes: Uint8Array,
  size: number,
  first: number,
  count: number,
  into: Uint8Array,
  to: number,
): void {
  const inner = shape.length - 1
  const length = shape[inner] ?? 1
  const innerStride = stride[inner] ?? 1
  const copy =
    size < 1
      ? halves(bytes, into, innerStride)
      : innerStride === 1
        ? runs(bytes, into, size)
        : singles(bytes, into, size, innerStride)
  for (let done = 0; done < count; ) {
    const column = (first + done) % length
    const run = Math.min(length - column, count - done)
    let at = offset + column * innerStride
    let row = Math.floor((first + done) / length)
    for (let axis = inner - 1; axis >= 0; axis--) {
      at += (row % shape[axis]!) * stride[axis]!
      row = Math.floor(row / shape[axis]!)
    }
    copy(at, run, to + done)
    done += run
  }
}

/** Copies `count` elements from index `at` on to index `to` on. */
type Copy = (at: number, count: number, to: number) => void

function runs(bytes: Uint8Array, into: Uint8Array, size: number): Copy {
  return (at, count, to) => into.set(bytes.subarray(at * size, (at + count) * size), to * size)
}

/** Copies single elements in the largest units that their size and alignment allow. */
function singles(bytes: Uint8Array, into: Uint8Array, size: number, stride: number): Copy {
  const unit = [4, 2].find(unit => size % unit === 0 && bytes.byteOffset % unit === 0) ?? 1
  const [from, target] = [unitsOf(bytes, unit), unitsOf(into, unit)]
  const units = size / unit
  return (at, count, to) => {
    let place = to * units
    for (let i = 0; i < count; i++) {
      const source = (at + i * stride) * units
      for (let k = 0; k < units; k++) target[place++] = from[source + k]!
    }
  }
}

/** Copies elements that share bytes in pairs, the first in the lower half. Neighbours stay unchanged. */
function halves(bytes: Uint8Array, into: Uint8Array, stride: number): Copy {
  return (at, count, to) => {
    for (let i = 0; i < count; i++) {
      const [source, target] = [at + i * stride, to + i]
      const [from, place] = [Math.floor(source / 2), Math.floor(target / 2)]
      const half = source % 2 === 0 ? bytes[from]! & 15 : bytes[from]! >> 4
      into[place] = target % 2 === 0 ? (into[place]! & 0xf0) | half : (into[place]! & 15) | (half << 4)
    }
  }
}

function unitsOf({ buffer, byteOffset, byteLength }: Uint8Array, unit: number): Uint32Array | Uint16Array | Uint8Array {
  const length = Math.floor(byteLength / unit)
  if (unit === 4) return new Uint32Array(buffer, byteOffset, length)
  return unit === 2 ? new Uint16Array(buffer, byteOffset, length) : new Uint8Array(buffer, byteOffset, length)
}
