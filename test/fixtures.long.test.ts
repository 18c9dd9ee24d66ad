/** The long part of fixtures.test.ts. */

import './fixtures.test.js'
