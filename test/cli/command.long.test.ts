/** The long part of command.test.ts. */

import './command.test.js'
