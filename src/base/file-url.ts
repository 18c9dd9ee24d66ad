/** `fileURLToPath` for messages, loaded on demand: importing node:url would cost every process 0.4 ms. */
export const fileURLToPath = (url: string): string => process.getBuiltinModule('url').fileURLToPath(url)
