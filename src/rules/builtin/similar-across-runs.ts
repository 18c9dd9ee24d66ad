/** SimilarAcrossRuns: see docs/rules.md. */

import { builtin, type Judgement } from '../base/builtin.js'
import type { Moment } from '../base/moment.js'
import { list, olderNameOf } from '../parameters.js'

/** One object, since a tolerance that is not the last one is checked. */
const EQUAL_NAN = { equalNan: true }

/** Despite its name, fires if a tensor differs (is not all close) between two trials at the same global step. */
export class SimilarAcrossRuns extends builtin({
  meaning: 'The two runs differ: what should be the same tensor is not.',
  advice: 'The first step and tensor named here are where the runs part: look at seeds, data order and versions.',
  parameters: {
    collection_names: list(),
    tensor_regex: list(),
    // The name of the parameter in Tornasole.
    include: olderNameOf('tensor_regex', list()),
  },
}) {
  readonly #tensors = this.selectGiven({ all: true, value: true })

  #hasCompared = false

  protected override check(): void {
    const { length } = this.otherTrials
    if (length !== 1)
      throw this.insufficient(`expected one other trial to compare with, got ${length === 0 ? 'none' : length}`)
  }

  protected override *examine(moment: Moment): Iterable<Judgement> {
    const [other] = this.otherTrials
    // A worker that the other trial lacks is compared with its first worker.
    const namesake = other!.workers().find(worker => worker === moment.worker)
    for (const tensor of this.#tensors.at(moment)) {
      const { name, worker } = tensor
      const twin = this.reqTensors.find(name, moment.step, other, namesake)
      if (twin === undefined) continue
      this.#hasCompared = true
      const isClose = tensor.allclose(twin, EQUAL_NAN)
      yield () => {
        return !isClose.value && { tensor: name, worker, message: `${name} differs from that of ${other!.name}` }
      }
    }
  }

  protected override lacking(): readonly string[] {
    if (this.#hasCompared) return []
    return [`tensors that both trials saved at the same global step; ${this.otherTrials[0]!.name} has none of them`]
  }
}
