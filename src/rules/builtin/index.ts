/** The built-in rules, in the order of docs/rules.md. */

import type { BuiltinClass } from '../base/builtin.js'
import { AllZero } from './all-zero.js'
import { CheckInputImages } from './check-input-images.js'
import { ClassImbalance } from './class-imbalance.js'
import { Confusion } from './confusion.js'
import { DeadRelu } from './dead-relu.js'
import { DivergesFrom } from './diverges-from.js'
import { ExplodingNorm } from './exploding-norm.js'
import { ExplodingTensor } from './exploding-tensor.js'
import { FeatureImportanceOverweight } from './feature-importance-overweight.js'
import { LossNotDecreasing } from './loss-not-decreasing.js'
import { NLPSequenceRatio } from './nlp-sequence-ratio.js'
import { OptimizerReset } from './optimizer-reset.js'
import { Overfit } from './overfit.js'
import { Overtraining } from './overtraining.js'
import { PoorWeightInitialization } from './poor-weight-initialization.js'
import { ReplicaDrift } from './replica-drift.js'
import { SaturatedActivation } from './saturated-activation.js'
import { SimilarAcrossRuns } from './similar-across-runs.js'
import { StalledTrainingRule } from './stalled-training-rule.js'
import { TensorVariance } from './tensor-variance.js'
import { TreeDepth } from './tree-depth.js'
import { UnchangedRows } from './unchanged-rows.js'
import { UnchangedTensor } from './unchanged-tensor.js'
import { VanishingGradient } from './vanishing-gradient.js'
import { WeightUpdateRatio } from './weight-update-ratio.js'

export const BUILTIN_RULES: readonly BuiltinClass[] = [
  VanishingGradient,
  ExplodingTensor,
  PoorWeightInitialization,
  SaturatedActivation,
  DeadRelu,
  WeightUpdateRatio,
  AllZero,
  ClassImbalance,
  LossNotDecreasing,
  Overfit,
  Overtraining,
  SimilarAcrossRuns,
  DivergesFrom,
  ReplicaDrift,
  OptimizerReset,
  UnchangedRows,
  ExplodingNorm,
  StalledTrainingRule,
  TensorVariance,
  UnchangedTensor,
  CheckInputImages,
  NLPSequenceRatio,
  Confusion,
  FeatureImportanceOverweight,
  TreeDepth,
]

export {
  AllZero,
  CheckInputImages,
  ClassImbalance,
  Confusion,
  DeadRelu,
  DivergesFrom,
  ExplodingNorm,
  ExplodingTensor,
  FeatureImportanceOverweight,
  LossNotDecreasing,
  NLPSequenceRatio,
  OptimizerReset,
  Overfit,
  Overtraining,
  PoorWeightInitialization,
  ReplicaDrift,
  SaturatedActivation,
  SimilarAcrossRuns,
  StalledTrainingRule,
  TensorVariance,
  TreeDepth,
  UnchangedRows,
  UnchangedTensor,
  VanishingGradient,
  WeightUpdateRatio,
}
