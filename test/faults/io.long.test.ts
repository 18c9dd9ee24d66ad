/** The long part of io.test.ts. */

import './io.test.js'
