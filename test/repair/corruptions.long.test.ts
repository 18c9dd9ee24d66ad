/** The long part of corruptions.test.ts. */

import './corruptions.test.js'
