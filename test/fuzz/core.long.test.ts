/** The long part of core.test.ts. */

import './core.test.js'
