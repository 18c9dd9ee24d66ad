/** The long part of places.test.ts. */

import './places.test.js'
