/** The long part of walk.test.ts. */

import './walk.test.js'
