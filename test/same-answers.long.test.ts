/** The long part of same-answers.test.ts. */

import './same-answers.test.js'
