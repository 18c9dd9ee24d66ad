/** The first step that diverges, by halving: of n steps about log n are read, if what differs once differs from then on. */

/** The halving that found the first diverging step. */
export interface Bisection {
  /** The steps that were compared, ascending. */
  readonly steps: readonly number[]
  /**
   * A step at which something differs, or nothing, against what halving takes for granted: differences come and go, and the first step
   * may have been missed. Null: none was met.
   */
  readonly contradiction: number | null
}

/** Steps on either side of the one that was found, of which it is checked at the end that they are as taken for granted. */
const CHECKED_STEPS = 4

/**
 * @param steps ascending
 * @param differsAt compares a step
 * @returns the first step that differs; null: none does
 */
export async function bisectSteps(
  steps: readonly number[],
  differsAt: (step: number) => Promise<boolean>,
): Promise<Bisection & { readonly first: number | null }> {
  const known = new Map<number, boolean>()
  const differs = async (at: number): Promise<boolean> => {
    const cached = known.get(at)
    if (cached !== undefined) return cached
    const found = await differsAt(steps[at]!)
    known.set(at, found)
    return found
  }
  let contradiction: number | null = null
  let [equal, differing] = [-1, steps.length]
  const halve = async () => {
    while (differing - equal > 1) {
      const middle = (equal + differing) >> 1
      if (await differs(middle)) differing = middle
      else equal = middle
    }
  }
  if (steps.length > 0) {
    if (await differs(steps.length - 1)) differing = steps.length - 1
    else equal = steps.length - 1
  }
  await halve()
  // What comes before must be equal: where it isn't, the first step lies farther ahead still.
  for (const at of spaced(0, differing - 1)) {
    if (at >= differing || !(await differs(at))) continue
    contradiction ??= steps[at]!
    ;[equal, differing] = [-1, at]
    await halve()
  }
  for (const at of spaced(differing + 1, steps.length - 1)) {
    if (!(await differs(at))) contradiction ??= steps[at]!
  }
  const read = [...known.keys()].sort((x, y) => x - y).map(at => steps[at]!)
  return { steps: read, contradiction, first: steps[differing] ?? null }
}

/** Some numbers of a range, evenly spaced. */
function spaced(from: number, to: number): number[] {
  const length = to - from + 1
  if (length <= 0) return []
  const count = Math.min(CHECKED_STEPS, length)
  return [...new Set(Array.from({ length: count }, (_, i) => from + Math.floor(((i + 0.5) * length) / count)))]
}
