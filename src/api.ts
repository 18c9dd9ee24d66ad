/** The public API on every platform: re-exports only. */

export {
  EngineError,
  type ErrorData,
  FormatError,
  InsufficientInformationForRuleInvocation,
  InvalidWorker,
  MissingCollectionFiles,
  NoMoreData,
  QueryError,
  ReductionUndefined,
  RuleEvaluationConditionMet,
  ShapeUnavailableForStep,
  StepNotYetAvailable,
  StepUnavailable,
  StoreError,
  TensorUnavailable,
  TensorUnavailableForStep,
  ThreadError,
  TrialscanError,
  UsageError,
  WaitTimeout,
} from './base/errors.js'
export { problemLines } from './base/problem-lines.js'
export {
  type AxisReductionName,
  type CheckLevel,
  type CountName,
  type DigestName,
  type DType,
  type Framework,
  type GlobalStep,
  type HistogramName,
  type Mode,
  type ModeStep,
  type MomentName,
  modes,
  type PercentileName,
  REDUCTIONS,
  type ReductionBase,
  type ReductionName,
  type SketchName,
  type StatisticName,
  type Worker,
} from './base/types.js'
export type { KnownMoments } from './core/border/abi.js'
export {
  type Complex,
  type ExactExtremes,
  Moments,
  mergeMoments,
  momentsOf,
  type ReductionValue,
} from './core/moments.js'
export type { ElementHistogram } from './core/statistics/distribution.js'
export { Distribution, type DistributionData } from './core/statistics/distribution.js'
export type { StatisticOf, Statistics, StatisticsOf, StatisticValue } from './core/statistics/statistic.js'
export {
  type PickleCall,
  type PickleDict,
  type PickleGlobal,
  type PicklePersistent,
  type PickleSequence,
  type PickleValue,
  readPickle,
} from './format/checkpoint/pickle/read-pickle.js'
export type { CollectionConfig, ReductionConfig, SaveConfig } from './format/collections.js'
export { VERIFY_CODES, type VerifyCode, type VerifyProblem } from './integrity/verify/problem.js'
export type { Verification, VerifyStats } from './integrity/verify/verify.js'
export {
  type Action,
  type Actions,
  callbackAction,
  type Firing,
  logAction,
  type PostOptions,
  postAction,
  type SageMakerAction,
  type SageMakerHandler,
} from './rules/action/action.js'
export type { BuiltinClass } from './rules/base/builtin.js'
export { LearningRates, type UnusualRate } from './rules/base/learning-rates.js'
export * from './rules/builtin/index.js'
export {
  type CollectionConfiguration,
  type MakeRulesOptions,
  makeRules,
  parseRuleConfigurations,
  type RuleConfiguration,
} from './rules/config.js'
export { type DiagnosedFinding, Diagnosis, diagnose } from './rules/diagnosis.js'
export {
  type EvaluateOptions,
  type EvaluateProgress,
  type EvaluateStats,
  type Evaluation,
  evaluate,
} from './rules/evaluate.js'
export type { CollectionConfigsOptions, Finding, HookCollection, Logger, Missing, Problem } from './rules/finding.js'
export { type InvokeOptions, invokeRule } from './rules/invoke.js'
export { type AllRules, type AllRulesOptions, RuleRegistry } from './rules/registry.js'
export type { RequiredTensors, RequireOptions } from './rules/required.js'
export { type Found, Rule, type RuleClass, type RuleOptions, type RuleReport } from './rules/rule.js'
export type { CheckpointFacts } from './scan/catalog/checkpoint/facts.js'
export type { StepState } from './scan/catalog/state.js'
export { type StepRange, type StepSelection, type StepSlice, selectSteps } from './scan/catalog/step-selection.js'
export { parseSteps } from './scan/catalog/step-text.js'
export type { Waiting, WaitOptions } from './scan/catalog/wait.js'
export type { FailedRow, RowFormat, RowFormatName, SavedRow, ScanRow, ValueRow } from './scan/job/row.js'
export * as rowText from './scan/job/row.js'
export { allclose, type Tolerance } from './scan/job/tensor/allclose.js'
export type { DataOf, ElementsOf, NumericArray, TensorData } from './scan/job/tensor/data.js'
export type { AxisIndex, AxisSlice } from './scan/job/tensor/indices.js'
export type { ElementOf, Nested, TensorValue, ValueOf } from './scan/job/tensor-value.js'
export type { ScanStats } from './scan/rows/costs.js'
export type { Scan, ScanProgress } from './scan/rows/scan.js'
export type { ColumnsRow, DictionaryColumn, ScanColumns } from './scan/rows/scan-columns.js'
export { closePools, type ReadOptions, type WorkOptions } from './scan/runner/access.js'
export type { Traffic } from './storage/store.js'
export type { FollowOptions } from './trial/follow.js'
export type { Activity, ChannelSums, Question, TensorDifference } from './trial/measure/question.js'
export type { TensorAtStep } from './trial/measure/tensor-at-step.js'
export type { Collection, OwnCollectionOptions, TensorNamesOptions } from './trial/names.js'
export { noRefresh, type RefreshMode, refresh } from './trial/open.js'
export { parseReductions } from './trial/reduction.js'
export type { DistributionOptions, ScanOptions } from './trial/scan-selection.js'
export type { TensorSummary, TrialSummary } from './trial/summary.js'
export type { ReductionOptions, SavedOptions, Tensor, ValueOptions } from './trial/tensor.js'
export type { Trial, WorkerOptions } from './trial/trial.js'
