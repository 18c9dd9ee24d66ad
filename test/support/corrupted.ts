/** Copies of the plain trial in which something is wrong. */

import { copyTrial, corruptions, PLAIN_TRIAL } from '../../fixtures/corrupt.js'

/** @param name of the corruption @returns the copy */
export function corruptedCopy(name: string, copy: string): string {
  copyTrial(PLAIN_TRIAL, copy)
  corruptions.find(corruption => corruption.name === name)!.apply(copy)
  return copy
}
