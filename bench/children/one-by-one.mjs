// Scans trials one after the other, as a program would: opens each, writes its rows as CSV, closes it.
//   node one-by-one.mjs LIBRARY DIR OUT   all trials in DIR, in the order of their names
import { closeSync, openSync, readdirSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const [library, dir, out] = process.argv.slice(2)
const { createTrial } = await import(library)
const file = openSync(out, 'w')
let isFirst = true
for (const name of readdirSync(dir).sort()) {
  const trial = await createTrial(join(dir, name), { refresh: 'manual' })
  let isHead = true
  for await (const lines of trial.scan({ reductions: 'all' }).lines('csv', trial.path)) {
    if (isFirst || !isHead) writeSync(file, lines)
    isHead = false
  }
  isFirst = false
  await trial.close()
}
closeSync(file)
