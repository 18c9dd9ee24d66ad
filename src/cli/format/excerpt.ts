/** A tensor's elements for people: nested brackets as numpy prints them, long axes cut in the middle. */

import type { Complex } from '../../core/moments.js'
import type { TensorData } from '../../scan/job/tensor/data.js'
import { padStart, safe } from '../terminal.js'
import { elementText } from './elements.js'
import { complexText, shortNumber } from './number.js'

/** The number of shown elements. */
const MAX_ELEMENTS = 400
const EDGE = 3
/** The length from which an axis is cut. A vector may be longer, since it is wrapped. */
const MAX_AXIS = 12
const MAX_VECTOR = 60
const LINE_WIDTH = 100
const MAX_STRING = 60

const CUT = Symbol('…')
type Shown = number | typeof CUT

/** @param lineWidth the width of the terminal, if there is one; at most LINE_WIDTH counts */
export function excerpt(value: TensorData, lineWidth = LINE_WIDTH): string {
  const { shape, stride } = value
  const text = elementText(value, ELEMENT)
  if (shape.length === 0) return text(0)
  if (shape.includes(0)) return '[]'
  const axes = shownIndices(shape)
  const width = widestElement(axes, stride, text)
  const last = shape.length - 1
  const nested = (axis: number, offset: number): string => {
    const parts = axes[axis]!.map(index => {
      if (index === CUT) return '…'
      const at = offset + index * stride[axis]!
      return axis === last ? padStart(text(at), width) : nested(axis + 1, at)
    })
    const indent = ' '.repeat(axis + 1)
    if (axis < last) return `[${parts.join('\n'.repeat(Math.min(2, last - axis)) + indent)}]`
    const perLine = Math.max(1, Math.floor(Math.min(LINE_WIDTH, lineWidth - 2 * shape.length) / (width + 1)))
    const lines: string[] = []
    for (let i = 0; i < parts.length; i += perLine) lines.push(parts.slice(i, i + perLine).join(' '))
    return `[${lines.join(`\n${indent}`)}]`
  }
  return nested(0, 0)
}

/** The shown indices of each axis. Inner axes get room first. */
function shownIndices(shape: readonly number[]): readonly (readonly Shown[])[] {
  let room = MAX_ELEMENTS
  const axes: Shown[][] = []
  const longest = shape.length === 1 ? MAX_VECTOR : MAX_AXIS
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const size = shape[axis]!
    if (size <= Math.min(room, longest)) axes[axis] = Array.from({ length: size }, (_, i) => i)
    else {
      const edge = Math.max(1, Math.min(EDGE, Math.floor(room / 2)))
      const end = room < 2 ? [] : Array.from({ length: edge }, (_, i) => size - edge + i)
      axes[axis] = [...Array.from({ length: edge }, (_, i) => i), CUT, ...end]
    }
    room = Math.floor(room / axes[axis]!.filter(index => index !== CUT).length)
  }
  return axes
}

function widestElement(
  axes: readonly (readonly Shown[])[],
  stride: readonly number[],
  text: (at: number) => string,
): number {
  let offsets = [0]
  axes.forEach((indices, axis) => {
    const shown = indices.filter(index => index !== CUT)
    offsets = offsets.flatMap(offset => shown.map(index => offset + index * stride[axis]!))
  })
  return Math.max(...offsets.map(at => text(at).length))
}

const ELEMENT = {
  text: (text: string) => safe(JSON.stringify(text.length > MAX_STRING ? `${text.slice(0, MAX_STRING)}…` : text)),
  number: (number: number | bigint) => (typeof number === 'bigint' ? String(number) : shortNumber(number)),
  complex: (number: Complex) => complexText(number, shortNumber),
}
