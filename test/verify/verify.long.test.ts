/** The long part of verify.test.ts. */

import './verify.test.js'
