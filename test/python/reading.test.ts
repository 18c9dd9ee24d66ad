/** trialscan.py reads trials over the command line: tables, values, findings, pages, and errors that say what to do. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { trialscan } from '../cli/run.js'
import { askDuckDB, HAS_DUCKDB } from '../support/duckdb.js'
import { ROOT } from '../support/golden.js'
import { hasModule, hasPyarrow, PYARROW, python, TRIALSCAN_PY } from '../support/python.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('reading')
const TRIAL = 'fixtures/trials/mlp-vanishing'
const NAME = 'gradient/DeepSigmoid_hidden.1.bias'

/** What a script prints, as JSON. */
function answer(script: string, options: Parameters<typeof python>[1] = {}) {
  const { status, stdout, stderr } = python(
    `import json, trialscan\nTRIAL = ${JSON.stringify(TRIAL)}\n${script}`,
    options,
  )
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

const WITHOUT = 'import sys\nfor name in ["pandas", "pyarrow"]: sys.modules[name] = None\n'

it('trialscan python prints it', async () => {
  const { code, stdout } = await trialscan('python')
  expect([code, stdout]).toEqual([0, readFileSync(TRIALSCAN_PY, 'utf8')])
})

describe.runIf(hasModule('pandas'))('examples/notebook.ipynb', () => {
  it('has the outputs of its cells, which test/python/notebook.py writes', () => {
    const [notebook, written] = [join(ROOT, 'examples/notebook.ipynb'), join(scratch, 'notebook.ipynb')]
    const { status, stderr } = python('import runpy, sys; runpy.run_path(sys.argv.pop(1))', {
      args: [join(ROOT, 'test/python/notebook.py'), notebook, written],
    })
    expect([status, stderr]).toEqual([0, ''])
    expect(readFileSync(written, 'utf8')).toBe(readFileSync(notebook, 'utf8'))
  })

  it('is of nbformat 4.4', () => {
    const { cells, ...rest } = JSON.parse(readFileSync(join(ROOT, 'examples/notebook.ipynb'), 'utf8'))
    expect([rest.nbformat, rest.nbformat_minor, rest.metadata.kernelspec.language]).toEqual([4, 4, 'python'])
    for (const cell of cells) {
      const keys = [
        'cell_type',
        'metadata',
        'source',
        ...(cell.cell_type === 'code' ? ['execution_count', 'outputs'] : []),
      ]
      expect(Object.keys(cell).sort()).toEqual(keys.sort())
      expect(cell.cell_type === 'markdown' || cell.outputs.length > 0).toBe(true)
    }
  })
})

describe.runIf(hasModule('pandas'))('with pandas', () => {
  it('a scan is a DataFrame', () => {
    const [columns, shape, kind, sum] = answer(`
frame = trialscan.scan(TRIAL, tensor=["${NAME}", "nothing"], steps=range(0, 40), reductions=["mean", "abs_max"])
print(json.dumps([list(frame.columns), list(frame.shape), str(frame["mean"].dtype), float(frame["abs_max"].sum())]))`)
    expect(columns).toEqual(['tensor', 'step', 'mode', 'mode_step', 'worker', 'dtype', 'shape', 'mean', 'abs_max'])
    expect([shape[1], kind]).toEqual([9, 'float64'])
    expect(shape[0]).toBeGreaterThan(2)
    expect(sum).toBeGreaterThan(0)
  })

  it('findings are rows, and what was not judged is beside them', () => {
    const [rules, messages, missing, verdict] = answer(`
found = trialscan.check(TRIAL)
missing = [line["rule"] for line in found.attrs["not_judged"]]
print(json.dumps([sorted(set(found["rule"])), list(found["message"]), missing, found.attrs["verdict"]]))`)
    expect(verdict).toMatch(/^failed; 1 of 6 rules fired; /)
    expect(rules).toEqual(['VanishingGradient'])
    expect(messages[0]).toMatch(/^the mean of the absolute values of gradient/)
    expect(missing).toContain('DeadRelu')
  })

  it('differences are rows; of equal trials there are none', () => {
    const script = `
differences = [len(trialscan.diff(TRIAL, TRIAL)), len(trialscan.diff(TRIAL, "fixtures/trials/mlp-all-zero", all=True))]
print(json.dumps(differences))`
    const [none, some] = answer(script)
    expect(none).toBe(0)
    expect(some).toBeGreaterThan(0)
  })

  it('numbers that are not finite are numbers', () => {
    const script =
      'f = trialscan._framed([{"tensor": "NaN", "max": "Infinity", "mean": "NaN"}]); print(json.dumps([f["tensor"][0], str(f.dtypes["max"]), f["mean"].isna().all().item()]))'
    expect(answer(script)).toEqual(['NaN', 'float64', true])
  })
})

it('without pandas a table is a dict of lists', () => {
  const [columns, count, attrs] = answer(`${WITHOUT}
frame = trialscan.scan(TRIAL, collection="gradients", steps=0, reductions="mean")
found = trialscan.check(TRIAL)
print(json.dumps([list(frame), len(frame["mean"]), "not_judged" in found.attrs]))`)
  expect(columns).toContain('mean')
  expect(count).toBeGreaterThan(0)
  expect(attrs).toBe(true)
})

describe('with a stand-in for pyarrow', () => {
  const path = [join(ROOT, 'test/python/stand-in')]
  const SCRIPT = `
import pyarrow, sys
sys.modules["pandas"] = None
run, formats, types, made = trialscan._run, [], set(), pyarrow.table
trialscan._run = lambda command, trials, options: formats.append(options["format"]) or run(command, trials, options)
pyarrow.table = lambda columns: types.update(column.type for column in columns.values()) or made(columns)
`

  it.each([
    'scan(TRIAL, collection="gradients", steps=0, reductions=["mean", "abs_max"])',
    'scan(TRIAL, "fixtures/trials/mlp-all-zero", collection="gradients", steps=0, reductions="mean")',
    'diff(TRIAL, "fixtures/trials/mlp-all-zero")',
  ])('%s reads Arrow, and has the columns and rows that JSON Lines have', call => {
    const script = `${SCRIPT}
arrow = trialscan.${call}
sys.modules["pyarrow"] = None
plain = trialscan.${call}
names = ["step", "tensor", "worker", *sorted(plain)]
def rows(table): return sorted(([table[name][i] for name in names] for i in range(len(table["step"]))), key=lambda row: row[:3])
print(json.dumps([formats, sorted(types), sorted(arrow), sorted(plain), rows(arrow) == rows(plain), len(rows(plain))]))`
    const [formats, types, columns, plain, isEqual, count] = answer(script, { path })
    expect([formats, isEqual]).toEqual([['arrow', 'jsonl'], true])
    expect(types).toContain('string')
    expect(types).not.toContain('dictionary')
    // Of a diff, those of CSV.
    expect(columns).toEqual(call.startsWith('scan') ? plain : expect.arrayContaining(plain))
    expect(count).toBeGreaterThan(2)
  })
})

// pyarrow is no package of Debian 12, so CI lacks it: these are tests only where TRIALSCAN_PYARROW, or Python itself, has it.
const describeWithPyarrow = hasPyarrow() ? describe : () => {}

describeWithPyarrow('with pyarrow itself', () => {
  it.runIf(hasModule('pandas')).each(['scan', 'diff'])('%s has the columns and rows that JSON Lines have', command => {
    const script = `
import pandas, sys
def call():
    if "${command}" == "scan":
        return trialscan.scan(TRIAL, "fixtures/trials/dtypes", collection="gradients", reductions=["mean", "abs_max", "nan_count"])
    return trialscan.diff(TRIAL, "fixtures/trials/mlp-all-zero")
called = []
lines = trialscan._lines
trialscan._lines = lambda output: called.append(1) or lines(output)
arrow = call()
assert not called
sys.modules["pyarrow"] = None
plain = call()
assert called
order = ["step", "tensor", "kind"] if "${command}" == "diff" else []
if order:
    arrow, plain = (one.sort_values(order, ignore_index=True)[list(plain.columns)] for one in (arrow, plain))
for frame in (arrow, plain):
    for name in ("shape", "element", "largest"):
        if name in frame: frame[name] = [list(one) if hasattr(one, '__len__') else None for one in frame[name]]
pandas.testing.assert_frame_equal(arrow.where(arrow.notna(), None), plain.where(plain.notna(), None), check_dtype=False)
print(json.dumps(len(arrow)))`
    expect(answer(script, { path: [PYARROW] })).toBeGreaterThan(2)
  })

  it('without pandas they are lists', () => {
    const script = `
import sys
sys.modules["pandas"] = None
frame = trialscan.scan(TRIAL, steps=0, reductions="mean")
print(json.dumps([list(frame), frame["worker"][0]]))`
    const [columns, worker] = answer(script, { path: [PYARROW] })
    expect([columns.includes('mean'), columns.includes('error_code'), worker]).toEqual([true, false, 'worker_0'])
  })
})

it.runIf(hasModule('numpy'))('a value is an array', () => {
  const [kind, shape, last] = answer(`
import numpy
value = trialscan.value(TRIAL, "${NAME}", step=0)
same = numpy.array_equal(trialscan.value(TRIAL, "${NAME}"), trialscan.value(TRIAL, "${NAME}", step="last"))
print(json.dumps([str(value.dtype), list(value.shape), bool(same)]))`)
  expect([kind, shape.length, last]).toEqual(['float32', 1, true])
})

it('a report shows itself in a notebook, and text is what commands print', () => {
  const [head, page, text] = answer(`
page = trialscan.report(TRIAL, height=300)
print(json.dumps([page._repr_html_()[:16], "mlp-vanishing" in page.html, trialscan.text("check", TRIAL)]))`)
  expect([head, page]).toEqual(['<iframe srcdoc="', true])
  expect(text).toMatch(/^mlp-vanishing: VanishingGradient at step 0/)
})

describe('errors', () => {
  const failing = (script: string, env: Readonly<Record<string, string>> = {}) =>
    answer(
      `
try: ${script}
except trialscan.TrialscanError as error: print(json.dumps(str(error)))`,
      { env },
    )

  it('say how to get the command', () => {
    const said =
      /^there is no command nosuch: npm i -g trialscan \(it needs Node\.js 20\.20 or newer\), or name one in the environment, as TRIALSCAN="npx trialscan"$/
    expect(failing('trialscan.scan(TRIAL)', { TRIALSCAN: 'nosuch' })).toMatch(said)
    expect(failing('trialscan.scan(TRIAL)', { TRIALSCAN: ' ' })).toMatch(/^there is no command in TRIALSCAN: npm i -g/)
  })

  it('are those of the command', () => {
    expect(failing('trialscan.scan("nosuch")')).toMatch(/^trialscan: .*nosuch: no such file or directory/)
    expect(failing('trialscan.scan(TRIAL, nosuch=1)')).toContain('--nosuch')
    expect(failing('trialscan.value(TRIAL, "nosuch")')).toContain('nosuch')
  })

  it('notes are warnings', () => {
    const said = answer(`
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    trialscan._run("scan", (TRIAL,), {"stats": True})
print(json.dumps([str(one.message)[:40] for one in caught]))`)
    expect(said).toHaveLength(1)
  })
})

/** The blocks of docs/python.md that read the table of a scan. */
const [asked, , framed] = [
  ...readFileSync(join(ROOT, 'docs/python.md'), 'utf8').matchAll(/^```python\n([\s\S]*?)^```$/gm),
].map(([, code]) => code!)

async function written(): Promise<string> {
  const out = join(scratch, 'run.parquet')
  await trialscan('scan', TRIAL, '--reductions', 'mean,abs_max,nan_count', '--out', out)
  return out
}

it.runIf(HAS_DUCKDB)('the table of docs/python.md answers to its SQL', async () => {
  const [, query] = /duckdb\.sql\("(.*)"\)/.exec(asked!)!
  expect(await askDuckDB(query!.replace('run.parquet', await written()))).toHaveLength(5)
})

describeWithPyarrow('docs/python.md', () => {
  it.runIf(hasModule('pandas'))('has a table that is a frame of pandas', async () => {
    const script = framed!.replace('run.parquet', await written()).replace(/^print.*$/m, '')
    const { stdout } = python(`${script}\nprint(len(frame), str(frame["abs_max"].dtype))`, { path: [PYARROW] })
    expect(stdout).toMatch(/^\d+ float64\n$/)
  })
})

it('docs/python.md runs', () => {
  const text = readFileSync(join(ROOT, 'docs/python.md'), 'utf8')
  const [, code] = /^```python run\n([\s\S]*?)^```$/m.exec(text)!
  const { status, stderr } = python(code!.replaceAll('"runs/', '"fixtures/trials/'))
  expect([status, stderr]).toEqual([0, ''])
})
