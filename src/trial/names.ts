/** Which tensors are meant, by name: collections, and options of `tensorNames`. */

import type { CollectionConfig } from '../format/collections.js'
import type { Mode } from '../types.js'

/** A named group of tensors. */
export interface Collection extends CollectionConfig {
  /** The members that were saved, sorted. Throws a UsageError if one of the patterns is one that is refused. */
  readonly members: readonly string[]
}

export interface TensorNamesOptions {
  /** Only tensors saved at that step: a global step for GLOBAL (the default mode), else a step of the mode. */
  readonly step?: number
  /** Only tensors saved in that mode. */
  readonly mode?: Mode
  /** Python patterns (strings) or JavaScript ones, matched anywhere in the name. Not together with `collection`. */
  readonly regex?: string | RegExp | readonly (string | RegExp)[]
  readonly collection?: string | Collection
}
