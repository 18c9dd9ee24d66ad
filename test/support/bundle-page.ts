/** Bundles what the tests run in a page. */

import { join } from 'node:path'
import { build } from 'esbuild'
import { ROOT } from './golden.js'

/** Copies nothing: dist/browser is served as it is, and imported from where it is served. */
export async function bundlePage(outfile: string): Promise<void> {
  await build({
    absWorkingDir: ROOT,
    entryPoints: ['test/web/page.ts'],
    outfile,
    bundle: true,
    format: 'esm',
    keepNames: true,
    logLevel: 'warning',
    plugins: [
      {
        name: 'page',
        setup({ onResolve }) {
          onResolve({ filter: /^#dist\/(web\/)?index\.js$/ }, () => ({ path: '/browser/index.js', external: true }))
          onResolve({ filter: /^node:(crypto|url)$/ }, () => ({ path: join(ROOT, 'dist/web/platform.js') }))
        },
      },
    ],
  })
}
