/** The long part of steps.test.ts. */

import './steps.test.js'
