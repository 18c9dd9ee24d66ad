/** The long part of signals.test.ts. */

import './signals.test.js'
