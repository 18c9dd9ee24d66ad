/** Access control. Without it, a server would show trials to strangers, and to strangers' pages in its user's browser. */

import { createHash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import { UsageError } from '../../base/errors.js'
import type { Context, Next } from './http.js'

const COOKIE = 'trialscan_token'

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

/** Refuses an open server. @throws UsageError for an address that other machines reach, without a token */
export function expectSafe(host: string, token: string | undefined): void {
  if (token !== undefined && !/^[\w.~-]{16,}$/.test(token)) {
    const message = 'expected a token of at least 16 letters, digits, dots, underscores, tildes or hyphens'
    throw new UsageError(message, { option: 'token' })
  }
  if (token === undefined && !isLoopback(host)) {
    throw new UsageError(
      `expected a token beside the host ${host}, which other machines can reach: whoever has it can read the trials`,
      {
        option: 'token',
      },
    )
  }
}

/** Middleware that admits requests with the token or, if there is none, requests to this machine by its own name. */
export function guard(token: string | undefined) {
  return async (context: Context, next: Next): Promise<Response | undefined> => {
    if (token === undefined) {
      // DNS rebinding: a foreign page can point its own name at 127.0.0.1, and the Host header shows that name.
      const name = (context.req.header('host') ?? '').replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
      if (!isLoopback(name))
        return context.json(problem('Forbidden', `expected this machine's own name as Host, got ${name}`), 403)
      await next()
      return undefined
    }
    const given = new URL(context.req.url).searchParams.get('token')
    if (given !== null && isSame(given, token)) {
      // The token moves into a cookie that no script can read and no other site can send, because addresses are visible and stay in
      // histories.
      const url = new URL(context.req.url)
      url.searchParams.delete('token')
      return new Response(null, {
        status: 303,
        headers: {
          location: url.pathname + url.search,
          'set-cookie': `${COOKIE}=${token}; HttpOnly; SameSite=Strict; Path=/`,
        },
      })
    }
    const bearer = /^Bearer (.+)$/.exec(context.req.header('authorization') ?? '')?.[1]
    const cookie = (context.req.header('cookie') ?? '')
      .split(/; */)
      .find(pair => pair.startsWith(`${COOKIE}=`))
      ?.slice(COOKIE.length + 1)
    if (![bearer, cookie].some(candidate => candidate !== undefined && isSame(candidate, token))) {
      return new Response(
        `${JSON.stringify(problem('Unauthorized', 'expected the token: Authorization: Bearer …, or ?token=… once'))}\n`,
        {
          status: 401,
          headers: { 'content-type': 'application/json', 'www-authenticate': 'Bearer' },
        },
      )
    }
    await next()
    return undefined
  }
}

/** Compares two texts in constant time. */
function isSame(a: string, b: string): boolean {
  const [first, other] = [a, b].map(text => createHash('sha256').update(text).digest())
  return timingSafeEqual(first!, other!)
}

/** The answer to a failed request. */
export function problem(
  code: string,
  message: string,
): { readonly error: { readonly code: string; readonly message: string } } {
  return { error: { code, message } }
}

/** The content security policy of pages: scripts and styles of the server alone. Charts set styles of their elements. */
export const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

export const SAFE_HEADERS: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
}
