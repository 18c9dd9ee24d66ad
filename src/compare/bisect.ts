/**
 * Finds the first diverging step by bisection: about log n of n steps are read, on the assumption that what differs once differs from
 * then on.
 */

/** The bisection that found the first diverging step. */
export interface Bisection {
  /** The steps that were compared, ascending. */
  readonly steps: readonly number[]
  /** A step that contradicts the assumption: differences come and go, and the first step may have been missed. Null if none was met. */
  readonly contradiction: number | null
}

/** The number of steps on either side of the result that are checked at the end. */
const CHECKED_STEPS = 4

/** @param steps ascending @param differsAt compares a step @returns the first step that differs; null if none does */
export async function bisectSteps(
  steps: readonly number[],
  differsAt: (step: number) => Promise<boolean>,
): Promise<Bisection & { readonly first: number | null }> {
  const known = new Map<number, boolean>()
  const differs = async (at: number): Promise<boolean> => {
    if (!known.has(at)) known.set(at, await differsAt(steps[at]!))
    return known.get(at)!
  }
  let contradiction: number | null = null
  const last = steps.length - 1
  let [equal, differing] = [-1, steps.length]
  const halve = async () => {
    while (differing - equal > 1) {
      const middle = (equal + differing) >> 1
      if (await differs(middle)) differing = middle
      else equal = middle
    }
  }
  if (last >= 0 && (await differs(last))) differing = last
  else equal = last
  await halve()
  // Earlier steps must be equal; if one isn't, the first diverging step is earlier still.
  for (const at of spaced(0, differing - 1)) {
    if (at >= differing || !(await differs(at))) continue
    contradiction ??= steps[at]!
    ;[equal, differing] = [-1, at]
    await halve()
  }
  for (const at of spaced(differing + 1, last)) {
    if (!(await differs(at))) contradiction ??= steps[at]!
  }
  const read = [...known.keys()].sort((x, y) => x - y).map(at => steps[at]!)
  return { steps: read, contradiction, first: steps[differing] ?? null }
}

/** Some evenly spaced numbers of a range. */
function spaced(from: number, to: number): number[] {
  const length = to - from + 1
  if (length <= 0) return []
  const count = Math.min(CHECKED_STEPS, length)
  return [...new Set(Array.from({ length: count }, (_, i) => from + Math.floor(((i + 0.5) * length) / count)))]
}
