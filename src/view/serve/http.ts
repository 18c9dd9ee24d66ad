/** The HTTP library. Only this module imports it; it is bundled, and loaded when something is served. */

import type { Server } from 'node:http'
import { type HttpBindings, serve } from '@hono/node-server'
import { type Context, Hono, type Next } from 'hono'
import { compress } from 'hono/compress'
import { COMPRESSIBLE_CONTENT_TYPE_REGEX } from 'hono/utils/compress'

export type { Context, Next }

export function newApp(): Hono {
  return new Hono()
}

export type App = Hono

/** Middleware that compresses text. @param more further types to compress */
export function compressed(more: readonly string[]): ReturnType<typeof compress> {
  return compress({
    contentTypeFilter: type => COMPRESSIBLE_CONTENT_TYPE_REGEX.test(type) || more.includes(type),
  })
}

/**
 * Calls `ended` once when an answer is over: it was sent in full or without its body, or the client has gone.
 * @returns a function that ends the connection
 */
export function onceAnswered(context: Context, ended: () => void): { readonly hangUp: () => void } {
  const { incoming, outgoing } = context.env as HttpBindings
  const { socket } = incoming
  const end = () => {
    outgoing.off('close', end)
    socket.off('close', end)
    ended()
  }
  if (outgoing.closed || socket.destroyed) ended()
  else {
    outgoing.once('close', end)
    // An answer that waits for an earlier one on its connection gets no event when that closes.
    socket.once('close', end)
  }
  return { hangUp: () => socket.destroy() }
}

/** Starts to listen. @throws errors of the system, such as EADDRINUSE */
export function listen(
  app: App,
  host: string,
  port: number,
): Promise<{ readonly server: Server; readonly port: number }> {
  return new Promise((resolve, reject) => {
    const server = serve({ fetch: app.fetch, hostname: host, port }, ({ port }) => {
      server.off('error', reject)
      resolve({ server: server as Server, port })
    })
    server.on('error', reject)
  })
}
