/** The long part of bad-input.test.ts. */

import './bad-input.test.js'
