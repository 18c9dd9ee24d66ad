/** Binary search in sorted data. */

/**
 * The number of leading entries below a value, by binary search: its position, or where it would be inserted.
 * @param isBelow true for the i-th entry if it is below; false for all entries behind the first that is not
 */
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
