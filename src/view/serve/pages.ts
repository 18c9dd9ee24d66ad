/** The server's pages and their assets. */

import { appFile } from '../app-files.js'
import { pageHtml } from '../page-html.js'
import { PAGE_POLICY } from './access.js'
import { etag, has } from './answers.js'
import type { App, Context } from './http.js'

export interface PageOptions {
  /** The trials by their ids. */
  readonly trials: ReadonlyMap<string, unknown>
  readonly version: string
  /** True if `/` leads to the app while there is no trial. */
  readonly app: boolean
}

/** Adds the routes of pages. @param known throws for an unknown id */
export function addPages(app: App, options: PageOptions, known: (id: string) => string): void {
  const { trials } = options
  const asset = (path: string, type: string, text: (source: typeof import('../page-source.js')) => string) =>
    app.get(path, async context => {
      const body = text(await import('../page-source.js'))
      const tag = etag(body)
      if (has(context, tag)) return context.body(null, 304, { etag: tag })
      return context.body(body, 200, { 'content-type': type, etag: tag, 'cache-control': 'no-cache' })
    })
  asset('/assets/page.js', 'text/javascript; charset=utf-8', ({ SCRIPT }) => SCRIPT)
  asset('/assets/page.css', 'text/css; charset=utf-8', ({ STYLE }) => STYLE)
  asset('/assets/licenses.txt', 'text/plain; charset=utf-8', ({ LICENSES }) => LICENSES)
  app.get('/favicon.ico', context => context.body(null, 204))
  app.get('/', context => {
    if (options.app && trials.size === 0) return context.redirect('/app/')
    return pageOf(context, options, trials.size === 1 ? [...trials.keys()] : [])
  })
  // The app has a folder of its own, so that its service worker controls no other page.
  const appAsset = (context: Context, file: string) => {
    const content = appFile(file)
    if (content === null) return context.notFound()
    return context.body(content.bytes, 200, { 'content-type': content.type, 'cache-control': 'no-cache' })
  }
  app.get('/app', context => context.redirect('/app/'))
  app.get('/app/', context => appAsset(context, 'index.html'))
  app.get('/app/:file', context => appAsset(context, context.req.param('file')))
  app.get('/trials/:id', context => pageOf(context, options, [known(context.req.param('id'))]))
  app.get('/compare/:a/:b', context => {
    const { a, b } = context.req.param()
    return pageOf(context, options, [known(a), known(b)])
  })
}

/** A page of the server. @param ids of the trials that it shows; none: the list of all */
function pageOf(context: Context, { version, trials }: PageOptions, ids: readonly string[]): Response {
  const title = ids.length > 0 ? ids.join(' and ') : `${trials.size} trials`
  const html = pageHtml({
    title,
    data: { live: ids, version, title, isOnly: trials.size === 1 },
    head: '<link rel="stylesheet" href="/assets/page.css">',
    script: '<script src="/assets/page.js"></script>',
  })
  return context.html(html, 200, { 'content-security-policy': PAGE_POLICY, 'cache-control': 'no-cache' })
}
