/** Property tests draw the same examples in every run; TRIALSCAN_SEED draws others. */

import fc from 'fast-check'

fc.configureGlobal({ seed: Number(process.env.TRIALSCAN_SEED ?? 20191113) })
