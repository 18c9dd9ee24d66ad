/** The long part of campaign.test.ts. */

import './campaign.test.js'
