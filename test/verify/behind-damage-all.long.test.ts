/** The long part of behind-damage.test.ts. */

import './behind-damage.test.js'
