/** The public API on Node.js: re-exports only. */

export * from './api.js'
export type { Bisection } from './compare/bisect.js'
export {
  type DiffOptions,
  type DiffWorkersOptions,
  diff,
  diffWorkers,
  type TrialDiff,
} from './compare/diff.js'
export {
  compareDigests,
  type DigestComparison,
  type DigestDifference,
  type DigestDifferenceKind,
  type DigestOptions,
} from './compare/digests/digests.js'
export type { DigestListFault, DigestListSource } from './compare/digests/list.js'
export type { NameAliases, TiedTensor } from './compare/names/aliases.js'
export type { SplitTensor } from './compare/names/cut.js'
export type { NameSuggestion } from './compare/names/suggest.js'
export type { TensorMap, TensorNames, TensorSplit } from './compare/names/tensor-map.js'
export {
  type NearOverflow,
  type NonFiniteOrigin,
  type NonFiniteTrace,
  type TraceOptions,
  traceNonFinite,
} from './compare/non-finite/trace.js'
export type { Partition } from './compare/pairing.js'
export type {
  AffectedSlices,
  DifferenceAt,
  DifferenceKind,
  NonFiniteClass,
  NonFiniteKind,
  NonFiniteRecord,
  PassedOverflow,
  RecordPlaceInTime,
} from './compare/records.js'
export { DIFFERENCE_COLUMNS, DifferenceTable } from './compare/table.js'
export type { TrendDeparture } from './compare/trend.js'
export { type EstimateOptions, estimateFleet, type FleetEstimate } from './fleet/estimate.js'
export { type FleetStatus, fleetStatus, mergedTable, type ShardStatus } from './fleet/merge.js'
export { type PlaceOptions, PlanPlace, type ShardFailure, type ShardReport } from './fleet/place.js'
export {
  type FleetCheck,
  type FleetFormat,
  type FleetPlan,
  type FleetPlanOptions,
  type FleetScan,
  type Piece,
  type PlannedShard,
  type PlannedSize,
  type PlannedTrial,
  planFleet,
  shardName,
} from './fleet/plan.js'
export { type FleetJudging, runShard, type ShardOptions } from './fleet/shard.js'
export type { PickleStructure } from './format/checkpoint/torch/read-structure.js'
export type { StructureValue } from './format/checkpoint/torch/structure.js'
export { debugOutput, tensorboardOutput } from './format/job-places.js'
export {
  type CopyOptions,
  copyTrial,
  type TrialCopy,
  type TrialFile,
  type TrialFilesOptions,
  trialFiles,
} from './integrity/repair/copy.js'
export { type ReindexedFile, type ReindexOptions, reindexTrial } from './integrity/repair/reindex.js'
export { type RepairOptions, repairTrial } from './integrity/repair/repair.js'
export type { LeftOut, RebuiltFile, RepairReport } from './integrity/repair/report.js'
export { type VerifyOptions, verifyTrial } from './integrity/verify/verify.js'
export { type CommandOptions, commandAction } from './rules/action/action.js'
export { parseActions } from './rules/action/action-json.js'
export { pickleStructure, type StructureOptions } from './scan/catalog/checkpoint/structure.js'
export type { QuantisationError } from './scan/job/quantised-job.js'
export { maxThreads } from './scan/runner/access.js'
export { OutputFile, type OutputFileOptions } from './storage/local/output.js'
export type { S3Credentials, S3Options } from './storage/s3/spec.js'
export { type ColumnKind, type ColumnValue, parseColumns, type RowColumn } from './table/columns.js'
export { npyChunks } from './table/npy.js'
export { type TableFormatName, type TableOptions, type TableSource, tableBytes } from './table/table.js'
export { parseWhere, type RowFilter } from './table/where.js'
export { type FindOptions, findTrials } from './trial/find.js'
export { trialFingerprint } from './trial/fingerprint.js'
export { createTrial, openTrial, type TrialOptions } from './trial/open.js'
export { type ReadValuesOptions, readValues, type SavedValue } from './trial/values.js'
export type { EmbeddingMethod } from './view/data.js'
export { type HistogramsOptions, histograms, type StepTensors } from './view/histograms/histograms.js'
export type { NotJudged } from './view/judged.js'
export { type NotFinite, type OverviewLine, type TrialOverview, trialOverview } from './view/overview/overview.js'
export { type Report, type ReportOptions, reportHtml } from './view/report.js'
export { type EmbedOptions, embed } from './view/samples/embed.js'
export { type ServeOptions, serveTrials, type TrialServer } from './view/serve/serve.js'
export type { CollectionOptions } from './write/collections.js'
export { createWriterFromJson, type HookConfig, parseHookConfig } from './write/hook-config.js'
export type {
  RecordOptions,
  SaveOptions,
  SaveReductionsOptions,
  ScalarOptions,
  ShouldSaveOptions,
  StepOptions,
  TensorBoardOutput,
  WriterOptions,
} from './write/options.js'
export type { ReductionConfigOptions, SaveConfigOptions, SaveSteps } from './write/save-config.js'
export type { ByteInput } from './write/stream/input.js'
export { type RecordedStream, type RecordStreamOptions, recordStream } from './write/stream/record.js'
export {
  exportTensorBoard,
  type TensorBoardExport,
  type TensorBoardOptions,
  type TensorBoardRun,
} from './write/tensorboard/export.js'
export {
  type ImportedRun,
  type ImportOptions,
  importTensorBoard,
  type TensorBoardImport,
} from './write/tensorboard/import.js'
export type { LeftOutSummary } from './write/tensorboard/left-out.js'
export type { ElementOptions, NestedElements, RemoteTensor, SavableValue } from './write/values.js'
export { createWriter, TrialWriter } from './write/writer.js'
