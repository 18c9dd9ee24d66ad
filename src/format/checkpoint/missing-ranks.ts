/** Ranks without a file, if the names or contents of other files give the number of ranks. */

/** `model_world_size_8_rank_3.pt`. */
const WORLD = /^(.*world_size[-_=]?)(\d+)([-_.]rank[-_=]?)(\d+)(?=$|[-_.])/
/** ZeRO's partitions and ranks of a model that is split: `zero_pp_rank_0_mp_rank_00_…`, `mp_rank_01_002/`. */
const GRID = /(^|\/)((?:bf16_|fp16_)?zero_pp_rank_\d+_mp_rank_\d+(?:_\d+)*|mp_rank_\d+(?:_\d+)*)/
/** Names with higher numbers are no ranks. */
const MAX_RANKS = 65_536
const MAX_NAMED = 3

export interface MissingRanks {
  /** The number of files that there should be. */
  readonly expected: number
  readonly found: number
  /** The first paths that are missing. */
  readonly paths: readonly string[]
}

/** Files of ranks that have the same name but for the numbers of ranks. */
interface Series {
  readonly first: string
  readonly ranks: Map<string, readonly number[]>
  /** The number of ranks along each axis. */
  readonly sizes: number[]
}

/**
 * @param paths of a checkpoint's files
 * @param partitions the number of partitions that DeepSpeed's files state; 0: none does
 */
export function missingRanks(paths: readonly string[], partitions = 0): MissingRanks[] {
  const all = new Map<string, Series>()
  for (const path of paths) {
    const parsed = parse(path)
    if (parsed === null) continue
    const { key, ranks, sizes } = parsed
    const series = all.get(key) ?? { first: path, ranks: new Map(), sizes: [...sizes] }
    all.set(key, series)
    series.ranks.set(ranks.join(), ranks)
    ranks.forEach((rank, axis) => {
      series.sizes[axis] = Math.max(series.sizes[axis] ?? 0, rank + 1)
    })
    if (/zero_pp_rank_/.test(key)) series.sizes[0] = Math.max(series.sizes[0]!, partitions)
  }
  return [...all.values()].flatMap(({ first, ranks, sizes }) => {
    const expected = sizes.reduce((product, size) => product * size, 1)
    if (expected <= ranks.size || expected > MAX_RANKS) return []
    const missing = Array.from({ length: expected }, (_, i) => ranksAt(i, sizes)).filter(
      combination => !ranks.has(combination.join()),
    )
    const named = missing.slice(0, MAX_NAMED).map(combination => withRanks(first, combination))
    return [{ expected, found: ranks.size, paths: named }]
  })
}

function parse(path: string) {
  const world = WORLD.exec(path)
  if (world) {
    const [whole, before, size, between, rank] = world as unknown as [string, string, string, string, string]
    const key = `${before}${size}${between}*${path.slice(whole.length)}`
    return { key, ranks: [Number(rank)], sizes: [Number(size)] }
  }
  const grid = GRID.exec(path)
  if (grid === null) return null
  const ranks = (grid[2]!.match(/(?<=_)\d+/g) ?? []).map(Number)
  return {
    key: path.replace(GRID, text => text.replace(/rank_\d+(?:_\d+)*/g, 'rank_*')) + ranks.length,
    ranks,
    sizes: [],
  }
}

/** The numbers along each axis of the `i`-th of all combinations. */
function ranksAt(i: number, sizes: readonly number[]): readonly number[] {
  const ranks: number[] = []
  let rest = i
  for (const size of sizes.toReversed()) {
    ranks.unshift(rest % size)
    rest = Math.floor(rest / size)
  }
  return ranks
}

/** A path with other ranks, as wide as its own. */
function withRanks(path: string, ranks: readonly number[]): string {
  const world = WORLD.exec(path)
  if (world) return `${world[1]}${world[2]}${world[3]}${ranks[0]}${path.slice(world[0].length)}`
  let at = 0
  return path.replace(GRID, text => text.replace(/(?<=_)\d+/g, digits => `${ranks[at++]}`.padStart(digits.length, '0')))
}
