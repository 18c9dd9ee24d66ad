/** Bodies of answers, read as they come. A body that stalls, trickles or has no end is given up. */

import type { Readable } from 'node:stream'
import { S3Failure } from './errors.js'
import type { S3Options } from './spec.js'

/** The slowest accepted pace of a body. */
export type Pace = Required<Pick<S3Options, 'idleTimeoutMs' | 'minBytesPerSecond' | 'rateTimeoutMs'>>

/**
 * Reads a body as it comes.
 * @param take returns true when nothing more is wanted
 * @throws S3Failure, the signal's reason, or the error of `take`
 */
export function readBody(
  body: Readable,
  { idleTimeoutMs, minBytesPerSecond, rateTimeoutMs }: Pace,
  signal: AbortSignal | undefined,
  take: (chunk: Uint8Array) => boolean,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const idle = setTimeout(() => {
      end(new S3Failure(`no byte came for ${idleTimeoutMs / 1000} s`, { code: 'StalledBody' }))
    }, idleTimeoutMs)
    const least = (minBytesPerSecond * rateTimeoutMs) / 1000
    let received = 0
    const floor = setInterval(() => {
      if (received < least) {
        const got = `expected ${minBytesPerSecond} bytes a second, got ${received} in ${rateTimeoutMs / 1000} s`
        end(new S3Failure(got, { code: 'SlowBody' }))
      }
      received = 0
    }, rateTimeoutMs)
    const onAbort = (): void => end(signal!.reason)
    const onData = (chunk: Uint8Array): void => {
      idle.refresh()
      received += chunk.length
      try {
        if (take(chunk)) end()
      } catch (error) {
        end(error)
      }
    }
    const onError = (cause: NodeJS.ErrnoException): void => {
      end(new S3Failure(cause.message, { code: cause.code ?? 'ECONNRESET' }, cause))
    }
    const onEnd = (): void => end()
    const onClose = (): void => end(new S3Failure('the connection was closed', { code: 'ECONNRESET' }))
    const end = (error?: unknown): void => {
      clearTimeout(idle)
      clearInterval(floor)
      signal?.removeEventListener('abort', onAbort)
      body.off('data', onData).off('error', onError).off('end', onEnd).off('close', onClose)
      if (error === undefined) resolve()
      else {
        body.destroy()
        reject(error)
      }
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    body.on('data', onData).on('error', onError).on('end', onEnd).on('close', onClose)
  })
}

/**
 * Reads a body that is a listing or an error message; of a longer one, its first bytes.
 * @throws as `readBody`
 */
export async function readStart(
  body: Readable,
  maxByteLength: number,
  pace: Pace,
  signal: AbortSignal | undefined,
): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let byteLength = 0
  await readBody(body, pace, signal, chunk => {
    chunks.push(chunk)
    byteLength += chunk.length
    return byteLength >= maxByteLength
  })
  // An unread open body would hold its socket for ever.
  if (!body.readableEnded) body.destroy()
  return Buffer.concat(chunks, byteLength).subarray(0, maxByteLength)
}
