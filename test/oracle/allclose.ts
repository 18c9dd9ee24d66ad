/** numpy's isclose of one pair, written down from its documentation. */

export type Element = number | bigint | readonly [re: number, im: number]

export interface Tolerance {
  readonly rtol: number
  readonly atol: number
  readonly equalNan: boolean
}

/** @param single - both are float32, which numpy compares in float32 */
export function isClose(a: Element, b: Element, { rtol, atol, equalNan }: Tolerance, single: boolean): boolean {
  const round = single ? Math.fround : (x: number) => x
  const [x, xi] = parts(a)
  const [y, yi] = parts(b)
  const size = length(y, yi)
  const apart = length(round(x - y), xi - yi)
  const isWithin = apart <= round(round(atol) + round(round(rtol) * size))
  if (isWithin && Number.isFinite(y) && Number.isFinite(yi)) return true
  const hasNaN = (re: number, im: number) => Number.isNaN(re) || Number.isNaN(im)
  return (x === y && xi === yi) || (equalNan && hasNaN(x, xi) && hasNaN(y, yi))
}

function parts(z: Element): readonly [number, number] {
  return typeof z === 'object' ? z : [Number(z), 0]
}

function length(re: number, im: number): number {
  return im === 0 ? Math.abs(re) : Math.hypot(re, im)
}
