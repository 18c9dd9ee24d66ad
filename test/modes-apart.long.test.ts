/** The long part of modes-apart.test.ts. */

import './modes-apart.test.js'
