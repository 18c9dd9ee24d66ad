/**
 * The file that Piscina loads in a thread. It is CommonJS, since Piscina `require`s it, and Node.js 20 aborts the whole process when
 * a thread is ended while it is at `require` of an ES module. In the package it is one file with all that it loads (scripts/make-bundle.mjs).
 */

/** Stays pending where loading fails: the thread then dies before it was ready, with the reason as its error. */
const handler = import('./thread.js').then(
  thread => thread.default,
  (error: unknown) => {
    setImmediate(() => {
      throw error
    })
    return new Promise<never>(() => {})
  },
)

export = { __esModule: true, default: handler }
