/** A trial whose names mean harm to a page. */

import { join } from 'node:path'
import { safetensors, tensorOf, writeFile } from '../../fixtures/checkpoint-writer.js'
import { TrialWriter } from '../../fixtures/event-writer.js'

export const HOSTILE_NAMES = [
  '</script><script>document.title="harmed"</script>',
  '"><img src=x onerror="document.title=\'harmed\'">',
  "');document.title='harmed';//",
  '<!--<script>',
  'gradient/\u202egnp.exe',
  'weight\u0000\u001b[31m\n\u2028',
  '__proto__',
  'constructor',
  '&lt;b&gt;',
  `gradient/${'long'.repeat(1000)}`,
  'gradient/层.权重 ✓',
]

export function writeHostile(directory: string): void {
  const writer = new TrialWriter(directory)
  for (let step = 0; step < 4; step++) {
    const tensors = HOSTILE_NAMES.map((name, i) => ({
      name,
      dtype: 'float32' as const,
      shape: [3],
      values: [i, step, i === 2 ? Number.NaN : -1],
    }))
    writer.step({ step, tensors })
  }
  writer.end()
}

/** Two checkpoints whose names, metadata, configuration and log mean harm to a page. */
export function writeHostileCheckpoint(directory: string): void {
  const harm = HOSTILE_NAMES[1]!
  for (const step of [1, 2]) {
    const place = join(directory, `checkpoint-${step}`)
    const tensors = HOSTILE_NAMES.map((name, i) => tensorOf(name, 'F32', [2], [i, i === 2 ? Number.NaN : step]))
    writeFile(join(place, 'model.safetensors'), safetensors(tensors, { format: harm, [harm]: harm }))
    writeFile(join(place, 'config.json'), JSON.stringify({ architectures: [harm], torch_dtype: harm }))
    const log = [{ step, loss: 1 / step, [harm]: step }]
    writeFile(join(place, 'trainer_state.json'), JSON.stringify({ log_history: log }))
  }
}
