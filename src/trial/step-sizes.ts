/** The size of a scan, step by step, from the index alone. */

import { checkOptions } from '../base/options.js'
import type { GlobalStep } from '../base/types.js'
import { SCAN_OPTIONS, type ScanOptions, selectItems } from './scan-selection.js'
import { stateOf, type Trial } from './trial.js'

/** The size of a step in a scan. */
export interface StepSize {
  readonly step: GlobalStep
  /** The number of rows: one per tensor and worker. */
  readonly rows: number
  /** The number of index files, one for each worker. */
  readonly files: number
  /** The number of bytes of the records. */
  readonly bytes: number
}

/** The steps for which a scan has rows, ascending. Nothing is read. @throws what `trial.scan` throws */
export function stepSizes(trial: Trial, options: ScanOptions): readonly StepSize[] {
  const settings = checkOptions('stepSizes', SCAN_OPTIONS, options)
  const sizes: { step: GlobalStep; rows: number; files: number; bytes: number }[] = []
  let latest: unknown = null
  for (const { workerStep, saved } of selectItems(stateOf(trial), trial.name, settings)) {
    let last = sizes.at(-1)
    if (last?.step !== workerStep.step) {
      last = { step: workerStep.step, rows: 0, files: 0, bytes: 0 }
      sizes.push(last)
    }
    last.rows++
    if (workerStep !== latest) last.files++
    latest = workerStep
    if (saved === null) continue
    last.bytes += saved.value?.byteLength ?? 0
    for (const location of saved.reductions.values()) last.bytes += location.byteLength
  }
  return sizes
}
