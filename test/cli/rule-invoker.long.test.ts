/** The long part of rule-invoker.test.ts. */

import './rule-invoker.test.js'
