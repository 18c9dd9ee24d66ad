/** Names that Tornasole gave to calls which smdebug renamed: for those who come with old scripts. */

import { expectNoOptions } from '../base/options.js'
import type { Mode } from '../base/types.js'
import type { TensorNamesOptions } from './names.js'

/** A trial's methods under their Tornasole names; each calls its current counterpart. */
export abstract class TornasoleNames {
  abstract tensorNames(options?: TensorNamesOptions): string[]
  abstract steps(options?: { mode?: Mode; showIncompleteSteps?: boolean }): number[]

  /** @deprecated Use `tensorNames()`. */
  tensors(): string[]
  tensors(...given: unknown[]): string[] {
    expectNoOptions('trial.tensors', given, '; write trial.tensorNames({ … })')
    return this.tensorNames()
  }

  /** @deprecated Use `steps({ mode })`. */
  availableSteps(mode: Mode = 'GLOBAL'): number[] {
    return this.steps({ mode })
  }

  /** @deprecated Use `tensorNames({ regex })`. */
  tensorsMatchingRegex(regex: NonNullable<TensorNamesOptions['regex']>): string[] {
    return this.tensorNames({ regex })
  }

  /** @deprecated Use `tensorNames({ collection })`. */
  tensorsInCollection(collection: NonNullable<TensorNamesOptions['collection']>): string[] {
    return this.tensorNames({ collection })
  }
}
