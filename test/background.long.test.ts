/** The long part of background.test.ts. */

import './background.test.js'
