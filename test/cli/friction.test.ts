/** What a new user writes, and what is answered. */

import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import * as zlib from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { restText } from '#dist/cli/progress.js'
import { columns, widthOf } from '#dist/cli/terminal.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'
import { CLI, DTYPES, PLAIN, trialscan } from './run.js'

const MLP = join(ROOT, 'fixtures/trials/mlp-vanishing')
const scratch = scratchDirectory('friction')

function oneNumber(path: string, name: string): void {
  const writer = new TrialWriter(path)
  writer.step({ step: 0, mode: 'TRAIN', modeStep: 0, tensors: [{ name, dtype: 'float32', shape: [], values: [1] }] })
  writer.end()
}

describe('--out', () => {
  it('compresses where the name ends in .gz', async () => {
    const [plain, packed] = [join(scratch, 'x.csv'), join(scratch, 'x.csv.gz')]
    expect((await trialscan('scan', DTYPES, '--out', plain)).code).toBe(0)
    expect((await trialscan('scan', DTYPES, '--out', packed)).code).toBe(0)
    expect(zlib.gunzipSync(readFileSync(packed))).toEqual(readFileSync(plain))
    const json = join(scratch, 'x.json.gz')
    expect((await trialscan('ls', PLAIN, '--out', json)).code).toBe(0)
    expect(JSON.parse(zlib.gunzipSync(readFileSync(json)).toString())).toMatchObject({ name: 'plain' })
  })

  it('writes a .gz that --digests reads, and names one that is cut', async () => {
    const list = join(scratch, 'digests.jsonl.gz')
    const written = await trialscan('scan', MLP, '--reductions', 'crc32c', '--format', 'jsonl', '--out', list)
    expect(written.code).toBe(0)
    expect(await trialscan('diff', MLP, '--digests', list)).toMatchObject({ code: 0, stderr: '' })
    const cut = join(scratch, 'cut.jsonl.gz')
    const bytes = readFileSync(list)
    writeFileSync(cut, bytes.subarray(0, bytes.length >> 1))
    const { code, stderr } = await trialscan('diff', MLP, '--digests', cut)
    expect(code).toBe(3)
    expect(stderr).toContain(`--digests ${cut}: unexpected end of file`)
  })

  it('writes a .zst that --digests reads where Node.js can, and else says which can', async () => {
    const list = join(scratch, 'digests.jsonl.zst')
    const text = (await trialscan('scan', MLP, '--reductions', 'crc32c', '--format', 'jsonl')).stdout
    const compress = (zlib as { zstdCompressSync?: (bytes: string) => Buffer }).zstdCompressSync
    writeFileSync(list, compress?.(text) ?? text)
    for (const args of [['diff'], ['verify']] as const) {
      const { code, stderr } = await trialscan(...args, MLP, '--digests', list)
      if (compress) expect([code, stderr]).toEqual([0, ''])
      else expect([code, stderr]).toEqual([2, expect.stringMatching(/\.zst is read by Node\.js 22\.15 .*\.gz/)])
    }
  })

  it('compresses with zstd where Node.js can, and else says which can', async () => {
    const out = join(scratch, 'x.jsonl.zst')
    const { code, stderr } = await trialscan('scan', PLAIN, '--out', out)
    if ('zstdDecompressSync' in zlib) {
      const unpacked = (zlib.zstdDecompressSync as (bytes: Buffer) => Buffer)(readFileSync(out)).toString()
      expect(unpacked).toBe((await trialscan('scan', PLAIN, '--format', 'jsonl')).stdout)
    } else {
      expect([code, stderr]).toEqual([2, expect.stringMatching(/\.zst is written by Node\.js 22\.15 .*\.gz/)])
      expect(existsSync(out)).toBe(false)
    }
  })

  it.each(['x.png', 'x.xlsx', 'x.feather', 'x.gz', 'x.html', 'x.npz'])(
    '%s is refused with what is possible',
    async name => {
      const { code, stderr } = await trialscan('scan', PLAIN, '--out', join(scratch, name))
      expect([code, stderr]).toEqual([2, expect.stringMatching(/table, jsonl, csv, parquet or arrow.*\.gz or \.zst/)])
    },
  )

  it.each(['x.pdf', 'x.png', 'x.json'])('%s is no page', async name => {
    const { code, stderr } = await trialscan('report', PLAIN, '--out', join(scratch, name))
    expect([code, stderr]).toEqual([2, expect.stringContaining('expected a file name that ends in .html')])
  })

  it('parquet is not compressed once more', async () => {
    const { code, stderr } = await trialscan('scan', PLAIN, '--out', join(scratch, 'x.parquet.gz'))
    expect([code, stderr]).toEqual([2, expect.stringContaining('expected --out without .gz for parquet')])
  })
})

it.each<[string, string[], number, RegExp]>([
  ['scan', [MLP, '--mode-steps', '3'], 2, /expected --mode beside --mode-steps, since each of EVAL, TRAIN/],
  [
    'scan',
    [PLAIN, '--reductions', 'mean', 'max'],
    2,
    /got max: several reductions are joined by commas, --reductions mean,max\n/,
  ],
  ['scan', [PLAIN, '--reductions', 'p101'], 2, /from p0 to p100, got "p101"/],
  ['scan', [PLAIN, '--where', 'nan > 0'], 2, /no comparison with nan is true; write mean is nan, or nan_count > 0/],
  ['check', [join(PLAIN, 'index')], 5, /this is a part of one: name the directory above/],
  ['ls', [join(PLAIN, 'collections')], 5, /this is a part of one: name the directory above/],
  ['ls', [join(ROOT, 'package.json/x')], 3, /expected directories on the way to it, got a file that is named like one/],
  [
    'show',
    [MLP, 'CrossEntropyLoss_output_0', '--step', '-50'],
    5,
    /saved at 15 steps, so -50, counted from the end, is none of them/,
  ],
  [
    'show',
    [PLAIN],
    2,
    /expected the name of a tensor after the directory of a trial, got none: trialscan ls .* lists them/,
  ],
  ['verify', [PLAIN, '--fail-on', 'foo'], 2, /such as TruncatedRecord \(docs\/verify\.md has all\), got foo/],
  [
    'fleet',
    ['plan', PLAIN, '--out', 'nowhere', '--shards', '0'],
    2,
    /expected (--)?shards to be a whole number from 1/,
  ],
  ['value', [MLP, 'loss'], 2, /unknown command 'value'\nWhat is meant may be trialscan show TRIAL TENSOR\n/],
])('%s %j is told in the words of the command line', async (command, args, code, message) => {
  const outcome = await trialscan(command, ...args)
  expect([outcome.code, outcome.stderr]).toEqual([code, expect.stringMatching(message)])
})

it('a median is p50', async () => {
  const { stdout } = await trialscan('scan', PLAIN, '--reductions', 'median', '--tensor', 'loss', '--format', 'csv')
  expect(stdout).toMatch(/^[^\n]*,p50\n|^[^\n]*,p50,/)
})

it('help says a default once', async () => {
  const { stdout } = await trialscan('report', '--help')
  expect(stdout.match(/report\.html\)/g)).toHaveLength(1)
})

it('SQL without DuckDB says what installs it, in a clone, too', async () => {
  if (existsSync(join(ROOT, 'node_modules/@duckdb'))) return
  const { stderr } = await trialscan('sql', PLAIN, 'select 1')
  expect(stderr).toContain(
    'npm install @duckdb/node-api; in a clone of trialscan: npm install --no-save --save-dev @duckdb/node-api',
  )
})

it('ls has the steps of each tensor, and of many saved reductions their number', async () => {
  const { stdout } = await trialscan('ls', join(ROOT, 'fixtures/trials/cnn-raw-and-reductions'))
  expect(stdout).toMatch(/CNN_conv0\.weight +float32 +8x1x3x3 +3: 0 to 43 +2\.8 KB +4 reductions\n/)
})

it('a bar that waits for a training says so', () => {
  expect([restText(3, 3), restText(1, 3)]).toEqual(['waiting for the next', '2 to go'])
})

it('verify tells threads in words', async () => {
  const { stdout } = await trialscan('verify', PLAIN, '--threads', '0', '--format', 'table')
  expect(stdout).toMatch(/GB\/s, on one\s+thread\n/)
})

it('tables fit the terminal', () => {
  const rows = [
    ['0', `a/${'long/'.repeat(20)}name`, 'worker_0', 'values'],
    ['10', 'b', 'worker_0', 'values'],
  ]
  const lines = columns(rows, [0], 80).split('\n')
  expect(Math.max(...lines.map(widthOf))).toBe(80)
  expect(lines[0]).toMatch(/^ 0 {2}a\/long.*….*name {2}worker_0 {2}values$/)
  const below = columns([['a', ...Array.from({ length: 9 }, (_, i) => `number${i}`)]], [], 40)
  expect(below).toBe('a  number0  number1  number2  number3\n  number4  number5  number6  number7\n  number8\n')
})

it('tables of all commands fit a terminal of 80 columns', () => {
  const trials = ['cnn-raw-and-reductions', 'dtypes', 'mlp-vanishing', 'mlp-all-zero', 'workers-tf-devices']
  const [cnn, dtypes, vanishing, zero, devices] = trials.map(name => join(ROOT, 'fixtures/trials', name)) as [
    string,
    string,
    string,
    string,
    string,
  ]
  const commands = [
    ...[cnn, dtypes, vanishing, devices].flatMap(trial => [
      ['ls', trial],
      ['scan', trial, '--reductions', 'min,max,mean,std,l2,abs_max'],
    ]),
    ...['summary', 'check', 'nan', 'verify', 'scan'].map(command => [command, devices]),
    ['top', devices, '--by', 'abs_max'],
    ['diff', vanishing, zero],
    ['ls', ...trials.map(name => join(ROOT, 'fixtures/trials', name))],
    ['check', cnn, vanishing, devices],
  ]
  // Standard output as a terminal, which it is not in a test.
  const terminal = 'data:text/javascript,Object.assign(process.stdout,{isTTY:true,columns:80})'
  for (const args of commands) {
    const asked = ['--import', terminal, CLI, ...args, '--format', 'table']
    const { stdout } = spawnSync(process.execPath, asked, { encoding: 'utf8' })
    const lines = stripVTControlCharacters(stdout).split('\n')
    expect(lines.length, args.join(' ')).toBeGreaterThan(1)
    expect(
      lines.filter(line => widthOf(line) > 80),
      args.join(' '),
    ).toEqual([])
  }
})

it('a suggestion of two numbers needs a common word', async () => {
  const [a, b] = ['a', 'b'].map(name => join(scratch, name))
  for (const [path, name] of [
    [a, 'scalar/lr'],
    [b, 'hyperparameters/max_depth'],
  ] as const)
    oneNumber(path!, name)
  expect((await trialscan('diff', a!, b!)).stderr).not.toContain('--map {')
  rmSync(b!, { recursive: true })
  oneNumber(b!, 'optimizer/lr')
  expect((await trialscan('diff', a!, b!)).stderr).toContain('{ "scalar/lr": "optimizer/lr" }')
})
