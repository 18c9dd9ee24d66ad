/** What the public API is wherever it runs: re-exports only. */

export type { CheckpointFacts } from './catalog/checkpoint/checkpoint-files.js'
export type { StepState } from './catalog/state.js'
export { type StepRange, type StepSelection, type StepSlice, selectSteps } from './catalog/step-selection.js'
export { parseSteps } from './catalog/step-text.js'
export type { Waiting, WaitOptions } from './catalog/wait.js'
export type { KnownMoments } from './engine/border/abi.js'
export {
  type Complex,
  type ExactExtremes,
  Moments,
  mergeMoments,
  momentsOf,
  type ReductionValue,
} from './engine/moments.js'
export type { ElementHistogram } from './engine/statistics/distribution.js'
export { Distribution, type DistributionData } from './engine/statistics/distribution.js'
export type { Statistics, StatisticValue } from './engine/statistics/statistic.js'
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
} from './errors.js'
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
export { allclose, type Tolerance } from './job/allclose.js'
export type { FailedRow, RowFormat, RowFormatName, SavedRow, ScanRow, ValueRow } from './job/row.js'
export * as rowText from './job/row.js'
export type { DataOf, ElementsOf, NumericArray, TensorData } from './job/tensor/data.js'
export type { AxisIndex, AxisSlice } from './job/tensor/indices.js'
export type { ElementOf, Nested, TensorValue, ValueOf } from './job/tensor-value.js'
export type { Activity, ChannelSums, Question, TensorDifference } from './measure/question.js'
export type { TensorAtStep } from './measure/tensor-at-step.js'
export { problemLines } from './problem-lines.js'
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
} from './rule/action/action.js'
export type { BuiltinClass } from './rule/base/builtin.js'
export { LearningRates, type UnusualRate } from './rule/base/learning-rates.js'
export {
  AllZero,
  BUILTIN_RULES,
  CheckInputImages,
  ClassImbalance,
  Confusion,
  DeadRelu,
  DivergesFrom,
  ExplodingTensor,
  FeatureImportanceOverweight,
  LossNotDecreasing,
  NLPSequenceRatio,
  Overfit,
  Overtraining,
  PoorWeightInitialization,
  SaturatedActivation,
  SimilarAcrossRuns,
  StalledTrainingRule,
  TensorVariance,
  TreeDepth,
  UnchangedTensor,
  VanishingGradient,
  WeightUpdateRatio,
} from './rule/builtin/index.js'
export {
  type CollectionConfiguration,
  type MakeRulesOptions,
  makeRules,
  parseRuleConfigurations,
  type RuleConfiguration,
} from './rule/config.js'
export { type DiagnosedFinding, Diagnosis, diagnose } from './rule/diagnosis.js'
export {
  type EvaluateOptions,
  type EvaluateProgress,
  type EvaluateStats,
  type Evaluation,
  evaluate,
} from './rule/evaluate.js'
export type { CollectionConfigsOptions, Finding, HookCollection, Logger, Missing, Problem } from './rule/finding.js'
export { type InvokeOptions, invokeRule } from './rule/invoke.js'
export { type AllRules, type AllRulesOptions, RuleRegistry } from './rule/registry.js'
export type { RequiredTensors, RequireOptions } from './rule/required.js'
export { type Found, Rule, type RuleClass, type RuleOptions, type RuleReport } from './rule/rule.js'
export { closePools, type ReadOptions, type WorkOptions } from './runner/access.js'
export type { ColumnsRow, DictionaryColumn, ScanColumns } from './scan/columns.js'
export type { ScanStats } from './scan/costs.js'
export type { Scan, ScanProgress } from './scan/scan.js'
export type { Traffic } from './store/store.js'
export type { FollowOptions } from './trial/follow.js'
export type { Collection, OwnCollectionOptions, TensorNamesOptions } from './trial/names.js'
export { noRefresh, type RefreshMode, refresh } from './trial/open.js'
export { parseReductions } from './trial/reduction.js'
export type { DistributionOptions, ScanOptions } from './trial/scan-selection.js'
export type { TensorSummary, TrialSummary } from './trial/summary.js'
export type { ReductionOptions, SavedOptions, Tensor, ValueOptions } from './trial/tensor.js'
export type { Trial, WorkerOptions } from './trial/trial.js'
export {
  type AxisReductionName,
  type CheckLevel,
  type CountName,
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
} from './types.js'
export { VERIFY_CODES, type VerifyCode, type VerifyProblem } from './verify/problem.js'
export type { Verification, VerifyStats } from './verify/verify.js'
