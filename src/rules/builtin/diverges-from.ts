/** DivergesFrom, a rule of trialscan's own: what `diff` reports of two runs, as a rule. */

import { builtin, type Judged, type Judgement } from '../base/builtin.js'
import type { Moment } from '../base/moment.js'
import { list, number } from '../parameters.js'

/** Fires at a step for the first tensor, in the order of execution, with elements that are not close to those of a reference run. */
export class DivergesFrom extends builtin({
  meaning: 'The training no longer does what the reference run did.',
  advice:
    'Start at the first step and tensor named here: what was computed before was the same. trialscan diff tells how they differ, and --noise whether it is more than rounding.',
  parameters: {
    collection_names: list(),
    tensor_regex: list(),
    rtol: number(1e-5, { min: 0 }),
    atol: number(1e-8, { min: 0 }),
  },
  onlyByName: 'it looks at the same tensors as SimilarAcrossRuns, and names the first of a step alone',
}) {
  readonly #tensors = this.selectGiven({ all: true, value: true })

  #hasCompared = false

  protected override check(): void {
    const { length } = this.otherTrials
    if (length !== 1)
      throw this.insufficient(`expected one other trial, the reference, got ${length === 0 ? 'none' : length}`)
  }

  protected override *examine(moment: Moment): Iterable<Judgement> {
    const [reference] = this.otherTrials
    const { rtol, atol } = this.parameters
    // A worker that the reference lacks is compared with its first worker.
    const namesake = reference!.workers().find(worker => worker === moment.worker)
    let hasDiverged = false
    for (const tensor of [...this.#tensors.at(moment)].sort((a, b) => a.place - b.place)) {
      const { name, worker } = tensor
      const twin = this.reqTensors.find(name, moment.step, reference, namesake)
      if (twin === undefined) continue
      this.#hasCompared = true
      const twinDifference = tensor.difference(twin, { rtol, atol })
      yield (): Judged => {
        if (hasDiverged) return false
        const difference = twinDifference.value
        if (difference !== null && difference.beyondCount === 0) return false
        hasDiverged = true
        if (difference === null) {
          return { tensor: name, worker, message: `the shape of ${name} differs from that of ${reference!.name}` }
        }
        const { beyondCount, count, maxAbsolute } = difference
        const apart = `the largest difference is ${maxAbsolute.toPrecision(3)}`
        const message =
          count === 1
            ? `${name} is not close to that of ${reference!.name}: the difference is ${maxAbsolute.toPrecision(3)}`
            : `${beyondCount} of the ${count} elements of ${name} are not close to those of ${reference!.name}: ${apart}`
        return { tensor: name, worker, value: maxAbsolute, message }
      }
    }
  }

  protected override lacking(): readonly string[] {
    if (this.#hasCompared) return []
    return [`tensors that both trials saved at the same global step; ${this.otherTrials[0]!.name} has none of them`]
  }
}
