/** smdebug's own writer, in a Python of its own (bench/peers/smdebug_writer.py). */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Answerer } from '../processes.js'

export const NAME = 'smdebug'

const script = fileURLToPath(new URL('../peers/smdebug_writer.py', import.meta.url))
const source = process.env.SMDEBUG ?? ''
const env = { PYTHONPATH: source }

/** A Python that has what it needs. */
const python =
  source === ''
    ? undefined
    : ['/usr/bin/python3', 'python3'].find(name => {
        return spawnSync(name, [script], { env: { ...process.env, ...env }, input: '' }).status === 0
      })

if (source === '') console.log("skipped: smdebug's writer; export SMDEBUG=the path of its source")
else if (python === undefined) console.log(`skipped: smdebug's writer; ${script} says what it needs`)

let child: Answerer | undefined

/** Writes a trial of float32 tensors. Answers with the time it took, in milliseconds. */
type Write = (place: string, steps: number, tensors: number, elements: number) => Promise<number>

/** One, where there is smdebug. */
export const writers: readonly Write[] =
  python === undefined
    ? []
    : [
        async (...request) => {
          child ??= new Answerer([python, script], env)
          return Number((await child.ask(...request))[0])
        },
      ]
