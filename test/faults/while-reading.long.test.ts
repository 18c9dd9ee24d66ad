/** The long part of while-reading.test.ts. */

import './while-reading.test.js'
