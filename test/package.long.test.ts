/** The long part of package.test.ts. */

import './package.test.js'
