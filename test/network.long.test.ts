/** The long part of network.test.ts. */

import './network.test.js'
