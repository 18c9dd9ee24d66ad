/** The long part of s3-proxy.test.ts. */

import './s3-proxy.test.js'
