/** The targets of trialscan, as ratios within a run, and their outcomes in a record. */
import type { Measured } from '#dist/cli/bench/measure.js'
import type { Record } from './record.js'
import { digits, duration, type Result } from './report.js'

export interface Target {
  readonly what: string
  /** The contender that the number is compared with; empty if the number stands alone. */
  readonly beside: string
  readonly limit: string
  /** Undefined where the record does not have it. */
  readonly outcome: Outcome | undefined
}

export interface Outcome {
  /** Our own time or speed. */
  readonly ours: string
  readonly measured: string
  readonly isMet: boolean
}

/** Millions of records of 100 B a second: the 30 of a machine with 4.5 GHz, at the 3.7 of the one below. */
const RECORDS = 24.5

/** Twenty rules in one pass beside six of them, one pass for each. */
const RULES_AT_ONCE = 1.2

/** The limit of a blocked thread: browsers call longer tasks long, and people notice them. */
const FLAT_THREAD_MS = 50

export function targetsOf(record: Record): Target[] {
  const { results } = record
  const all = (definition: string, size: RegExp) =>
    results.filter(result => result.definition === definition && size.test(result.size))
  const engine = (result: Result | undefined, name: RegExp) => result?.engines.find(({ engine }) => name.test(engine))

  const fastest = (result: Result, name: RegExp) =>
    result.engines.filter(({ engine }) => name.test(engine)).sort((a, b) => a.ratio - b.ratio)[0]

  /** They take at least so many times our time. Of several ways to do it their fastest counts. */
  const atLeast = (
    what: string,
    beside: string,
    limit: number,
    definition: string,
    size: RegExp,
    name: RegExp,
  ): Target => {
    // Of several cases the worst one counts.
    const slowest = all(definition, size)
      .flatMap(result => {
        // Of 64-bit integers the loop over their typed array, whose elements are bigints.
        const other = engine(result, /bigints/) ?? fastest(result, name)
        return other === undefined ? [] : [{ result, ratio: other.ratio }]
      })
      .sort((a, b) => a.ratio - b.ratio)[0]
    const outcome = slowest && {
      ours: speed(slowest.result),
      measured: `${digits(slowest.ratio)}×`,
      isMet: slowest.ratio >= limit,
    }
    return { what, beside, limit: `≥ ${Number(limit.toFixed(2))}×`, outcome }
  }

  /** We take at most so many times their time. */
  const atMost = (
    what: string,
    beside: string,
    limit: number,
    definition: string,
    size: RegExp,
    name: RegExp,
  ): Target => {
    const result = all(definition, size)[0]
    const other = engine(result, name)
    const ratio = 1 / (other?.ratio ?? Number.NaN)
    const outcome = result && other && { ours: speed(result), measured: `${digits(ratio)}×`, isMet: ratio <= limit }
    return { what, beside, limit: `≤ ${Number(limit.toFixed(2))}×`, outcome }
  }

  const below = (
    what: string,
    limit: number,
    definition: string,
    size: RegExp,
    name: RegExp,
    say: (value: number) => string = duration,
  ): Target => {
    const value = engine(all(definition, size)[0], name)?.median
    const outcome = value === undefined ? undefined : { ours: say(value), measured: '', isMet: value <= limit }
    return { what, beside: '', limit: `≤ ${say(limit)}`, outcome }
  }

  /** Speed over the bytes of runs. TensorBoard's data server reads 544 MB of them in 0.34 s, without checksums: the limit is twice that. */
  const byteRate = (what: string, limit: number, name: RegExp): Target => {
    const result = all('tensorboard', /images/)[0]
    const median = engine(result, name)?.median
    const rate = median === undefined || result?.byteLength === undefined ? undefined : result.byteLength / median / 1e6
    const outcome =
      rate === undefined ? undefined : { ours: `${digits(rate)} GB/s`, measured: '', isMet: rate >= limit }
    return { what, beside: '', limit: `≥ ${limit} GB/s`, outcome }
  }

  /** The target of a whole process: its time beyond Node.js alone in the same run. */
  const overNode = (what: string, limitMs: number, size: RegExp): Target => {
    const result = all('cli', size)[0]
    const [whole, bare] = [/^ours$/, /^Node\.js alone$/].map(name => engine(result, name)?.median)
    const over = whole === undefined || bare === undefined ? undefined : whole - bare
    const say = (ms: number) => `${ms < 0 ? '−' : '+'} ${duration(Math.abs(ms))}`
    const outcome =
      over === undefined ? undefined : { ours: duration(whole!), measured: say(over), isMet: over <= limitMs }
    return { what, beside: 'Node.js alone', limit: `≤ ${say(limitMs)}`, outcome }
  }

  /** The time of a call, of a case whose records are calls. */
  const call = (what: string, limitUs: number, name: RegExp): Target => {
    const result = all('calls', /^many/)[0]
    const median = engine(result, name)?.median
    const each = median === undefined || result?.records === undefined ? undefined : median / result.records
    const outcome =
      each === undefined ? undefined : { ours: duration(each), measured: '', isMet: each * 1e3 <= limitUs }
    return { what, beside: '', limit: `≤ ${limitUs} µs`, outcome }
  }

  const crc = (size: string, limit: number) =>
    atLeast(`CRC-32C, ${size}`, 'C, 3-way `crc32q`', limit, 'crc32c', RegExp(`^${size}$`), /^C$/)
  const kernel = (set: string, size: string, beside: string, limit: number, name: RegExp) =>
    atLeast(`${set}, ${size}`, beside, limit, 'kernels', RegExp(`^${set}, ${size}$`), name)
  const [ours, floor, numpy, torch] = [/^ours/, /^the floor$/, /^numpy/, /^torch/]
  /** Reductions of a caller's array, which are bound by the copy into the core. Of several calls the worst counts. */
  const array = (call: string, names: string, shape: string, limit: number, was: number) => {
    const ratios = all('arrays', RegExp(`^${call}, (${names}) of ${shape}(,|$)`)).flatMap(result => {
      const copying = engine(result, /^copying/)
      return copying === undefined ? [] : [{ result, copies: 1 / copying.ratio }]
    })
    const worst = ratios.sort((a, b) => b.copies - a.copies)[0]
    const outcome = worst && {
      ours: speed(worst.result),
      measured: `${digits(worst.copies)}×`,
      isMet: worst.copies <= limit,
    }
    const what = `${call}, ${names.replaceAll('|', ', ')}, ${shape}`
    return { what, beside: 'copying alone', limit: `≤ ${limit}×; was ≥ ${was}× numpy`, outcome }
  }
  const arrayTargets = (): Target[] => {
    const [square, batch] = ['4096 × 4096', '32 × 64 × 56 × 56']
    return [
      array('along', 'sum|max', square, 2.3, 0.8),
      array('along', 'std|l2', square, 5, 0.8),
      array('along', 'sum|max', batch, 2.9, 0.8),
      array('along', 'std|l2', batch, 6.1, 0.8),
      array('reduce', 'min|max|sum', square, 2, 1),
      array('reduce', 'std|abs_mean|l2', square, 2.2, 3),
    ]
  }
  const checkpointTargets = (): Target[] => {
    const definition = 'checkpoint'
    const [all, few] = [/^all 18 of [\d.]+ GB of bfloat16$/, /^nan_count/]
    const [torchFile, dump] = [/ in other files$/, /^all 18 of a dump/]
    const [pair16, pair32] = [/^CPU.*bfloat16/, /^CPU.*float32/]
    return [
      atMost('2 GB of bfloat16 in safetensors, all 18, CPU an element', 'the floor', 1.4, definition, all, floor),
      restated(atLeast('—', 'numpy script', 6, definition, all, numpy), '8×'),
      restated(atMost('— `nan_count` and `abs_max`', 'the floor', 2.5, definition, few, floor), '1.4×'),
      atLeast('—', 'numpy script', 8, definition, few, numpy),
      atLeast('— all 18', 'as much of float32', 1, definition, /by dtype$/, /float32/),
      atLeast(
        '2 GB in a `.pt`, all 18, CPU an element',
        '`torch.load`, and reductions',
        5,
        definition,
        torchFile,
        torch,
      ),
      below('— peak memory', 150, definition, /^peak memory.*\.pt$/, ours, megabytes),
      restated(
        atMost('a dump of 10,000 `.pt`, all 18, CPU', 'reading them in plain JS', 4.5, definition, dump, /^plain JS/),
        '1.5×',
      ),
      below('`ls` of 70B in 30 shards, CPU', 300, definition, /^ls of 70B/, ours),
      below('— peak memory', 100, definition, /^peak memory, ls/, ours, megabytes),
      atMost('a run of 100 checkpoints opened, bytes read', 'its headers', 1.1, definition, /kB read/, /^the headers$/),
      below('`diff` of 2 GB of bfloat16 and others, CPU an element', 3, 'diff', pair16, ours, nanoseconds),
      atLeast('—', 'numpy script', 8, 'diff', pair16, numpy),
      below('— float32', 4, 'diff', pair32, ours, nanoseconds),
      atLeast('—', 'numpy script', 8, 'diff', pair32, numpy),
      below('— peak memory, bfloat16', 200, 'diff', /^peak memory.*bfloat16/, ours, megabytes),
      below('— peak memory, float32', 200, 'diff', /^peak memory.*float32/, ours, megabytes),
    ]
  }
  const [calls, js] = [/^numpy, a call each/, /^plain JS$/]

  return [
    crc('1 KiB', 0.3),
    crc('4 KiB', 0.55),
    crc('64 KiB', 0.85),
    crc('1 MiB', 0.85),
    crc('64 MiB', 1.2),
    atLeast('CRC-32C, 64 KiB and 1 MiB', '@node-rs/crc32', 3, 'crc32c', /^(64 KiB|1 MiB)$/, /node-rs/),
    restated(recordRate(all('crc32c', /records/)[0]), '30.0 M/s'),
    byteRate('runs of TensorBoard: names and steps, one thread', 3.2, /^ours, names/),
    byteRate('— scalars, all checksums verified', 3.2, /^ours, scalars/),
    kernel('all 18', 'float32 1 MiB', 'numpy, 18 calls', 10, calls),
    kernel('all 18', 'float32 64 MiB', 'numpy, 18 calls', 15, calls),
    kernel('all 18', 'float32 1 MiB', 'plain JS', 4, js),
    kernel('all 18', 'float32 1 MiB', 'C `-O3 -march=native`', 0.18, /^C$/),
    kernel('all 18', 'float64 1 MiB', 'numpy, 18 calls', 5, calls),
    kernel('mean and std', 'float32 1 MiB', 'numpy', 2, /^numpy/),
    kernel('mean and std', 'float32 64 MiB', 'numpy', 4, /^numpy/),
    kernel('min and max', 'float32 1 MiB', 'plain JS', 10, js),
    atLeast(
      'all 18, the slowest of the other dtypes',
      'plain JS',
      3,
      'moments',
      /^(?!float32|float64)\w+ 1 MiB(, all.*)?$/,
      js,
    ),
    ...arrayTargets(),
    atLeast('allclose, 1 MiB', 'numpy', 2.5, 'allclose', / 1 MiB$/, /^numpy/),
    restated(atLeast('allclose, 64 MiB', 'numpy', 5, 'allclose', / 64 MiB$/, /^numpy/), '8×'),
    restated(
      atMost('`scan large`, whole process', 'numpy script', 0.4, 'cli', /^scan of large/, /^numpy.* 1 process$/),
      '0.15×',
    ),
    restated(
      atMost(
        '`scan large`, whole process',
        '`read()` in C, 2 threads',
        9.6,
        'cli',
        /^scan of large/,
        /^C, only reading/,
      ),
      '5×',
    ),
    atMost('`scan many`, whole process', 'numpy script', 0.07, 'cli', /^scan of many/, /^numpy.* 1 process$/),
    atMost(
      '`diff` of `large` and an equal run, whole process',
      '`scan` of both',
      1 / 0.7,
      'diff',
      /equal$/,
      /scan of both/,
    ),
    atMost(
      '`diff` of `large` and another run, whole process',
      '`scan` of both',
      1 / 0.7,
      'diff',
      /differs$/,
      /scan of both/,
    ),
    atMost(
      '`diff` of `large` and another run, whole process',
      'numpy script',
      0.1,
      'diff',
      /differs$/,
      /^numpy.* 1 process$/,
    ),
    atLeast('a trial written, true checksums, tensors of 4 MiB', '`fs.writeSync`', 0.6, 'write', /4 MiB$/, /^fs/),
    atLeast('— of 40 KB', '`fs.writeSync`', 0.6, 'write', /40 KB$/, /^fs/),
    atMost('a training with the hook for TensorFlow.js', 'without', 1.1, 'capture', /784/, /^TensorFlow/),
    atMost('— steps of less than a millisecond', 'without', 1.1, 'capture', /^\d+ steps of 64/, /^TensorFlow/),
    restated(atMost('`scan many` to CSV, whole process', 'the floor', 5, 'floor', /^many.*csv$/, /^the floor$/), '3×'),
    restated(
      atMost('`scan many` to Parquet, whole process', 'the floor', 5, 'floor', /^many.*parquet$/, /^the floor$/),
      '2×',
    ),
    below('`trial.scan` of `many`, CPU a row as an object', 2.5, 'rows', /^many/, /objects, threads 2/, microseconds),
    below('— as columns', 0.8, 'rows', /^many/, /columns, threads 2/, microseconds),
    call('`tensor.value` of 1 KB, one by one', 40, /^ours, value$/),
    call('— 100 at once', 5, /^ours, value, 100 at once$/),
    call('`tensor.reductionValue` of 1 KB, one by one', 40, /^ours, reductionValue$/),
    call('— 100 at once', 5, /reductionValue, 100 at once$/),
    restated(atLeast('`large`, two threads', 'one thread', 1.35, 'scan', /^large/, /^ours, threads 1$/), '1.8×'),
    restated(below('open `large`, whole process', 200, 'open', /^large/, ours), '0.8× plain JS'),
    restated(atMost('open `many`, whole process', 'plain JS', 1.6, 'open', /^many/, /^plain JS$/), '0.8×'),
    restated(atMost('open `steps` (100,000 index files)', 'plain JS', 1, 'open', /^steps/, /^plain JS$/), '0.8×'),
    below('— longest block of the main thread', FLAT_THREAD_MS, 'open', /^steps/, /longest block/),
    restated(below('— from the cache', 900, 'open', /^steps/, /from the cache/), '600 ms'),
    restated(
      atMost(
        'tiny objects on S3, opened and scanned',
        'whole objects by the SDK',
        1.25,
        's3',
        /^tiny/,
        /^whole objects/,
      ),
      '1×',
    ),
    overNode('`--help`, first byte', 30, /^--help/),
    overNode('`scan` of a 1 MB trial, whole process', 90, /^scan of small/),
    restated(atMost('`scan large`, whole process', 'the floor', 3.1, 'floor', /^scan of large/, /^the floor$/), '1.4×'),
    restated(atMost('— eight times as large', 'the floor', 1.7, 'floor', /^scan of eightfold/, /^the floor$/), '1.25×'),
    checkedAtMost('— with payload checksums', 1.25, all('floor', /^scan of eightfold/)[0]),
    secondThread(all('floor', /^threads/)[0]),
    atMost(
      '20 rules in one pass, `large`, CPU',
      'reading once, and the kernels',
      1.3,
      'floor',
      /^CPU of 20 rules/,
      /^the floor$/,
    ),
    twentyRules('`large`', all('rules', /^large/)[0]),
    twentyRules('`many`', all('rules', /^many/)[0]),
    ...checkpointTargets(),
    below('`serve` of 1,000 runs, first page', 1000, 'view', /first page of 1,000 runs/, ours),
    below('— peak memory then', 400, 'view', /^peak memory, serve/, /first page$/, megabytes),
    below('— peak memory, all opened and judged', 400, 'view', /^peak memory, serve/, /judged$/, megabytes),
    below('`scan large`, peak memory', 300, 'cli', /^peak memory.* large/, /^ours/, megabytes),
    below('— ten times as large', 300, 'cli', /^peak memory.* tenfold/, /^ours/, megabytes),
  ]
}

/** A target with the measured bound in place of what was wanted; README.md says why. */
function restated(target: Target, was: string): Target {
  return { ...target, limit: `${target.limit}; was ${was}` }
}

function recordRate(result: Result | undefined): Target {
  const best = result?.engines.find(({ engine }) => engine.startsWith('ours, payloads'))
  const rate = result?.records === undefined || best === undefined ? undefined : result.records / best.median / 1e3
  const outcome = rate === undefined ? undefined : { ours: millions(rate), measured: '', isMet: rate >= RECORDS }
  return { what: 'CRC-32C, records of 100 B', beside: '', limit: `≥ ${millions(RECORDS)}`, outcome }
}

/** The first contender without checksums, another with them. */
function checkedAtMost(what: string, limit: number, result: Result | undefined): Target {
  const checked = result?.engines.find(({ engine }) => engine.endsWith('check full'))
  const outcome = checked && {
    ours: duration(checked.median),
    measured: `${digits(checked.ratio)}×`,
    isMet: checked.ratio <= limit,
  }
  return { what, beside: 'without', limit: `≤ ${limit}×`, outcome }
}

/** The gain from a second thread, relative to that of C. */
function secondThread(result: Result | undefined): Target {
  const engineOf = (name: RegExp) => result?.engines.find(({ engine }) => name.test(engine))
  const [oursOnOne, two, single] = [
    engineOf(/^ours, threads 1$/),
    engineOf(/^C, .*threads 2$/),
    engineOf(/^C, .*threads 1$/),
  ]
  const ratio = oursOnOne && two && single && oursOnOne.ratio / (single.ratio / two.ratio)
  const outcome =
    ratio === undefined
      ? undefined
      : { ours: `${digits(oursOnOne!.ratio)}×`, measured: `${digits(ratio)}×`, isMet: ratio >= 0.95 }
  return { what: '— a second thread', beside: 'one in C', limit: '≥ 0.95×', outcome }
}

/** Twenty rules in one pass are the first contender, beside the sum of the rules that are measured alone. */
function twentyRules(trial: string, result: Result | undefined): Target {
  const alone =
    result?.engines.filter(({ engine }) => /1 rule/.test(engine)).map(({ median }: Measured) => median) ?? []
  const ours = result?.engines[0]?.median
  const ratio = ours === undefined ? Number.NaN : ours / alone.reduce((sum, ms) => sum + ms, 0)
  const outcome =
    ours === undefined || alone.length === 0
      ? undefined
      : { ours: duration(ours), measured: `${digits(ratio)}×`, isMet: ratio <= RULES_AT_ONCE }
  return {
    what: `20 rules in one pass, ${trial}`,
    beside: 'six of them, one by one',
    limit: `≤ ${RULES_AT_ONCE}×; was 1.3× the costliest`,
    outcome,
  }
}

/** Our own figure: the first contender's. */
function speed({ byteLength, engines, definition, unit }: Result): string {
  const [{ median }] = engines as [Measured]
  if (unit === 'µs') return microseconds(median)
  if (unit === 'ns') return nanoseconds(median)
  if (unit === 'kB') return `${digits(median)} kB`
  const isProcess = definition === 'cli' || definition === 'scan'
  return byteLength === undefined || isProcess ? duration(median) : `${digits(byteLength / median / 1e6)} GB/s`
}

function megabytes(value: number): string {
  return `${Math.round(value)} MB`
}

function microseconds(value: number): string {
  return `${digits(value)} µs`
}

function nanoseconds(value: number): string {
  return `${digits(value)} ns`
}

function millions(value: number): string {
  return `${digits(value)} M/s`
}
