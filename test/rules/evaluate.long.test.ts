/** The long part of evaluate.test.ts. */

import './evaluate.test.js'
