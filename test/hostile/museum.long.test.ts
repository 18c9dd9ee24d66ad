/** The long part of museum.test.ts. */

import './museum.test.js'
