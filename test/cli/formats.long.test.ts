/** The long part of formats.test.ts. */

import './formats.test.js'
