/** Lists of digests that Python makes with numpy and hashlib, as docs/checkpoints.md says. */

import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { objects, trialscan } from '../cli/run.js'
import { isRequired, ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'

const PYTHON = '/usr/bin/python3'
const hasNumpy = spawnSync(PYTHON, ['-c', 'import numpy']).status === 0 || isRequired('numpy')

/** The loop as it stands in the docs. */
const [, LOOP] = /^```python\n([\s\S]*?)^```$/m.exec(readFileSync(join(ROOT, 'docs/checkpoints.md'), 'utf8'))!

const WRITER = `
import hashlib, json, numpy, sys
random = numpy.random.RandomState(3)
arrays = {}
for name in ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128"]:
    array = random.standard_normal((7, 5, 3)) * 100
    arrays[name] = array.astype(name)
    arrays[name + ".fortran"] = numpy.asfortranarray(arrays[name])
    arrays[name + ".empty"] = arrays[name][:0]
    arrays[name + ".scalar"] = arrays[name][0, 0, 0]
arrays["large"] = random.standard_normal((1500, 3001))
arrays["large.fortran"] = numpy.asfortranarray(arrays["large"])
numpy.savez(sys.argv[1], **arrays)
${LOOP}`

it.runIf(hasNumpy)(
  'are those of its arrays',
  async () => {
    const scratch = scratchDirectory('digests-numpy')
    const [place, list] = [join(scratch, 'arrays.npz'), join(scratch, 'list.jsonl')]
    const text = execFileSync(PYTHON, ['-W', 'ignore', '-c', WRITER, place], { encoding: 'utf8' })
    const lines = objects(text)
    expect(lines.length).toBe(58)
    writeFileSync(list, text)
    const { code, stdout, stderr } = await trialscan('diff', place, '--digests', list, '--format', 'jsonl')
    expect([code, stderr, objects(stdout)]).toEqual([0, '', [{ divergence: null, compared: 58, equal: 58 }]])
  },
  300_000,
)
