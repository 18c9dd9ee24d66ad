/** The long part of fuzz.test.ts. */

import './fuzz.test.js'
