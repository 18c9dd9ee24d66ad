/** `trialscan top`: against a sort of the whole scan, and what it says of rows that it leaves out. `scan --where`, too. */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { TopRows } from '#dist/cli/scan/top-rows.js'
import { createTrial, parseReductions, rowText } from '#dist/index.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { corruptedCopy } from '../support/corrupted.js'
import { fixtureTrial, fixtureTrials } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'
import { DTYPES, objects, PLAIN, trialscan } from './run.js'

const scratch = scratchDirectory('top')
const VANISHING = fixtureTrial('mlp-vanishing').directory

describe('the best rows', () => {
  const numbers = fc.oneof(
    fc.double(),
    fc.integer({ min: -3, max: 3 }),
    fc.bigInt({ min: 2n ** 63n - 2n, max: 2n ** 63n }),
    fc.constantFrom(Number.NaN, 2 ** 63, Number.POSITIVE_INFINITY),
  )

  /** As PostgreSQL sorts: NaN is larger than Infinity, and equal to itself. */
  const order = (a: number | bigint, b: number | bigint): number =>
    Number.isNaN(a) ? (Number.isNaN(b) ? 0 : 1) : Number.isNaN(b) ? -1 : a < b ? -1 : a > b ? 1 : 0

  it('are what a stable sort puts first', () => {
    fc.assert(
      fc.property(fc.array(numbers), fc.nat(12), fc.boolean(), (values, limit, isDescending) => {
        const top = new TopRows<number>(limit, isDescending ? 'descending' : 'ascending')
        for (const [i, value] of values.entries()) top.add(value, () => i)
        const sorted = [...values.keys()].sort((a, b) => (isDescending ? -1 : 1) * order(values[a]!, values[b]!))
        expect(top.sorted()).toEqual(sorted.slice(0, limit))
      }),
      { numRuns: 1_000 },
    )
  })

  it('are the only ones that an item is made of', () => {
    const top = new TopRows<number>(3, 'descending')
    let made = 0
    for (let value = 100_000; value > 0; value--) top.add(value, () => ++made)
    expect([made, top.sorted()]).toEqual([3, [1, 2, 3]])
  })
})

describe.each(fixtureTrials())('of $name', ({ directory }) => {
  it.each([
    ['abs_max', '--desc', 7],
    ['mean', '--asc', 1_000_000],
    ['zero_count', '--desc', 20],
  ])('%s %s are those that a sort of the whole scan puts first', async (name, direction, limit) => {
    const trial = await createTrial(directory)
    const rows: { value: number | bigint; line: string; order: number }[] = []
    const { line } = rowText.rowFormat('jsonl', parseReductions([name]))
    let without = 0
    for await (const row of trial.scan({ reductions: parseReductions([name]) })) {
      const value = rowText.reductionOf(row, parseReductions([name])[0]!)
      // The mean of nothing, which is NaN, is left out.
      const isOfNothing = Number.isNaN(value) && row.shape!.includes(0)
      if (!isOfNothing && (typeof value === 'number' || typeof value === 'bigint'))
        rows.push({ value, line: line(row), order: rows.length })
      else without++
    }
    const rank = (value: number | bigint) => (Number.isNaN(value) ? 1 : 0)
    const sign = direction === '--desc' ? -1 : 1
    rows.sort(({ value: a, order: i }, { value: b, order: j }) => {
      const order = rank(a) - rank(b) || (a < b ? -1 : a > b ? 1 : 0)
      return sign * order || i - j
    })
    const { code, stdout, stderr } = await trialscan('top', directory, '--by', name, direction, '-n', String(limit))
    const expected = rows.slice(0, limit).map(({ line }) => {
      const { dtype: _, shape: __, saved: ___, ...others } = objects(line)[0]!
      return others
    })
    expect(objects(stdout)).toEqual(expected)
    expect(code).toBe(rows.length === 0 ? 5 : 0)
    if (without > 0) expect(stderr).toContain(`without ${name} `)
    else expect(stderr).not.toContain('without')
  })
})

describe('--by', () => {
  it('sorts by places, too, and prints the largest first unless told otherwise', async () => {
    const tops = (...args: string[]) => trialscan('top', PLAIN, '-n', '1', ...args)
    const [largest, same, smallest] = await Promise.all([
      tops('--by', 'step'),
      tops('--by', 'STEP', '--desc'),
      tops('--by', 'step', '--asc'),
    ])
    expect(largest.stdout).toBe(same.stdout)
    const steps = (await createTrial(PLAIN)).steps({ showIncompleteSteps: true })
    expect(objects(largest.stdout)[0]!.step).toBe(steps.at(-1))
    expect(objects(smallest.stdout)[0]!.step).toBe(steps[0])
  })

  it('tells 64-bit integers apart that are one float64', async () => {
    const directory = join(scratch, 'int64')
    const writer = new TrialWriter(directory)
    const values = [2n ** 62n, 2n ** 62n + 2n, 2n ** 62n + 1n]
    const tensors = values.map((value, i) => ({ name: `t${i}`, dtype: 'int64', shape: [1], values: [value] }) as const)
    writer.step({ step: 0, tensors })
    writer.end()
    const { stdout } = await trialscan('top', directory, '--by', 'max', '--where', 'max > 4611686018427387904')
    expect(stdout.match(/"max":\d+/g)).toEqual(['"max":4611686018427387906', '"max":4611686018427387905'])
  })

  it('says how many rows are NaN, and where they stand', async () => {
    const largest = await trialscan('top', DTYPES, '--by', 'max', '-n', '7')
    const numbers = objects(largest.stdout).map(({ max }) => max)
    expect(numbers).toEqual([...Array(6).fill('NaN'), 'Infinity'])
    expect(largest.stderr).toContain('of 6 rows max is NaN, which counts as larger than any number and comes first')
    const smallest = await trialscan('top', DTYPES, '--by', 'max', '--asc', '-n', '1000')
    expect(
      objects(smallest.stdout)
        .slice(-6)
        .map(({ max }) => max),
    ).toEqual(Array(6).fill('NaN'))
    expect(smallest.stderr).toContain('comes last')
    const [, advice] = /--where '([^']+)' leaves them out/.exec(largest.stderr)!
    const others = await trialscan('top', DTYPES, '--by', 'max', '-n', '7', '--where', advice!)
    expect(objects(others.stdout)[0]).toMatchObject({ max: 'Infinity' })
    expect(others.stderr).not.toContain('NaN')
  })

  it('counts the rows without the number, of which strings and complex numbers are no errors', async () => {
    const { code, stderr } = await trialscan('top', DTYPES, '--by', 'max')
    let without = 0
    for await (const { dtype } of (await createTrial(DTYPES)).scan({ reductions: [] })) {
      if (dtype === 'string' || dtype?.startsWith('complex')) without++
    }
    expect(without).toBeGreaterThan(3)
    expect([code, stderr]).toEqual([0, expect.stringContaining(`${without} rows without max are left out`)])
    const strings = await trialscan('top', DTYPES, '--by', 'max', '--where', "dtype = 'string'")
    expect([strings.code, strings.stdout]).toEqual([5, ''])
    expect(strings.stderr).toContain('3 rows without max are left out')
  })
})

describe('--where', () => {
  it('alone prints the first rows that match, in the order of the scan, and counts all', async () => {
    const all = objects((await trialscan('scan', VANISHING, '--reductions', 'abs_max')).stdout)
    const matching = all.filter(({ abs_max }) => (abs_max as number) > 1)
    expect(matching.length).toBeGreaterThan(3)
    const { code, stdout, stderr } = await trialscan('top', VANISHING, '--where', 'abs_max > 1', '-n', '3')
    expect(code).toBe(0)
    const places = (rows: Record<string, unknown>[]) => rows.map(({ tensor, step, abs_max }) => [tensor, step, abs_max])
    expect(places(objects(stdout))).toEqual(places(matching.slice(0, 3)))
    const count = (number: number) => number.toLocaleString('en-US')
    expect(stderr).toBe(`trialscan: ${count(matching.length)} of ${count(all.length)} rows match; 3 are shown\n`)
    const none = await trialscan('top', VANISHING, '--where', 'abs_max > 1', '-n', '0')
    expect([none.code, none.stdout]).toEqual([0, ''])
    expect(none.stderr).toContain('rows match; 0 are shown')
  })

  it('that nothing is true for is an answer', async () => {
    const { code, stdout, stderr } = await trialscan('top', PLAIN, '--where', 'nan_count > 0')
    expect([code, stdout]).toEqual([0, ''])
    expect(stderr).toMatch(/^trialscan: 0 of \d+ rows match\n$/)
  })

  it('and --by', async () => {
    const args = ['--by', 'l2', '--where', "tensor like 'gradient/%' and mode = 'TRAIN'", '--format', 'csv']
    const { stdout } = await trialscan('top', VANISHING, ...args, '-n', '4')
    const [head, ...rows] = stdout.trimEnd().split('\n')
    expect(head).toBe('tensor,step,mode,mode_step,worker,l2')
    const all = objects((await trialscan('scan', VANISHING, '--tensor', '^gradient/', '--mode', 'TRAIN')).stdout)
    const largest = all.map(({ l2 }) => l2 as number).sort((a, b) => b - a)
    expect(rows.map(row => Number(row.split(',').at(-1)))).toEqual(largest.slice(0, 4))
  })

  it('takes part in a scan, whose rows and columns stay as they are', async () => {
    const { max } = Math
    for (const [reductions, format] of [
      [['--reductions', 'mean,min'], 'jsonl'],
      [['--reductions', 'mean,min'], 'csv'],
      [[], 'jsonl'],
      [[], 'table'],
    ] as const) {
      const args = ['scan', VANISHING, ...reductions, '--format', format]
      const whole = (await trialscan(...args)).stdout.split('\n')
      const filtered = await trialscan(...args, '--where', "p50 < 0 and tensor not like '%bias'")
      const meant = objects((await trialscan('scan', VANISHING, '--reductions', 'p50')).stdout).map(
        ({ p50, tensor }) => (p50 as number) < 0 && !(tensor as string).endsWith('bias'),
      )
      const head = max(0, whole.length - 1 - meant.length)
      expect(meant.filter(Boolean).length).toBeGreaterThan(10)
      expect(filtered.stdout.split('\n')).toEqual(whole.filter((_, i) => i < head || (meant[i - head] ?? true)))
      expect(filtered.stderr).toContain(`${meant.filter(Boolean).length} of ${meant.length} rows match`)
      expect(filtered.code).toBe(0)
    }
  })

  it('makes errors of no dtype that lacks what nobody has named', async () => {
    const plain = await trialscan('scan', DTYPES, '--where', 'max > 1e30 or dtype = "complex64" or nan_count is null')
    expect([plain.code, plain.stdout]).toEqual([0, expect.stringContaining('"complex64"')])
    const named = await trialscan('scan', DTYPES, '--where', 'dtype = "complex64"', '--reductions', 'max')
    expect([named.code, named.stdout]).toEqual([4, expect.stringContaining('"code":"ReductionUndefined"')])
  })
})

describe('what is printed', () => {
  const columns = 'mode,mode_step,worker,dtype,shape,max,mean,abs_l2,histogram:3,sketch,p50'
  const reductions = 'max,mean,abs_l2,histogram:3,sketch,p50'
  const every = ['top', DTYPES, '--where', 'step >= 0', '-n', '100000', '--columns']

  it('is written in jsonl as scan writes it', async () => {
    const top = await trialscan(...every, columns)
    const scan = await trialscan('scan', DTYPES, '--reductions', reductions)
    const plain = scan.stdout.replaceAll(/,"error":\{.*\}\}$/gm, '}')
    expect(top.stdout).toBe(plain)
    expect(top.stdout).toContain('"sketch":{"count"')
  })

  it('is written in csv as scan writes it', async () => {
    const top = await trialscan(...every, columns, '--format', 'csv')
    const scan = await trialscan('scan', DTYPES, '--reductions', reductions, '--format', 'csv')
    expect(top.stdout).toBe(scan.stdout.replaceAll(/,(saved|true|false),[^,\n]*,("[^"]*"|[^,"\n]*)$/gm, ''))
  })

  it('is in a table the place that rows differ in, and short numbers', async () => {
    const one = await trialscan('top', PLAIN, '--by', 'abs_mean', '-n', '2', '--format', 'table')
    expect(one.stdout.split('\n')[0]!.split(/ +/)).toEqual(['tensor', 'step', 'mode', 'mode_step', 'abs_mean'])
    const { directory } = fixtureTrial('workers-4')
    const four = await trialscan('top', directory, '--by', 'abs_mean', '-n', '3', '--format', 'table')
    const [head, ...rows] = four.stdout.trimEnd().split('\n')
    expect(head).toMatch(/worker +abs_mean$/)
    expect(rows).toHaveLength(3)
    for (const row of rows)
      expect([row.length, row]).toEqual([head!.length, expect.stringMatching(/worker_\d .* [\d.e+-]{1,12}$/)])
    const own = await trialscan(
      'top',
      DTYPES,
      '--by',
      'min',
      '-n',
      '8',
      '--columns',
      'step,min,shape',
      '--format',
      'table',
    )
    expect(own.stdout.split('\n')[0]!.split(/ +/)).toEqual(['tensor', 'step', 'min', 'shape'])
    expect(own.stdout).toMatch(/^edge\/nan +0 +NaN +3$/m)
    expect(own.stdout).toMatch(/ scalar$| \d+(x\d+)*$/m)
  })

  it('goes to a file, whose name says the format', async () => {
    const out = join(scratch, 'top.csv')
    const { code, stdout } = await trialscan('top', PLAIN, '--by', 'mean', '--out', out)
    expect([code, stdout]).toEqual([0, ''])
    expect(readFileSync(out, 'utf8')).toBe((await trialscan('top', PLAIN, '--by', 'mean', '--format', 'csv')).stdout)
  })

  it('is the same with any number of threads', async () => {
    const [none, two] = await Promise.all(
      ['0', '2'].map(threads => trialscan('top', VANISHING, '--by', 'std', '-n', '50', '--threads', threads)),
    )
    expect(none!.stdout).toBe(two!.stdout)
    expect(objects(none!.stdout)).toHaveLength(50)
  })
})

describe('what is wrong', () => {
  it.each([
    ['neither', /expected --by or --where, got neither/, []],
    ['an order of nothing', /expected --by beside --asc/, ['--where', 'step = 1', '--asc']],
    ['both orders', /'--desc' cannot be used with option '--asc'/, ['--by', 'max', '--asc', '--desc']],
    ['a text to rank by', /expected --by to name a column of numbers, got tensor/, ['--by', 'tensor']],
    ['a sketch to rank by', /expected --by to name a column of numbers, got sketch/, ['--by', 'sketch']],
    ['an unknown number', /"abs_mxa"; did you mean abs_max\?/, ['--by', 'abs_mxa']],
    ['an unknown column', /"wroker"; did you mean worker\?/, ['--by', 'max', '--columns', 'mean,wroker']],
    [
      'a bad expression',
      /at character 6 of "step >", got|at character 7 of "step >", got the end/,
      ['--where', 'step >'],
    ],
    ['a bad limit', /'-1' is invalid|'x' is invalid/, ['--by', 'max', '-n', 'x']],
  ])('%s', async (_, message, args) => {
    const { code, stdout, stderr } = await trialscan('top', join(scratch, 'nowhere'), ...args)
    // It is told before the trial is looked for.
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringMatching(message)])
    expect(stderr).toContain('See trialscan top --help.')
  })

  it('in the trial is told at the end, and all else is printed', async () => {
    const damaged = corruptedCopy('unknown dtype', join(scratch, 'damaged'))
    const scan = await trialscan('scan', damaged, '--reductions', 'abs_max')
    const whole = objects(scan.stdout).filter(row => !('error' in row))
    const ranked = whole.filter(row => 'abs_max' in row)
    const { code, stdout, stderr } = await trialscan('top', damaged, '--by', 'abs_max', '-n', '1000')
    expect(code).toBe(4)
    expect(objects(stdout)).toHaveLength(ranked.length)
    expect(stderr).toBe(`trialscan: ${whole.length - ranked.length} rows without abs_max are left out\n${scan.stderr}`)
    const out = join(scratch, 'failed.jsonl')
    const failed = await trialscan('top', damaged, '--where', 'error_code is not null', '--out', out)
    expect(failed.code).toBe(4)
    expect(existsSync(out)).toBe(true)
    const errors = objects(readFileSync(out, 'utf8'))
    expect(errors).toHaveLength(objects(scan.stdout).length - whole.length)
    for (const row of errors) expect((row.error as { code: string }).code).toBe(row.error_code)
    const table = await trialscan('top', damaged, '--where', 'dtype is null', '--format', 'table')
    expect(table.stdout).toContain(`${errors[0]!.error_code}: `)
  })

  it('in what is asked for is told as scan tells it', async () => {
    for (const args of [
      ['--tensor', 'nothing'],
      ['--steps', '900:'],
    ]) {
      const scan = await trialscan('scan', PLAIN, ...args)
      expect(await trialscan('top', PLAIN, '--by', 'max', ...args)).toEqual(scan)
      expect(scan.code).toBe(5)
    }
  })
})
