/** The long part of check.test.ts. */

import './check.test.js'
