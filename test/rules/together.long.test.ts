/** The long part of together.test.ts. */

import './together.test.js'
