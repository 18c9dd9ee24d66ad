/** The long part of rules-docs.test.ts. */

import './rules-docs.test.js'
