/** Reads the head of an index file as the hook writes it, from bytes: the part that changes from file to file. */

import { MODES } from '../base/types.js'

const encoder = new TextEncoder()
const START = encoder.encode('{"meta": {"mode": "')
const MODE_NAMES = MODES.map(mode => encoder.encode(`${mode}", "mode_step": `))
const EVENT_FILE = encoder.encode(', "event_file_name": "events/')
const END = encoder.encode('.tfevents"}')
const STEP_DIGITS = 12
/** The limit of digits for exact numbers. */
const MAX_DIGITS = 15

/** Reads heads one after another. */
export class IndexHead {
  /** The last head's mode, as an index into MODES, and its mode step. */
  mode = 0
  modeStep = 0

  /**
   * @param bytes an index file
   * @param step the step in the file's name, like `worker`
   * @returns the end of the head; -1 if it has anything but the mode and the hook's event file for the step, in the hook's form
   */
  read(bytes: Uint8Array, step: number, worker: string): number {
    if (!isAt(bytes, 0, START)) return -1
    let at = START.length
    this.mode = MODE_NAMES.findIndex(name => isAt(bytes, at, name))
    if (this.mode < 0) return -1
    at += MODE_NAMES[this.mode]!.length
    const digits = at
    this.modeStep = 0
    for (; isDigit(bytes[at]!); at++) this.modeStep = this.modeStep * 10 + bytes[at]! - 0x30
    const count = at - digits
    // JSON has no leading zeros.
    if (count === 0 || count > MAX_DIGITS || (count > 1 && bytes[digits] === 0x30)) return -1
    if (!isAt(bytes, at, EVENT_FILE)) return -1
    at += EVENT_FILE.length
    const name = at + STEP_DIGITS + 1
    if (!isStepAt(bytes, at, step) || bytes[name - 1] !== 0x2f || !isStepAt(bytes, name, step)) return -1
    at = name + STEP_DIGITS
    if (bytes[at++] !== 0x5f) return -1
    for (let i = 0; i < worker.length; i++, at++) {
      const code = worker.charCodeAt(i)
      // JSON escapes all others.
      const isPlain = code >= 0x20 && code < 0x7f && code !== 0x22 && code !== 0x5c
      if (!isPlain || bytes[at] !== code) return -1
    }
    return isAt(bytes, at, END) ? at + END.length : -1
  }
}

function isAt(bytes: Uint8Array, at: number, expected: Uint8Array): boolean {
  for (let i = 0; i < expected.length; i++) if (bytes[at + i] !== expected[i]) return false
  return true
}

/** True if the twelve digits at a position are those of a step. */
function isStepAt(bytes: Uint8Array, at: number, step: number): boolean {
  let number = 0
  for (let i = at; i < at + STEP_DIGITS; i++) {
    if (!isDigit(bytes[i]!)) return false
    number = number * 10 + bytes[i]! - 0x30
  }
  return number === step
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39
}
