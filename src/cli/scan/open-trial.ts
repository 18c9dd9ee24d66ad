/** A trial opened for a command: what is worth knowing about it goes to stderr. */

import { createTrial, type TrialOptions } from '../../trial/open.js'
import type { Trial } from '../../trial/trial.js'
import { note } from '../terminal.js'

/** Notes that are told one by one. */
const MAX_NOTES = 20

export async function openTrial(path: string, options: TrialOptions): Promise<Trial> {
  const trial = await createTrial(path, options)
  const { notes } = trial
  for (const text of notes.slice(0, MAX_NOTES)) note(text)
  if (notes.length > MAX_NOTES) note(`and ${notes.length - MAX_NOTES} notes more`)
  return trial
}
