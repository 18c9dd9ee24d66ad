/** The long part of targets.test.ts. */

import './targets.test.js'
