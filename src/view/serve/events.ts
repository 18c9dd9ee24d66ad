/** Changes of a trial as server-sent events. */

import type { Context } from './http.js'
import type { Change, ServedTrial } from './served-trial.js'
import { streamOf } from './streams.js'

/** Milliseconds between comments that keep an idle connection alive. */
const HEARTBEAT_MS = 15_000

const encoder = new TextEncoder()

/**
 * Sends the changes of trials: the present state of each at once, and then each change, until one is the last.
 * @param isLast true if no change follows this one
 * @param onAdded calls a listener for each trial that is added
 */
export function eventStream(
  context: Context,
  all: Iterable<ServedTrial>,
  signal: AbortSignal,
  isLast: (change: Change) => boolean,
  onAdded?: (listener: (added: ServedTrial) => void) => () => void,
): Response {
  const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' }
  if (context.req.method === 'HEAD') return context.body(null, 200, headers)
  const gone = new AbortController()
  const events = eventsOf([...all], AbortSignal.any([signal, gone.signal]), isLast, onAdded)
  return new Response(streamOf(context, events, { gone, end: () => {} }), { headers })
}

async function* eventsOf(
  all: readonly ServedTrial[],
  signal: AbortSignal,
  isLast: (change: Change) => boolean,
  onAdded?: (listener: (added: ServedTrial) => void) => () => void,
): AsyncGenerator<Uint8Array> {
  let wake = () => {}
  // A slow reader gets only the last change of each trial.
  const due = new Map(all.filter(({ opened }) => opened !== undefined).map(served => [served.id, served.change]))
  const listenTo = (served: ServedTrial) =>
    served.listen(change => {
      due.set(served.id, change)
      wake()
    })
  const stops = all.map(listenTo)
  if (onAdded) stops.push(onAdded(added => stops.push(listenTo(added))))
  const end = () => wake()
  signal.addEventListener('abort', end)
  try {
    while (!signal.aborted) {
      for (const [id, change] of due) {
        due.delete(id)
        yield encoder.encode(`event: change\ndata: ${JSON.stringify({ id, ...change })}\n\n`)
        if (isLast(change)) return
      }
      if (due.size > 0 || signal.aborted) continue
      let timer: ReturnType<typeof setTimeout> | undefined
      await new Promise<void>(resolve => {
        wake = resolve
        timer = setTimeout(resolve, HEARTBEAT_MS)
        timer.unref()
      })
      clearTimeout(timer)
      if (due.size === 0 && !signal.aborted) yield encoder.encode(': still here\n\n')
    }
  } finally {
    for (const stop of stops) stop()
    signal.removeEventListener('abort', end)
  }
}
