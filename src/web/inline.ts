/** trialscan/web as a single file, which holds the core and the code of threads as texts. */

import { useFiles } from './files.js'
import { CORE, WORKER } from './inlined-files.js'

useFiles({
  fetchCore() {
    return { url: 'data:application/wasm', response: fetch(`data:application/wasm;base64,${CORE}`) }
  },
  startWorker() {
    const url = URL.createObjectURL(new Blob([WORKER], { type: 'text/javascript' }))
    try {
      return new Worker(url, { type: 'module', name: 'trialscan' })
    } finally {
      // The worker has it from here on.
      URL.revokeObjectURL(url)
    }
  },
})

export * from './index.js'
