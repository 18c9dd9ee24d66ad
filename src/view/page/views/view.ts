/** A part of the page that can be updated when trials have grown. */

import type { ShownTrial } from '../trials.js'

export interface View {
  readonly element: HTMLElement
  /** Shows newer trials, and keeps the reader's choices. */
  update(trials: readonly ShownTrial[]): Promise<void>
}
