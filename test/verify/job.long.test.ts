/** The long part of job.test.ts. */

import './job.test.js'
