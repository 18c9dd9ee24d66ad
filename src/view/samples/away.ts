/** Samples placed on a thread of their own: a server answers meanwhile. */

import { Worker } from 'node:worker_threads'
import type { PlacedByAll, placedByAll } from './embed.js'

/** @throws the signal's reason */
export async function placedAway(
  rows: readonly Float64Array[],
  options: Parameters<typeof placedByAll>[1],
  signal?: AbortSignal,
): Promise<PlacedByAll> {
  signal?.throwIfAborted()
  const thread = new Worker(new URL('./embed-thread.js', import.meta.url), { workerData: [rows, options] })
  const end = () => void thread.terminate()
  signal?.addEventListener('abort', end)
  try {
    return await new Promise((resolve, reject) => {
      thread.on('message', resolve)
      thread.on('error', reject)
      thread.on('exit', code =>
        reject(signal?.reason ?? new Error(`the thread that places samples ended with ${code}`)),
      )
    })
  } finally {
    signal?.removeEventListener('abort', end)
  }
}
