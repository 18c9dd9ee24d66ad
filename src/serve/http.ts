/** The HTTP library: the one module that knows it. It is bundled with it, and loaded when something is served. */

import type { Server } from 'node:http'
import { serve } from '@hono/node-server'
import { type Context, Hono, type Next } from 'hono'
import { compress } from 'hono/compress'
import { streamSSE } from 'hono/streaming'
import { COMPRESSIBLE_CONTENT_TYPE_REGEX } from 'hono/utils/compress'

export type { Context, Next }
export { streamSSE }

export function newApp(): Hono {
  return new Hono()
}

export type App = Hono

/** Compresses answers that are texts, for those who accept it. @param more types that the library does not take for texts */
export function compressed(more: readonly string[]): ReturnType<typeof compress> {
  return compress({
    contentTypeFilter: type => COMPRESSIBLE_CONTENT_TYPE_REGEX.test(type) || more.includes(type),
  })
}

/** Listens. @throws what the system says, such as EADDRINUSE */
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
