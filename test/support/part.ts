/**
 * Tests in two parts: a few of each kind in X.test.ts, for `npm test`; the others in X.long.test.ts, which imports X.test.ts.
 * So what both need is there once, and a table says itself which of its cases are quick.
 */

import { inject } from 'vitest'

declare module 'vitest' {
  interface ProvidedContext {
    isLong: boolean
  }
}

/** Whether it is the long part that is wanted (vitest.config.ts). */
export const isLong = inject('isLong')

/** Of a table of cases, those of the part that is wanted. */
export function part<T>(cases: readonly T[], isQuick: (one: T, index: number) => boolean): T[] {
  return cases.filter((one, i) => isQuick(one, i) !== isLong)
}

/** A table of one case where the long part is wanted, else of none: for a test, or a group of them, that is long as a whole. */
export const whenLong: readonly string[] = isLong ? ['long'] : []
