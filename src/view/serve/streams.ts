/** Bodies that are made as they are read: each ends, however its request does. */

import { type Context, onceAnswered } from './http.js'

/** Whoever reads nothing for so long is taken for gone. */
const STALL_MS = 60_000

export interface StreamOptions {
  /** Aborted when nobody reads any more. Default: there is nothing to abort. */
  readonly gone?: AbortController
  /** Called once, when no more is made. */
  readonly end: () => void
  /** Milliseconds after which a client that reads nothing loses its connection. Default: a minute. */
  readonly stallMs?: number
}

/**
 * A body of chunks. It ends with the last of them, with their failure, when its reader leaves it, when the answer has ended without
 * having been read (as that to a HEAD request has), or when nobody has read for a while.
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
    // What is under way ends first: until then it takes part in the work.
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
          // What is broken off since nobody reads it is no failure.
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
