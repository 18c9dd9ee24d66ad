import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BLOCK_ELEMENTS as BLOCK, KnownMoments, MomentsRow } from '#dist/core/border/abi.js'
import {
  COMPLEX,
  decodeBfloat16,
  decodeFloat16,
  difference,
  type Exact,
  elementsOf,
  exact,
  momentsOf,
  REAL,
  ratio,
  reductionsOf,
  times,
} from '../oracle/moments.js'
import { loadCore } from '../support/core.js'
import { isLong } from '../support/part.js'

const { exports: core, memory } = loadCore()
const { extremes: EXTREMES, sum: SUM, sumAbs: SUM_ABS, squares: SQUARES, product: PRODUCT, all: ALL } = KnownMoments
type Name = Extract<keyof typeof MomentsRow, string>
/** So many inputs drawn at random; quick: a fifth of them. */
const runs = (count: number) => ({ numRuns: isLong ? count : Math.ceil(count / 10) })
const REALS = Object.keys(REAL)
const FLOATS = ['float16', 'bfloat16', 'float32', 'float64']

core.arenaReset()
const ROWS = [0, 1, 2].map(() => core.arenaReserve(MomentsRow.size) >>> 0) as [number, number, number]
const DATA = core.arenaReserve(16 * 3 * BLOCK + 16) >>> 0
const WIDE = core.arenaReserve(4 * 65536) >>> 0

// ------------------------------------------------------------------------------------------------- The kernel

const dtypeNumber = (dtype: string) => (dtype in COMPLEX ? COMPLEX[dtype as 'complex64'][0] : REAL[dtype]![0])
const sizeOf = (dtype: string) => (dtype in COMPLEX ? 2 * REAL[COMPLEX[dtype as 'complex64'][1]]![1] : REAL[dtype]![1])

function slot(row: number, name: Name): number {
  return new DataView(memory.buffer).getFloat64(row + MomentsRow[name], true)
}

function bits(row: number, name: Name): bigint {
  return new DataView(memory.buffer).getBigUint64(row + MomentsRow[name], true)
}

function rowBytes(row: number): string {
  return Buffer.from(memory.buffer, row, MomentsRow.size).toString('hex')
}

/** Reduces bytes lying at any address, in calls that end where `cuts` say. */
function reduce(
  dtype: string,
  bytes: Uint8Array,
  { offset = 0, cuts = [] as number[], row = ROWS[0], known = ALL } = {},
): number {
  const at = DATA + offset
  new Uint8Array(memory.buffer).set(bytes, at)
  core.momentsReset(row)
  const count = bytes.length / sizeOf(dtype)
  let from = 0
  for (const to of [...cuts, count]) {
    core.momentsAdd(dtypeNumber(dtype), at + from * sizeOf(dtype), to - from, row, known)
    from = to
  }
  return row
}

// ------------------------------------------------------------------------------------------------- The data

/** A generator of a seed, so that large inputs shrink as a number does. */
function random(seed: number): () => number {
  let a = seed
  return () => {
    a = (a + 0x6d2b79f5) | 0
    let t = Math.imul(a ^ (a >>> 15), 1 | a)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

const SPECIAL: Record<string, readonly number[]> = {
  float16: [0, 0x8000, 1, 0x8001, 0x3ff, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01],
  bfloat16: [0, 0x8000, 1, 0x8001, 0x7f, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0xffc1, 0x7f81],
  float32: [0, -0, 1e-45, -1e-45, 1e-38, 3.4e38, -3.4e38, Infinity, -Infinity, NaN],
  float64: [0, -0, 5e-324, -5e-324, 2e-308, 1.7e308, -1.7e308, 1e160, 1e-170, Infinity, -Infinity, NaN],
}
const FINITE_SPECIAL = Object.fromEntries(
  Object.entries(SPECIAL).map(([dtype, list]) => [
    dtype,
    list.filter(x =>
      Number.isFinite(dtype === 'float16' ? decodeFloat16(x) : dtype === 'bfloat16' ? decodeBfloat16(x) : x),
    ),
  ]),
)

const FLAVOURS = ['bits', 'normal', 'positive', 'offset', 'sparse', 'signs', 'special', 'finite', 'outlier'] as const
type Flavour = (typeof FLAVOURS)[number]

/** Little-endian elements of one flavour. */
function generate(dtype: string, flavour: Flavour, count: number, seed: number): Uint8Array {
  const next = random(seed)
  const normal = () => next() + next() + next() + next() - 2
  if (dtype in COMPLEX) return generate(COMPLEX[dtype as 'complex64'][1], flavour, 2 * count, seed)
  const size = REAL[dtype]![1]
  const bytes = new Uint8Array(count * size)
  const view = new DataView(bytes.buffer)
  const isFloat = FLOATS.includes(dtype)
  for (let i = 0; i < count; i++) {
    const at = i * size
    if (flavour === 'bits' || (!isFloat && (flavour === 'special' || flavour === 'finite') && next() < 0.5)) {
      for (let k = 0; k < size; k++) bytes[at + k] = next() * 256
      continue
    }
    if (flavour === 'special' || flavour === 'finite') {
      if (!isFloat) {
        // Bytes of all ones, of the lowest and of the highest signed integer, and zero
        const pick = Math.floor(next() * 4)
        bytes.fill(pick === 0 ? 0xff : pick === 2 ? 0xff : 0, at, at + size)
        if (pick === 1) bytes[at + size - 1] = 0x80
        if (pick === 2) bytes[at + size - 1] = 0x7f
        continue
      }
      const list = (flavour === 'special' ? SPECIAL : FINITE_SPECIAL)[dtype]!
      const x = next() < 0.3 ? list[Math.floor(next() * list.length)]! : undefined
      if (x !== undefined && size === 2) view.setUint16(at, x, true)
      else write(view, at, dtype, x ?? normal())
      continue
    }
    const unit = isFloat ? 1 : 30
    const x = {
      normal: () => normal() * unit,
      positive: () => next() * unit + unit / 100,
      offset: () => (size === 8 && !isFloat ? normal() * 1000 : isFloat ? 1e4 + normal() / 1000 : 100 + normal() * 4),
      sparse: () => (next() < 0.7 ? 0 : normal() * unit),
      signs: () => (next() < 0.5 ? unit : -unit),
      outlier: () => (i < 3 ? 1e8 : normal() * unit),
    }[flavour]()
    if (size === 8 && !isFloat) {
      const base = flavour === 'offset' ? 1_700_000_000_000_000_000n : 0n
      const big = base + BigInt(Math.round(x))
      view.setBigInt64(at, dtype === 'uint64' && big < 0n ? -big : big, true)
    } else write(view, at, dtype, x)
  }
  return bytes
}

function write(view: DataView, at: number, dtype: string, x: number): void {
  switch (dtype) {
    case 'float64':
      view.setFloat64(at, x, true)
      return
    case 'float32':
      view.setFloat32(at, x, true)
      return
    case 'bfloat16':
      view.setUint16(at, new Uint32Array(Float32Array.of(x).buffer)[0]! >>> 16, true)
      return
  }
  if (dtype === 'float16') {
    // Not rounded, which no test needs: a pattern near enough
    const size = Math.min(Math.abs(x), 60000)
    const exponent = size < 2 ** -14 ? 0 : Math.floor(Math.log2(size)) + 15
    const fraction = exponent === 0 ? size * 2 ** 24 : (size / 2 ** (exponent - 15) - 1) * 1024
    view.setUint16(at, (x < 0 ? 0x8000 : 0) | (exponent << 10) | Math.min(1023, Math.floor(fraction)), true)
  } else if (REAL[dtype]![1] === 4) view.setInt32(at, x, true)
  else if (REAL[dtype]![1] === 2) view.setInt16(at, x, true)
  else view.setInt8(at, dtype === 'bool' ? (x > 0 ? 1 + (Math.abs(x) & 127) : 0) : x)
}

const dtypeOf = (list: readonly string[]) => fc.constantFrom(...list)
const lengths = fc.oneof(fc.integer({ min: 0, max: 300 }), fc.constantFrom(4095, 4096, 4097, 4110, 8192, 2 * BLOCK + 5))
const inputs = (list: readonly string[]) =>
  fc.record({
    dtype: dtypeOf(list),
    flavour: fc.constantFrom(...FLAVOURS),
    count: lengths,
    seed: fc.integer(),
    offset: fc.integer({ min: 0, max: 15 }),
  })

// ------------------------------------------------------------------------------------------------- Closeness

/** What must hold of |got · 2^exponent − want|, as a share of `of`; see expected/README.md. */
function share(got: number, exponent: number, want: Exact, of: Exact): number {
  const { whole, exponent: e } = exact(got)
  const apart = difference({ whole, exponent: e + exponent }, want)
  return apart.whole === 0n ? 0 : of.whole === 0n ? Infinity : Math.abs(ratio(apart, of))
}

/** Σ(x − mean)², of which `want` is n times as much. */
function expectM2(row: number, name: Name, n: number, want: Exact, tolerance: number): void {
  const exponent = 2 * slot(row, 'exponent')
  const got = slot(row, name)
  const { whole, exponent: e } = exact(got)
  const apart = difference(times({ whole, exponent: e + exponent }, n), want)
  const absolute = Math.abs(ratio(apart, { whole: BigInt(n) ** 2n, exponent: 0 }))
  if (absolute > 1e-24 && (want.whole === 0n || Math.abs(ratio(apart, want)) > tolerance)) {
    expect.fail(`${name}: ${got} · 2^${exponent} is not ${ratio(want, { whole: BigInt(n), exponent: 0 })}`)
  }
}

function expectSums(
  row: number,
  suffix: '' | 'Abs' | 'Imaginary',
  values: readonly (number | bigint)[],
  tolerance = 1e-9,
): void {
  const want = momentsOf(values)
  if (want.n === 0) {
    expect([slot(row, `sum${suffix}`), slot(row, `mean${suffix}`), slot(row, `m2${suffix}`)]).toEqual([0, 0, 0])
    return
  }
  const exponent = slot(row, 'exponent')
  expect(share(slot(row, `sum${suffix}`), exponent, want.sum, want.sumAbs), `sum${suffix}`).toBeLessThanOrEqual(1e-12)
  const mean = exact(slot(row, `mean${suffix}`))
  const apart = difference(times({ whole: mean.whole, exponent: mean.exponent + exponent }, want.n), want.sum)
  if (apart.whole !== 0n) expect(Math.abs(ratio(apart, want.sumAbs)), `mean${suffix}`).toBeLessThanOrEqual(1e-12)
  expectM2(row, `m2${suffix}`, want.n, want.nM2, tolerance)
}

function expectRow(row: number, values: readonly (number | bigint)[]): void {
  const want = momentsOf(values)
  const equal = (name: Name, x: number | bigint) => expect(slot(row, name) + 0, name).toBe(Number(x) + 0)
  equal('count', want.count)
  equal('nanCount', want.nans)
  equal('positiveInfinityCount', want.positiveInfinities)
  equal('negativeInfinityCount', want.negativeInfinities)
  equal('zeroCount', want.zeros)
  equal('min', want.min)
  equal('max', want.max)
  equal('minAbs', want.minAbs)
  equal('maxAbs', Math.max(0, Number(want.maxAbs)))
  if (typeof values[0] === 'bigint') {
    const unsigned = (x: number | bigint) => BigInt.asUintN(64, BigInt(x))
    expect(bits(row, 'minExact')).toBe(unsigned(want.min))
    expect(bits(row, 'maxExact')).toBe(unsigned(want.max))
    expect(bits(row, 'minAbsExact')).toBe(unsigned(want.minAbs))
    expect(bits(row, 'maxAbsExact')).toBe(unsigned(want.maxAbs))
  }
  expectSums(row, '', values)
  expectSums(
    row,
    'Abs',
    values.map(x => (x < 0 ? -x : x)),
  )
  expectSquares(row, want.sumSquares)
  expectProduct(row, want.product, want.isProductNegative)
}

/** l2 within 1e-12 is its square within twice that. */
function expectSquares(row: number, want: Exact): void {
  const got = share(slot(row, 'sumSquares'), 2 * slot(row, 'exponent'), want, want)
  // Squares can lie under the smallest float64 of an ordinary row
  if (got > 2e-12) expect(Math.abs(ratio(want, { whole: 1n, exponent: 0 }))).toBeLessThan(1e-300)
}

function expectProduct(row: number, want: Exact, isNegative: boolean): void {
  const mantissa = slot(row, 'prodMantissa')
  const exponent = slot(row, 'prodExponent')
  expect(Object.is(Math.sign(mantissa), isNegative ? -1 : 1) || mantissa === 0).toBe(true)
  if (want.whole === 0n) expect([mantissa, exponent]).toEqual([isNegative ? -0 : 0, 0])
  else {
    expect(Math.abs(mantissa)).toBeGreaterThanOrEqual(1)
    expect(Math.abs(mantissa)).toBeLessThan(2)
    expect(share(mantissa, exponent, want, want), 'product').toBeLessThanOrEqual(1e-9)
  }
}

// ------------------------------------------------------------------------------------------------- The tests

describe('momentsAdd', () => {
  test('of nothing leaves the empty row', () => {
    for (const dtype of [...REALS, ...Object.keys(COMPLEX)]) expectRow(reduce(dtype, new Uint8Array()), [])
  })

  test('leaves strings and unknown types out', () => {
    for (const dtype of [0, 7, 11, 99, -1]) {
      core.momentsReset(ROWS[0])
      const empty = rowBytes(ROWS[0])
      core.momentsAdd(dtype, DATA, 1000, ROWS[0], ALL)
      core.momentsRepeat(dtype, DATA, 1000, ROWS[0], ALL)
      expect(rowBytes(ROWS[0])).toBe(empty)
    }
  })

  test.each(REALS)('of %s, with flavours and lengths at random', dtype => {
    fc.assert(
      fc.property(inputs([dtype]), ({ flavour, count, seed, offset }) => {
        const bytes = generate(dtype, flavour, count, seed)
        expectRow(reduce(dtype, bytes, { offset }), elementsOf(dtype, bytes))
      }),
      runs(60),
    )
  })

  test.each(REALS)('of every flavour of %s in every short length', dtype => {
    for (const flavour of FLAVOURS) {
      for (let count = 1; count < 40; count++) {
        const bytes = generate(dtype, flavour, count, count)
        expectRow(reduce(dtype, bytes, { offset: count & 15 }), elementsOf(dtype, bytes))
      }
    }
  })

  test.each(REALS)('of %s is the same at every address', dtype => {
    const bytes = generate(dtype, 'normal', 4099, 1)
    const expected = rowBytes(reduce(dtype, bytes))
    for (let offset = 1; offset < 16; offset++) expect(rowBytes(reduce(dtype, bytes, { offset }))).toBe(expected)
  })

  test.each([...REALS, ...Object.keys(COMPLEX)])('of %s gives the same bits when cut at whole blocks', dtype => {
    for (const flavour of FLAVOURS) {
      const bytes = generate(dtype, flavour, 2 * BLOCK + 100, 7)
      const whole = rowBytes(reduce(dtype, bytes))
      expect(rowBytes(reduce(dtype, bytes, { cuts: [BLOCK] }))).toBe(whole)
      expect(rowBytes(reduce(dtype, bytes, { cuts: [BLOCK, 2 * BLOCK] }))).toBe(whole)
    }
  })

  test.each(Object.keys(COMPLEX))('of %s', dtype => {
    fc.assert(
      fc.property(inputs([dtype]), ({ flavour, count, seed, offset }) => {
        const bytes = generate(dtype, flavour, count, seed)
        const row = reduce(dtype, bytes, { offset })
        const parts = elementsOf(dtype, bytes) as number[]
        const all = Array.from({ length: count }, (_, i) => [parts[2 * i]!, parts[2 * i + 1]!] as const)
        const finite = all.filter(z => z.every(Number.isFinite))
        expect(slot(row, 'count')).toBe(count)
        expect(slot(row, 'nanCount')).toBe(all.filter(z => z.some(Number.isNaN)).length)
        expect(slot(row, 'zeroCount')).toBe(all.filter(([x, y]) => x === 0 && y === 0).length)
        const infinite = count - finite.length - slot(row, 'nanCount')
        expect(slot(row, 'positiveInfinityCount')).toBe(infinite)
        // Both parts are in the units of |z|: of extreme numbers the smaller one may lie under them
        if (slot(row, 'exponent') === 0) {
          const [re, im] = [finite.map(z => z[0]), finite.map(z => z[1])]
          expectSums(row, '', re)
          expectSums(row, 'Imaginary', im)
        }
        const lengths = finite.map(([x, y]) => Math.hypot(x, y))
        if (!lengths.every(Number.isFinite)) return
        // |z| itself is rounded, by as much as tells when all are nearly the same
        const want = momentsOf(lengths)
        const largest = Math.max(0, ...lengths)
        const spread = Math.sqrt(Math.abs(ratio(want.nM2, { whole: BigInt(want.n || 1) ** 2n, exponent: 0 })))
        expectSums(row, 'Abs', lengths, 1e-9 + (spread > 0 ? (2 ** -50 * largest) / spread : Infinity))
        const close = (name: Name, x: number) => {
          const got = slot(row, name)
          if (got !== x) expect(Math.abs(got - x) / x, name).toBeLessThan(1e-15)
        }
        close('minAbs', infinite && lengths.length === 0 ? Infinity : Number(want.minAbs))
        close('maxAbs', infinite ? Infinity : Math.max(0, Number(want.maxAbs)))
        expectSquares(row, want.sumSquares)
        // Of the smallest numbers hypot has few bits
        if (lengths.every(x => x === 0 || x > 1e-290)) expectProduct(row, want.product, false)
      }),
      runs(60),
    )
  })

  test('of time stamps in nanoseconds keeps their spread', () => {
    for (const dtype of ['int64', 'uint64']) {
      for (const cuts of [[], [1], [3000], [5, 6, 7, 8000]]) {
        const bytes = generate(dtype, 'offset', 2 * BLOCK + 77, 3)
        expectRow(reduce(dtype, bytes, { cuts }), elementsOf(dtype, bytes))
      }
    }
  })

  test.each(['int64', 'uint64'])('of %s at the borders of 52 and 64 bits, and across a range of 2^63', dtype => {
    const powers = [51n, 52n, 53n, 62n, 63n, 64n].map(bit => 1n << bit)
    const near = powers.flatMap(power => [power - 2n, power - 1n, power, power + 1n].flatMap(x => [x, -x]))
    const wrap = (x: bigint) => (dtype === 'int64' ? BigInt.asIntN(64, x) : BigInt.asUintN(64, x))
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(0n, 1n, -1n, ...near).map(wrap), { minLength: 1, maxLength: 12 }),
        fc.constantFrom(1, 3, 1000),
        (values, times) => {
          const all = Array.from({ length: values.length * times }, (_, i) => values[i % values.length]!)
          const bytes = new Uint8Array(BigInt64Array.from(all).buffer)
          const row = reduce(dtype, bytes)
          expectRow(row, all)
          // To the last bit that two float64 hold
          const low = new DataView(memory.buffer).getFloat64(row + MomentsRow.sumLow, true)
          if (all.length <= BLOCK) expect(BigInt(slot(row, 'sum')) + BigInt(low)).toBe(all.reduce((a, b) => a + b))
        },
      ),
      runs(300),
    )
  })

  test('of a tensor whose blocks differ by nine orders of magnitude', () => {
    const next = random(5)
    const values = Float32Array.from(
      { length: 3 * BLOCK },
      (_, i) => (i < BLOCK || i >= 2 * BLOCK ? 1e6 : 1e-3) * (next() + 1),
    )
    const bytes = new Uint8Array(values.buffer)
    expectRow(reduce('float32', bytes), elementsOf('float32', bytes))
  })

  test('gives the product of zeros its sign', () => {
    for (const [values, want] of [
      [[0, -3], -0],
      [[-0, -3], 0],
      [[-0, 2, 2, 2, 2, 2, 2, 2, 2], -0],
      [[0, -0, 5], -0],
    ] as const) {
      for (const dtype of ['float32', 'float64'] as const) {
        const typed = dtype === 'float32' ? Float32Array.from(values) : Float64Array.from(values)
        const row = reduce(dtype, new Uint8Array(typed.buffer))
        expect(slot(row, 'prodMantissa')).toBe(want)
        expect(slot(row, 'prodExponent')).toBe(0)
      }
    }
  })
})

describe('a smaller set', () => {
  const each = (set: number, ...names: Name[]) => names.map(name => [name, set] as const)
  /** Each slot that is told, and what a row must know for it. */
  const SLOTS = new Map([
    ...each(0, 'count', 'nanCount', 'positiveInfinityCount', 'negativeInfinityCount'),
    ...each(EXTREMES, 'zeroCount', 'min', 'max', 'minAbs', 'maxAbs'),
    ...each(EXTREMES, 'minExact', 'maxExact', 'minAbsExact', 'maxAbsExact'),
    ...each(SUM, 'sum', 'sumImaginary', 'mean', 'meanImaginary', 'exponent'),
    ...each(SUM_ABS, 'sumAbs', 'meanAbs'),
    ...each(SQUARES, 'm2', 'm2Imaginary', 'sumSquares'),
    ...each(SUM_ABS | SQUARES, 'm2Abs'),
    ...each(PRODUCT, 'prodMantissa', 'prodExponent'),
  ])
  const knows = (set: number, bits: number): boolean => (set & bits) === bits

  /** The bits of what a row of at least this set knows; the rest must be NaN. */
  function known(row: number, set: number): Record<Name, bigint> {
    const told = slot(row, 'known')
    expect([told, knows(told, set)]).toEqual([told, true])
    const names = [...SLOTS.keys()].filter(name => knows(told, SLOTS.get(name)!))
    for (const [name, bits] of SLOTS) if (!knows(told, bits)) expect(slot(row, name), name).toBeNaN()
    return Object.fromEntries(names.map(name => [name, bits(row, name)])) as Record<Name, bigint>
  }

  function expectSame(row: number, set: number, all: number): void {
    const got = known(row, set)
    expect(got).toEqual(Object.fromEntries(Object.keys(got).map(name => [name, bits(all, name as Name)])))
    expect(slot(all, 'known')).toBe(ALL)
  }

  test.each([...REALS, ...Object.keys(COMPLEX)])('of %s has the same bits as all', dtype => {
    const sets = fc.integer({ min: 0, max: ALL - 1 })
    fc.assert(
      fc.property(inputs([dtype]), sets, ({ flavour, count, seed, offset }, set) => {
        const bytes = generate(dtype, flavour, count + 1, seed)
        reduce(dtype, bytes, { offset, row: ROWS[0], known: ALL })
        reduce(dtype, bytes, { offset, row: ROWS[1], known: set })
        expectSame(ROWS[1], set, ROWS[0])
      }),
      runs(100),
    )
  })

  test('is what is known of a merge with it', () => {
    const sets = fc.integer({ min: 0, max: ALL })
    fc.assert(
      fc.property(inputs([...REALS, ...Object.keys(COMPLEX)]), sets, sets, ({ dtype, flavour, count, seed }, a, b) => {
        const bytes = generate(dtype, flavour, count + 2, seed)
        const half = bytes.subarray(0, ((count + 2) >> 1) * sizeOf(dtype))
        const rest = bytes.subarray(half.length)
        const merge = (into: number, first: number, second: number) => {
          reduce(dtype, half, { row: into, known: first })
          reduce(dtype, rest, { row: ROWS[1], known: second })
          core.momentsMerge(into, ROWS[1])
        }
        merge(ROWS[2], ALL, ALL)
        merge(ROWS[0], a, b)
        expectSame(ROWS[0], a & b, ROWS[2])
      }),
      runs(200),
    )
  })

  test('of a repeated element has the same bits as all', () => {
    for (const dtype of [...REALS, ...Object.keys(COMPLEX)]) {
      for (const flavour of FLAVOURS) {
        new Uint8Array(memory.buffer).set(generate(dtype, flavour, 1, 1), DATA)
        for (const set of [0, EXTREMES, SUM, SUM_ABS, SQUARES, SUM | SQUARES]) {
          core.momentsReset(ROWS[0])
          core.momentsReset(ROWS[1])
          core.momentsRepeat(dtypeNumber(dtype), DATA, 1e6, ROWS[0], ALL)
          core.momentsRepeat(dtypeNumber(dtype), DATA, 1e6, ROWS[1], set)
          expectSame(ROWS[1], set, ROWS[0])
        }
      }
    }
  })
})

describe('momentsMerge', () => {
  test('of a split gives the moments of the whole', () => {
    fc.assert(
      fc.property(inputs(REALS), fc.double({ min: 0, max: 1, noNaN: true }), (input, cut) => {
        const { dtype, flavour, count, seed } = input
        const bytes = generate(dtype, flavour, count, seed)
        const at = Math.floor(cut * count) * sizeOf(dtype)
        reduce(dtype, bytes.subarray(0, at), { row: ROWS[0] })
        reduce(dtype, bytes.subarray(at), { row: ROWS[1] })
        const from = rowBytes(ROWS[1])
        core.momentsMerge(ROWS[0], ROWS[1])
        expectRow(ROWS[0], elementsOf(dtype, bytes))
        expect(rowBytes(ROWS[1])).toBe(from)
      }),
      runs(300),
    )
  })

  test('reconciles any two exponents', () => {
    const tiny = [0, 1e-320, 1e-300, 1e-200, 1e-130, 1, 1e130, 1e200, 1e300, 1.7e308]
    fc.assert(
      fc.property(fc.array(fc.array(fc.constantFrom(...tiny, ...tiny.map(x => -x)), { maxLength: 3 })), lists => {
        core.momentsReset(ROWS[0])
        for (const list of lists) {
          reduce('float64', new Uint8Array(Float64Array.from(list).buffer), { row: ROWS[1] })
          core.momentsMerge(ROWS[0], ROWS[1])
        }
        expectRow(ROWS[0], lists.flat())
      }),
      runs(500),
    )
  })
})

describe('momentsRepeat', () => {
  test('is the element written out', () => {
    fc.assert(
      fc.property(inputs(REALS), fc.integer({ min: 0, max: 5000 }), ({ dtype, flavour, seed, offset }, repetitions) => {
        const before = generate(dtype, flavour, 5, seed)
        const one = generate(dtype, flavour, 1, seed + 1)
        const row = reduce(dtype, before)
        new Uint8Array(memory.buffer).set(one, DATA + offset)
        core.momentsRepeat(dtypeNumber(dtype), DATA + offset, repetitions, row, ALL)
        const value = elementsOf(dtype, one)[0]!
        expectRow(row, [...elementsOf(dtype, before), ...Array<typeof value>(repetitions).fill(value)])
      }),
      runs(300),
    )
  })

  test('takes 2^53 of them', () => {
    new DataView(memory.buffer).setFloat64(DATA, 1 + 2 ** -50, true)
    core.momentsReset(ROWS[0])
    core.momentsRepeat(2, DATA, 2 ** 53, ROWS[0], ALL)
    expect(slot(ROWS[0], 'count')).toBe(2 ** 53)
    expect(slot(ROWS[0], 'sum')).toBe(2 ** 53 + 8)
    expect(slot(ROWS[0], 'm2')).toBe(0)
    // (1 + ε)^n with nε = 8 is e^(8 − 4ε)
    const product = slot(ROWS[0], 'prodMantissa') * 2 ** slot(ROWS[0], 'prodExponent')
    expect(Math.abs(product / Math.exp(8) - 1)).toBeLessThan(1e-13)
  })
})

describe('widenToFloat32', () => {
  /** The bits that a pattern must become: exponent re-biased, the fraction in the upper bits. */
  function bitsOfFloat16(pattern: number): number {
    const sign = (pattern & 0x8000) << 16
    if ((pattern & 0x7c00) === 0x7c00) return (sign | 0x7f800000 | ((pattern & 1023) << 13)) >>> 0
    const view = new DataView(new ArrayBuffer(4))
    view.setFloat32(0, Math.abs(decodeFloat16(pattern)))
    return (sign | view.getUint32(0)) >>> 0
  }

  test.each([
    [19, bitsOfFloat16],
    [14, (pattern: number) => (pattern << 16) >>> 0],
  ])('of dtype %i is right for all 65536 patterns, in vectors and one by one', (dtype, want) => {
    const patterns = Uint16Array.from({ length: 65536 }, (_, i) => i)
    const wanted = Uint32Array.from(patterns, want)
    for (const step of [65536, 3]) {
      for (let from = 0; from < 65536; from += step) {
        const run = patterns.subarray(from, from + step)
        new Uint8Array(memory.buffer).set(new Uint8Array(run.slice().buffer), DATA)
        core.widenToFloat32(dtype, DATA, run.length, WIDE + 4 * from)
      }
      expect(Buffer.compare(Buffer.from(memory.buffer, WIDE, 4 * 65536), Buffer.from(wanted.buffer))).toBe(0)
      new Uint8Array(memory.buffer, WIDE, 4 * 65536).fill(0)
    }
  })

  test('writes and needs nothing beyond the elements', () => {
    for (let count = 0; count < 40; count++) {
      const target = new Uint8Array(memory.buffer, WIDE, 4 * 64).fill(0xaa)
      new Uint8Array(memory.buffer, DATA, 2 * 64).fill(0x3c)
      core.widenToFloat32(19, DATA, count, WIDE)
      expect(target.subarray(4 * count).every(byte => byte === 0xaa)).toBe(true)
    }
  })
})

describe('the oracle', () => {
  test('knows numpy on small arrays', () => {
    expect(reductionsOf([1, 2, 3, -4])).toMatchObject({
      sum: 2,
      mean: 0.5,
      variance: 7.25,
      prod: -24,
      l1: 10,
      abs_sum: 10,
    })
    expect(reductionsOf([3, 4])).toMatchObject({ l2: 5, std: 0.5, abs_prod: 12 })
    expect(reductionsOf([1, Infinity])).toMatchObject({ max: Infinity, sum: Infinity, std: NaN, l2: Infinity, min: 1 })
    expect(reductionsOf([NaN, 1])).toMatchObject({ max: NaN, sum: NaN, min: NaN, abs_l1: NaN })
    expect(reductionsOf([1e-160, 3e-160])).toMatchObject({ variance: 1e-320 })
  })
})
