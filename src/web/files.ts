/**
 * The two files beside the page's code. They are named so that bundlers find them: each by `new URL(…, import.meta.url)` in
 * one expression. trialscan/web/inline has their contents instead.
 */

export interface Files {
  /** The core: its address, for errors, and its bytes to come. */
  fetchCore(): { readonly url: string; readonly response: Promise<Response> }
  /** Starts a thread. */
  startWorker(): Worker
}

const beside: Files = {
  fetchCore() {
    const url = new URL('./trialscan.wasm', import.meta.url)
    return { url: url.href, response: fetch(url) }
  },
  startWorker() {
    return new Worker(new URL('./worker.js', import.meta.url), { type: 'module', name: 'trialscan' })
  },
}

let files = beside

/** Where the core and the code of threads are. */
export function theFiles(): Files {
  return files
}

/** From now on. */
export function useFiles(others: Files): void {
  files = others
}
