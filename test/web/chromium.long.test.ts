/** The long part of chromium.test.ts. */

import './chromium.test.js'
