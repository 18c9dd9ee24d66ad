/** The names of histogram buckets in an imported trial. */

/** The collection of buckets. */
export const HISTOGRAMS = 'histograms'
const SUFFIX = '/histogram'

export function bucketsName(tag: string): string {
  return tag + SUFFIX
}

export function isBuckets(tensor: string): boolean {
  return tensor.endsWith(SUFFIX)
}

export function tagOfBuckets(tensor: string): string {
  return tensor.slice(0, -SUFFIX.length)
}
