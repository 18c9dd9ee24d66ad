/** Looks for a place in what is in order. */

/** How many of the first are below what is looked for: where it is, or would be. @param isBelow of the i-th; false for all behind the first that is not */
export function countBelow(length: number, isBelow: (i: number) => boolean): number {
  let low = 0
  let high = length
  while (low < high) {
    const middle = (low + high) >> 1
    if (isBelow(middle)) low = middle + 1
    else high = middle
  }
  return low
}
