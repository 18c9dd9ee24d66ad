/** Bodies of answers that are produced as they are read. Each of them ends, however its request ends. */

import { type Context, onceAnswered } from './http.js'

/** Whoever reads nothing for so long is taken for gone. */
const STALL_MS = 60_000

export interface StreamOptions {
  /** Aborted when the client has gone. Default: nothing to abort. */
  readonly gone?: AbortController
  /** Called once, when the stream is over. */
  readonly end: () => void
  /** Milliseconds after which a client that reads nothing loses its connection. Default: a minute. */
  readonly stallMs?: number
}

/**
 * A body of chunks. It ends after the last chunk, with an error of its source, when its reader leaves, when the answer is over without
 * having been read (as after a HEAD request), or when nobody has read for a while.
 */
export function streamOf(
  context: Context,
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { gone, end, stallMs = STALL_MS }: StreamOptions,
): ReadableStream<Uint8Array> {
  const iterator = Symbol.asyncIterator in chunks ? chunks[Symbol.asyncIterator]() : chunks[Symbol.iterator]()
  let stalling: ReturnType<typeof setTimeout> | undefined
  let ending: Promise<void> | undefined
  const leave = (): Promise<void> => {
    clearTimeout(stalling)
    gone?.abort()
    // The chunk in progress ends first: until then it uses the trial.
    ending ??= (async () => iterator.return?.(undefined))().then(end, end)
    return ending
  }
  const { hangUp } = onceAnswered(context, () => void leave())
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        clearTimeout(stalling)
        try {
          const { done, value } = await iterator.next()
          if (done) {
            void leave()
            controller.close()
            return
          }
          controller.enqueue(value)
          if (ending !== undefined) return
          stalling = setTimeout(hangUp, stallMs)
          stalling.unref()
        } catch (error) {
          // An error after the reader left is no failure.
          const isLeft = ending !== undefined
          void leave()
          if (!isLeft) controller.error(error)
        }
      },
      cancel: leave,
    },
    { highWaterMark: 1 },
  )
}
