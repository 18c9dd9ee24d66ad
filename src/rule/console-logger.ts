/** Where rules log unless they are told otherwise. */

import { type Logger, silent } from './finding.js'

/** On Node.js the console, as with smdebug, but for what is only for debugging. */
export const defaultLogger: Logger =
  'getBuiltinModule' in (globalThis.process ?? {})
    ? {
        debug: () => {},
        info: message => console.info(message),
        warn: message => console.warn(message),
        error: message => console.error(message),
      }
    : silent
