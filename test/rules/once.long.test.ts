/** The long part of once.test.ts. */

import './once.test.js'
