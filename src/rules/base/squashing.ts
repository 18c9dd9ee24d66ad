/** Functions with two flat ends: tanh and sigmoid. */

export type Squashing = 'tanh' | 'sigmoid'

/** The inputs from which on the slope is less than a hundredth of what it is at 0, in each direction. */
export const FLAT_FROM: Readonly<Record<Squashing, number>> = { tanh: 2.993, sigmoid: 5.986 }

export function sigmoid(x: number): number {
  return 1 / (1 + Math.exp(-x))
}

/** The function according to the name; null if it names none. */
export function functionOf(name: string): Squashing | null {
  const lower = name.toLowerCase()
  return lower.includes('sigmoid') ? 'sigmoid' : lower.includes('tanh') ? 'tanh' : null
}

/**
 * The function according to the values: tanh is between -1 and 1, sigmoid between 0 and 1. ReLU may stay below 1, too, but has exact
 * zeros, which sigmoid hardly has unless it also reaches 1.
 */
export function functionBy(min: number, max: number, zeroCount: number): Squashing | null {
  if (!(min >= -1 && max <= 1)) return null
  if (min < 0) return 'tanh'
  return zeroCount === 0 || max === 1 ? 'sigmoid' : null
}
