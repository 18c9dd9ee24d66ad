/** The texts that the build puts in: see scripts/make-web.mjs. */

/** The core, in base64. */
export declare const CORE: string
/** The code of a thread. */
export declare const WORKER: string
