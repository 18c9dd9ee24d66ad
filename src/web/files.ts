/**
 * The two files beside the page's code. Each is named by `new URL(…, import.meta.url)` in one expression, so that
 * bundlers find it. trialscan/web/inline has their contents instead.
 */

export interface Files {
  /** The core: its address, for errors, and its bytes to come. */
  fetchCore(): { readonly url: string; readonly response: Promise<Response> }
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

/** The URLs of the core and of the threads' code. */
export function theFiles(): Files {
  return files
}

/** Sets the files that are used from now on. */
export function useFiles(others: Files): void {
  files = others
}
