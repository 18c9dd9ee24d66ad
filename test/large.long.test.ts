/** The long part of large.test.ts. */

import './large.test.js'
