/** The texts that the build inserts (scripts/make-web.mjs). */

/** The core, in base64. */
export declare const CORE: string
/** The code of a thread. */
export declare const WORKER: string
