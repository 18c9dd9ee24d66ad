/** Changes of a trial, told as they come (server-sent events). */

import { type Context, streamSSE } from './http.js'
import type { Change, ServedTrial } from './served-trial.js'

/** How often a connection that waits for changes gets a sign of life. */
const HEARTBEAT_MS = 15_000

/** An event at once, and one after each change. */
export function changesOf(one: ServedTrial, context: Context, signal: AbortSignal): Response {
  return streamSSE(context, async stream => {
    let wake = () => {}
    let due: Change | null = one.change
    const stop = one.listen(change => {
      // Whoever reads slowly learns of the last one only.
      due = change
      wake()
    })
    const end = () => wake()
    signal.addEventListener('abort', end)
    stream.onAbort(end)
    try {
      while (!stream.aborted && !signal.aborted) {
        if (due !== null) {
          const change: Change = due
          due = null
          await stream.writeSSE({ event: 'change', data: JSON.stringify(change) })
          continue
        }
        let timer: ReturnType<typeof setTimeout> | undefined
        await new Promise<void>(resolve => {
          wake = resolve
          timer = setTimeout(resolve, HEARTBEAT_MS)
          timer.unref()
        })
        clearTimeout(timer)
        if (due === null && !stream.aborted && !signal.aborted) await stream.write(': still here\n\n')
      }
    } finally {
      stop()
      signal.removeEventListener('abort', end)
    }
  })
}
