/** `trialscan show FILE`: what a file of torch or a pickle holds. */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { pickleStructure } from '#dist/index.js'
import { FIXTURES } from '../support/checkpoint-files.js'
import { bytesOf, call, dict, int, list, pickled, text } from '../support/pickles.js'
import { scratchDirectory } from '../support/scratch.js'
import { trialscan as cli } from './run.js'

const scratch = scratchDirectory('show-structure')

describe('trialscan show FILE', () => {
  it('prints what is no tensor, and the first of many tensors', async () => {
    const { stdout, code } = await cli('show', join(FIXTURES, 'torch/zip.pt'))
    expect(code).toBe(0)
    expect(stdout).toBe(`torch.save (ZIP)
names _codecs.encode, argparse.Namespace, numpy.core.multiarray.scalar, numpy.dtype
model:
  x.float32: float32 [5, 7]
  x.float16: float16 [5, 7]
  x.bfloat16: bfloat16 [5, 7]
  … 19 tensors more
step: 7
args: argparse.Namespace
  lr: 0.001
  name: "a"
big: "1180591620717411303424"
numpy: 2.5
list: 2 items
  0: float32 [2]
  1:
    deep: float32 [3]
`)
  })

  it('tells what torch.load would call', async () => {
    const { stdout } = await cli('show', join(FIXTURES, 'broken/evil.pt'))
    expect(stdout).toContain('loads posix.system: do not open this with torch.load\n')
    expect(stdout).toContain('x: posix.system\n  arguments: ["echo this must never run > must-not-exist"]\n')
  })

  it('is no longer than a screen, and --format json has all', async () => {
    const path = join(scratch, 'long.pkl')
    const entries = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`key${i}`, int(i)]))
    writeFileSync(path, pickled(dict(entries)))
    const { stdout } = await cli('show', path)
    const lines = stdout.split('\n')
    expect(lines.length).toBeLessThan(46)
    expect(lines.at(-2)).toBe('… and 460 lines more: --format json has all')
    const json = JSON.parse((await cli('show', path, '--format', 'json')).stdout) as {
      structure: Record<string, number>
    }
    expect(json).toMatchObject({ layout: 'pickle', foreign: [], dangerous: [] })
    expect(Object.keys(json.structure)).toHaveLength(500)
  })

  it('takes control characters out of what a file says', async () => {
    const path = join(scratch, 'escape.pkl')
    writeFileSync(path, pickled(dict({ 'a\u001b[31m': text('\u001b]0;owned\u0007') })))
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    expect((await cli('show', path)).stdout).not.toMatch(/[\u0000-\u0008\u001b]/)
  })

  it('refuses a directory, a file of something else, and formats of values', async () => {
    const directory = await cli('show', FIXTURES)
    expect(directory.code).not.toBe(0)
    expect(directory.stderr).toMatch(/directory/)
    const array = await cli('show', join(FIXTURES, 'base/model.safetensors'))
    expect(array.stderr).toMatch(/expected the name of a tensor after a file of safetensors, got none: trialscan ls /)
    const other = await cli('show', join(FIXTURES, 'expected/dcp.json'))
    expect(other.stderr).toMatch(/expected a file of torch\.save, got/)
    const format = await cli('show', join(FIXTURES, 'torch/zip.pt'), '--format', 'csv')
    expect(format.stderr).toMatch(/expected --format table or json where no tensor is named, got csv/)
    const cut = await cli('show', join(FIXTURES, 'broken/cut.pt'))
    expect(cut.stderr).toMatch(/cut off: its directory is missing/)
  })
})

describe('pickleStructure', () => {
  it('has JSON for what JSON has no word for', async () => {
    const path = join(scratch, 'values.pkl')
    const values = list(
      bytesOf([0x8a, 9, 0, 0, 0, 0, 0, 0, 0, 0, 64]),
      bytesOf([0x47, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0]),
      bytesOf([0x43, 2, 1, 2]),
      call('a', 'B', int(1)),
    )
    writeFileSync(path, pickled(values))
    expect((await pickleStructure(path)).structure).toEqual([
      '1180591620717411303424',
      'NaN',
      { bytes: 2 },
      { class: 'a.B', arguments: [1] },
    ])
  })

  it('reads legacy files and the metadata of distributed checkpoints', async () => {
    expect(await pickleStructure(join(FIXTURES, 'torch/legacy.pt'))).toMatchObject({ layout: 'legacy' })
    const metadata = await pickleStructure(join(FIXTURES, 'dcp/step-100/.metadata'))
    expect(metadata).toMatchObject({ layout: 'pickle', dangerous: [] })
  })

  it('leaves the file as it is', async () => {
    const path = join(FIXTURES, 'broken/evil.pt')
    const before = readFileSync(path)
    await pickleStructure(path)
    expect(readFileSync(path)).toEqual(before)
  })
})
