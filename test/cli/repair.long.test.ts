/** The long part of repair.test.ts. */

import './repair.test.js'
