/** Points of many dimensions in two, by PCA and t-SNE. Equal numbers give equal points. */

type Point = readonly [x: number, y: number]

/** A generator of numbers from 0 to 1 (mulberry32), the same for the same seed. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

const POWER_ITERATIONS = 200

/**
 * The first two principal components. There are far fewer rows than elements in each, so the matrix of inner products takes the place of
 * the covariances; both have the same nonzero eigenvalues.
 */
export function pca(rows: readonly ArrayLike<number>[]): readonly Point[] {
  const n = rows.length
  const width = rows[0]?.length ?? 0
  const mean = new Float64Array(width)
  for (const row of rows) for (let i = 0; i < width; i++) mean[i]! += row[i]! / n
  const gram = new Float64Array(n * n)
  for (let a = 0; a < n; a++) {
    for (let b = 0; b <= a; b++) {
      let sum = 0
      for (let i = 0; i < width; i++) sum += (rows[a]![i]! - mean[i]!) * (rows[b]![i]! - mean[i]!)
      gram[a * n + b] = sum
      gram[b * n + a] = sum
    }
  }
  const axes = [0, 1].map(axis => {
    const { vector, value } = largestEigenvector(gram, n, axis)
    for (let a = 0; a < n; a++) for (let b = 0; b < n; b++) gram[a * n + b]! -= value * vector[a]! * vector[b]!
    // The sign of a component is arbitrary: its largest coordinate is made positive.
    const most = vector.reduce((best, x) => (Math.abs(x) > Math.abs(best) ? x : best), 0)
    const scale = Math.sqrt(Math.max(0, value)) * (most < 0 ? -1 : 1)
    return vector.map(x => x * scale)
  })
  return rows.map((_, i) => [axes[0]![i]!, axes[1]![i]!])
}

/** The largest eigenvector, by power iteration. */
function largestEigenvector(matrix: Float64Array, n: number, seed: number): { vector: Float64Array; value: number } {
  const random = seeded(seed + 1)
  let vector = Float64Array.from({ length: n }, () => random() - 0.5)
  let value = 0
  for (let iteration = 0; iteration < POWER_ITERATIONS; iteration++) {
    const next = new Float64Array(n)
    for (let a = 0; a < n; a++) for (let b = 0; b < n; b++) next[a]! += matrix[a * n + b]! * vector[b]!
    const length = Math.hypot(...next)
    if (length === 0) return { vector: new Float64Array(n), value: 0 }
    value = length
    vector = next.map(x => x / length)
  }
  return { vector, value }
}

const ITERATIONS = 350
const LEARNING_RATE = 100
/** The factor of attraction in the first iterations, which lets clusters form. */
const EXAGGERATION = 4
const EXAGGERATED = 100

/**
 * t-SNE (van der Maaten and Hinton 2008), exact, for up to some thousand points. It starts from the PCA, so that neighbouring steps look
 * alike.
 */
export function tsne(rows: readonly ArrayLike<number>[], perplexity?: number, iterations?: number): readonly Point[] {
  const work = tsneInTurns(rows, perplexity, iterations)
  for (;;) {
    const { done, value } = work.next()
    if (done) return value
  }
}

/** t-SNE as a generator that yields between iterations. */
export function* tsneInTurns(
  rows: readonly ArrayLike<number>[],
  perplexity = 30,
  iterations = ITERATIONS,
): Generator<void, readonly Point[]> {
  const n = rows.length
  if (n < 4) return pca(rows)
  const p = affinities(rows, Math.min(perplexity, (n - 1) / 3))
  const begin = pca(rows)
  const spread = Math.max(1e-12, ...begin.map(([x]) => Math.abs(x)))
  const y = Float64Array.from({ length: 2 * n }, (_, i) => (begin[i >> 1]![i & 1]! / spread) * 1e-2)
  const [velocity, gain] = [new Float64Array(2 * n), new Float64Array(2 * n).fill(1)]
  const weights = new Float64Array(n * n)
  for (let iteration = 0; iteration < iterations; iteration++) {
    yield
    let total = 0
    for (let a = 0; a < n; a++) {
      for (let b = 0; b < a; b++) {
        const [dx, dy] = [y[2 * a]! - y[2 * b]!, y[2 * a + 1]! - y[2 * b + 1]!]
        const weight = 1 / (1 + dx * dx + dy * dy)
        weights[a * n + b] = weight
        weights[b * n + a] = weight
        total += 2 * weight
      }
    }
    const exaggeration = iteration < EXAGGERATED ? EXAGGERATION : 1
    const momentum = iteration < EXAGGERATED ? 0.5 : 0.8
    for (let a = 0; a < n; a++) {
      let [gx, gy] = [0, 0]
      for (let b = 0; b < n; b++) {
        const weight = weights[a * n + b]!
        const force = 4 * (exaggeration * p[a * n + b]! - weight / total) * weight
        gx += force * (y[2 * a]! - y[2 * b]!)
        gy += force * (y[2 * a + 1]! - y[2 * b + 1]!)
      }
      for (const [axis, gradient] of [gx, gy].entries()) {
        const i = 2 * a + axis
        gain[i] = Math.max(0.01, Math.sign(gradient) === Math.sign(velocity[i]!) ? gain[i]! * 0.8 : gain[i]! + 0.2)
        velocity[i] = momentum * velocity[i]! - LEARNING_RATE * gain[i]! * gradient
      }
    }
    for (let i = 0; i < y.length; i++) y[i]! += velocity[i]!
    center(y)
  }
  return rows.map((_, i) => [y[2 * i]!, y[2 * i + 1]!])
}

function center(y: Float64Array): void {
  for (const axis of [0, 1]) {
    let mean = 0
    for (let i = axis; i < y.length; i += 2) mean += (2 * y[i]!) / y.length
    for (let i = axis; i < y.length; i += 2) y[i]! -= mean
  }
}

/** The symmetric affinities of all pairs of rows: the mean of both directions. Each row's neighbourhood has the same perplexity. */
function affinities(rows: readonly ArrayLike<number>[], perplexity: number): Float64Array {
  const n = rows.length
  const width = rows[0]!.length
  const distances = new Float64Array(n * n)
  for (let a = 0; a < n; a++) {
    for (let b = 0; b < a; b++) {
      let sum = 0
      for (let i = 0; i < width; i++) sum += (rows[a]![i]! - rows[b]![i]!) ** 2
      distances[a * n + b] = sum
      distances[b * n + a] = sum
    }
  }
  const wanted = Math.log(perplexity)
  const p = new Float64Array(n * n)
  for (let a = 0; a < n; a++) {
    let [low, high, beta] = [0, Number.POSITIVE_INFINITY, 1]
    const nearest = distances
      .subarray(a * n, (a + 1) * n)
      .reduce((least, d, b) => (b !== a && d < least ? d : least), Number.POSITIVE_INFINITY)
    for (let attempt = 0; attempt < 60; attempt++) {
      let [sum, weighted] = [0, 0]
      for (let b = 0; b < n; b++) {
        const d = distances[a * n + b]! - nearest
        const weight = b === a ? 0 : Math.exp(-d * beta)
        p[a * n + b] = weight
        sum += weight
        weighted += d * weight
      }
      const entropy = Math.log(sum) + (beta * weighted) / sum
      for (let b = 0; b < n; b++) p[a * n + b]! /= sum
      if (Math.abs(entropy - wanted) < 1e-5) break
      if (entropy > wanted) {
        low = beta
        beta = high === Number.POSITIVE_INFINITY ? beta * 2 : (beta + high) / 2
      } else {
        high = beta
        beta = (beta + low) / 2
      }
    }
  }
  const both = new Float64Array(n * n)
  for (let a = 0; a < n; a++) {
    for (let b = 0; b < n; b++) both[a * n + b] = Math.max(1e-12, (p[a * n + b]! + p[b * n + a]!) / (2 * n))
  }
  return both
}
