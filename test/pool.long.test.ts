/** The long part of pool.test.ts. */

import './pool.test.js'
