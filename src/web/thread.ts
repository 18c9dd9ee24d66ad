/** The body of a page's thread: adopts the compiled core and runs jobs, one at a time. */

import { errorToData } from '../base/errors.js'
import { adoptModule } from '../core/border/module.js'
import type { Job } from '../scan/job/job.js'
import { buffersOf } from '../scan/runner/buffers.js'
import { runJobHere } from '../scan/runner/inline.js'
import type { Store } from '../storage/store.js'
import { forgetPlace, receivePlace } from '../storage/web/place.js'
import type { FromThread, ToThread } from './messages.js'

/** A worker's global scope, which the DOM library lacks. */
declare const self: {
  onmessage: ((event: MessageEvent<ToThread>) => void) | null
  postMessage(message: FromThread, transfer: Transferable[]): void
}

const stores = new Map<string, Store>()

self.onmessage = ({ data: message }) => {
  switch (message.kind) {
    case 'start':
      adoptModule(message.core)
      self.postMessage({ kind: 'started' }, [])
      break
    case 'place':
      receivePlace(message.number, message.place)
      break
    case 'forget':
      forgetPlace(message.number)
      for (const [key, store] of stores) {
        const spec = store.spec.kind === 'composed' ? store.spec.base : store.spec
        if (spec.kind === 'web' && spec.place === message.number) stores.delete(key)
      }
      break
    case 'job':
      void run(message.job)
  }
}

async function run(job: Job): Promise<void> {
  try {
    const reply = await runJobHere(job, stores)
    self.postMessage({ kind: 'reply', reply }, buffersOf(reply))
  } catch (error) {
    self.postMessage({ kind: 'failure', error: errorToData(error) }, [])
  }
}
