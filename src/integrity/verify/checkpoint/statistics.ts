/** Holds tensors against statistics that their writer saved beside them. */

import type { ReductionName } from '../../../base/types.js'
import { isNarrowFloat } from '../../../core/dtype.js'
import type { SavedStatistics } from '../../../scan/catalog/checkpoint/checkpoint-files.js'
import { reductionOf, type ScanRow } from '../../../scan/job/row.js'
import type { Findings } from '../findings.js'
import type { RowCheck } from '../row-checks.js'

export class StatisticsCheck implements RowCheck {
  readonly reductions
  readonly #saved: ReadonlyMap<string, SavedStatistics>
  readonly #findings: Findings

  constructor(saved: readonly SavedStatistics[], findings: Findings) {
    this.#saved = new Map(
      saved.map(statistic => [`${statistic.step} ${statistic.worker} ${statistic.tensor}`, statistic]),
    )
    this.#findings = findings
    this.reductions = saved.length === 0 ? [] : (['max', 'min', 'mean', 'l2', 'abs_mean'] as const)
  }

  check(row: ScanRow): void {
    const saved = this.#saved.get(`${row.step} ${row.worker} ${row.tensor}`)
    for (const [name, value] of saved?.statistics ?? []) {
      const computed = Number(reductionOf(row, name))
      if (isPlausible(name, value, computed, row)) continue
      const { file, start: offset, tensor, step } = saved!
      const lost = 'which of them is right'
      const texts = {
        expected: `${name} ${value}, as it was saved beside the elements`,
        found: `${computed} of them`,
        lost,
      }
      this.#findings.tell('problem', 'ReductionMismatch', file, () => ({ offset, tensor, step, ...texts }))
    }
  }
}

/** True if a saved statistic may be that of the elements: its writer computed in float32, or in the tensor's own type. */
function isPlausible(name: ReductionName, value: number, computed: number, row: ScanRow): boolean {
  const { dtype } = row
  // Of complex numbers, that of their absolute values was saved. Of a tensor that was not read, nothing is known.
  if (dtype === null || dtype.startsWith('complex') || row.error !== undefined) return true
  if (value === computed || Object.is(value, computed)) return true
  // The norm of a scalar is saved as the scalar itself.
  if (name === 'l2' && Math.abs(value) === computed) return true
  const isNarrow = isNarrowFloat(dtype)
  if (!Number.isFinite(value) || !Number.isFinite(computed)) {
    // A sum of numbers, or of their squares, may have left the range of the type.
    const largest = Number(reductionOf(row, 'l2'))
    return Number.isFinite(computed) && largest > (name === 'max' || name === 'min' ? 3.4e38 : isNarrow ? 255 : 1e18)
  }
  const difference = Math.abs(value - computed)
  if (name === 'max' || name === 'min') return difference <= 1e-6 * Math.abs(computed) + 1e-37
  const scale = name === 'mean' ? Number(reductionOf(row, 'abs_mean')) : computed
  return difference <= (isNarrow ? 2e-2 : 1e-3) * scale + 1e-37
}
