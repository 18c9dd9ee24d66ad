/** The app without a network: its files are kept when it is first loaded, and given out from then on. Nothing else goes through here. */

/** The build puts them in: the app's files, and a digest of all of them. */
declare const FILES: readonly string[]
declare const DIGEST: string

interface ExtendableEvent extends Event {
  waitUntil(work: Promise<unknown>): void
}
interface FetchEvent extends Event {
  readonly request: Request
  respondWith(answer: Promise<Response>): void
}
/** A service worker's global scope, of which the DOM library knows nothing. */
declare const self: {
  readonly registration: { readonly scope: string }
  readonly clients: { claim(): Promise<void> }
  addEventListener(type: 'install' | 'activate', listener: (event: ExtendableEvent) => void): void
  addEventListener(type: 'fetch', listener: (event: FetchEvent) => void): void
}

const { scope } = self.registration
const OWN = `trialscan ${scope} `
const NAME = OWN + DIGEST
const urls = new Set(FILES.map(file => new URL(file, scope).href))

async function keep(): Promise<void> {
  const cache = await caches.open(NAME)
  await cache.addAll([...urls].map(url => new Request(url, { cache: 'no-cache' })))
}

/** Removes the files of an earlier version, which no page uses any more. */
async function takeOver(): Promise<void> {
  for (const name of await caches.keys()) if (name.startsWith(OWN) && name !== NAME) await caches.delete(name)
  await self.clients.claim()
}

async function answer(request: Request, url: string): Promise<Response> {
  const cache = await caches.open(NAME)
  const kept = await cache.match(url)
  // A page can't be opened by an answer that a host redirected, as some do from /index.html to /.
  if (kept?.redirected) return new Response(kept.body, { headers: kept.headers })
  return kept ?? fetch(request)
}

self.addEventListener('install', event => event.waitUntil(keep()))
self.addEventListener('activate', event => event.waitUntil(takeOver()))
self.addEventListener('fetch', event => {
  const { method, url } = event.request
  const [path] = url.split(/[?#]/) as [string]
  const file = path === scope ? `${scope}index.html` : path
  if (method === 'GET' && urls.has(file)) event.respondWith(answer(event.request, file))
})
