/** What is written on the command line, read. */

import { InvalidArgumentError } from 'commander'

/** Gathers an option that can be given several times. */
export function collect(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value]
}

export function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(Number(text))) {
    throw new InvalidArgumentError('Expected a whole number.')
  }
  return Number(text)
}

/** `A:B` is [A, B), either end optional; a lone `A` is that step. */
export function stepRange(text: string): readonly [number | null, number | null] {
  const match = /^(\d*)(:?)(\d*)$/.exec(text)
  const [begin, end] = [match?.[1], match?.[3]].map(bound => (bound ? Number(bound) : null)) as [
    number | null,
    number | null,
  ]
  const isSafe = [begin, end].every(bound => bound === null || Number.isSafeInteger(bound))
  if (!match || !isSafe || (!match[2] && begin === null)) {
    throw new InvalidArgumentError(
      'Expected A:B (from A up to, but not including, B), A:, :B or A; all of them whole numbers.',
    )
  }
  if (!match[2]) return [begin, begin! + 1]
  if (begin !== null && end !== null && begin >= end) {
    throw new InvalidArgumentError('Expected the end to be after the beginning: the end itself is not included.')
  }
  return [begin, end]
}

/** `mean,abs_max`, or `all`. */
export function reductionList(text: string): readonly string[] | 'all' {
  const names = text.split(',').map(name => name.trim())
  return names.includes('all') ? 'all' : names
}

/** Modes are written in capitals; any will do here. */
export function upperCase(text: string): string {
  return text.toUpperCase()
}
