/** A part of the page that can be shown anew when trials have grown. */

import type { ShownTrial } from '../trials.js'

export interface View {
  readonly element: HTMLElement
  /** Shows newer trials, and leaves alone what somebody has chosen. */
  update(trials: readonly ShownTrial[]): Promise<void>
}
