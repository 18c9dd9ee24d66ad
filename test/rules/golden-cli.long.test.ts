/** The long part of golden-cli.test.ts. */

import './golden-cli.test.js'
