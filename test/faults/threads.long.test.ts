/** The long part of threads.test.ts. */

import './threads.test.js'
