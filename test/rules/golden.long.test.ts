/** The long part of golden.test.ts. */

import './golden.test.js'
