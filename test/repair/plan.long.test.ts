/** The long part of plan.test.ts. */

import './plan.test.js'
