/** The public API on Node.js: re-exports only. */

export * from './api.js'
export { type ReindexedFile, type ReindexOptions, reindexTrial } from './repair/reindex.js'
export { type RepairOptions, repairTrial } from './repair/repair.js'
export type { LeftOut, RebuiltFile, RepairReport } from './repair/report.js'
export { type CommandOptions, commandAction } from './rule/action/action.js'
export { parseActions } from './rule/action/action-json.js'
export { maxThreads } from './runner/access.js'
export { OutputFile, type OutputFileOptions } from './store/local/output.js'
export type { S3Credentials, S3Options } from './store/s3/spec.js'
export { type TableFormatName, type TableOptions, tableBytes } from './table/table.js'
export { createTrial, openTrial, type TrialOptions } from './trial/open.js'
export { type VerifyOptions, verifyTrial } from './verify/verify.js'
