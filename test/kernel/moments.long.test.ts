/** The long part of moments.test.ts. */

import './moments.test.js'
