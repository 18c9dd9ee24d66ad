/** The loops over typed arrays that a careful user writes without us. */

export type Floats = Float32Array<ArrayBuffer> | Float64Array<ArrayBuffer>

export const NAME = 'plain JS'

/**
 * All 18 reductions in one pass, in the order of REDUCTIONS. The variance is computed about the first element, which keeps it exact; the
 * numbers must be finite.
 */
export function moments(data: Floats): Float64Array {
  const count = data.length
  const shift = data[0]!
  const shiftAbs = Math.abs(shift)
  let [min, max, minAbs, maxAbs, prod] = [Infinity, -Infinity, Infinity, 0, 1]
  let [s1, s2, t1, t2, squares] = [0, 0, 0, 0, 0]
  for (let i = 0; i < count; i++) {
    const x = data[i]!
    const a = Math.abs(x)
    if (x < min) min = x
    if (x > max) max = x
    if (a < minAbs) minAbs = a
    if (a > maxAbs) maxAbs = a
    const d = x - shift
    const e = a - shiftAbs
    s1 += d
    s2 += d * d
    t1 += e
    t2 += e * e
    squares += x * x
    prod *= x
  }
  const [sum, sumAbs, l2] = [s1 + count * shift, t1 + count * shiftAbs, Math.sqrt(squares)]
  const [variance, varianceAbs] = [(s2 - (s1 * s1) / count) / count, (t2 - (t1 * t1) / count) / count]
  const plain = [min, max, sum / count, Math.sqrt(variance), variance, sum, prod, sumAbs, l2]
  const ofAbs = [minAbs, maxAbs, sumAbs / count, Math.sqrt(varianceAbs), varianceAbs, sumAbs, Math.abs(prod)]
  return Float64Array.of(...plain, ...ofAbs, sumAbs, l2)
}

export function meanStd(data: Floats): Float64Array {
  const shift = data[0]!
  let [sum, squares] = [0, 0]
  for (let i = 0; i < data.length; i++) {
    const d = data[i]! - shift
    sum += d
    squares += d * d
  }
  const count = data.length
  return Float64Array.of(shift + sum / count, Math.sqrt((squares - (sum * sum) / count) / count))
}

export function minMax(data: Floats): Float64Array {
  let [min, max] = [Infinity, -Infinity]
  for (let i = 0; i < data.length; i++) {
    const x = data[i]!
    if (x < min) min = x
    if (x > max) max = x
  }
  return Float64Array.of(min, max)
}

/** The sums of a matrix's columns, computed row by row. */
export function sumColumns(data: Floats, columns: number): Float64Array {
  const sums = new Float64Array(columns)
  for (let row = 0; row < data.length; row += columns) {
    for (let i = 0; i < columns; i++) sums[i]! += data[row + i]!
  }
  return sums
}

/** 1 if all pairs are close, in float32 arithmetic as numpy does it. */
export function allclose(a: Float32Array, b: Float32Array, rtol: number, atol: number): number {
  const [relative, absolute] = [Math.fround(rtol), Math.fround(atol)]
  let apart = 0
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [a[i]!, b[i]!]
    const bound = Math.fround(absolute + Math.fround(relative * Math.abs(y)))
    if (!(Math.abs(Math.fround(x - y)) <= bound)) apart++
  }
  return apart === 0 ? 1 : 0
}

/** The reversed polynomial of CRC-32C (RFC 3720, appendix B.4). */
const POLYNOMIAL = 0x82f63b78

/** A byte table. */
const TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? POLYNOMIAL : 0)
  return crc
})

export function crc32c(bytes: Uint8Array): number {
  let crc = -1
  for (let i = 0; i < bytes.length; i++) crc = TABLE[(crc ^ bytes[i]!) & 255]! ^ (crc >>> 8)
  return ~crc >>> 0
}
