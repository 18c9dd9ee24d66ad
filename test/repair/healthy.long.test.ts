/** The long part of healthy.test.ts. */

import './healthy.test.js'
