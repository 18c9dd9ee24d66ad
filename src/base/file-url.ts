/** For messages alone: as an import, node:url would take 0.4 ms of every process, whether it has something to say or not. */
export const fileURLToPath = (url: string): string => process.getBuiltinModule('url').fileURLToPath(url)
