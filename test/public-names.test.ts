/** The public names, so that none comes or goes unnoticed. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import * as trialscan from '#dist/index.js'
import { fixtureTrial, ROOT } from './support/golden.js'

it('exports these names', () => {
  expect(Object.keys(trialscan).sort()).toMatchInlineSnapshot(`
    [
      "AllZero",
      "BUILTIN_RULES",
      "CheckInputImages",
      "ClassImbalance",
      "Confusion",
      "DeadRelu",
      "Diagnosis",
      "Distribution",
      "EngineError",
      "ExplodingTensor",
      "FeatureImportanceOverweight",
      "FormatError",
      "InsufficientInformationForRuleInvocation",
      "InvalidWorker",
      "LossNotDecreasing",
      "MissingCollectionFiles",
      "Moments",
      "NLPSequenceRatio",
      "NoMoreData",
      "OutputFile",
      "Overfit",
      "Overtraining",
      "PoorWeightInitialization",
      "QueryError",
      "REDUCTIONS",
      "ReductionUndefined",
      "Rule",
      "RuleEvaluationConditionMet",
      "RuleRegistry",
      "SaturatedActivation",
      "ShapeUnavailableForStep",
      "SimilarAcrossRuns",
      "StalledTrainingRule",
      "StepNotYetAvailable",
      "StepUnavailable",
      "StoreError",
      "TensorUnavailable",
      "TensorUnavailableForStep",
      "TensorVariance",
      "ThreadError",
      "TreeDepth",
      "TrialscanError",
      "UnchangedTensor",
      "UsageError",
      "VERIFY_CODES",
      "VanishingGradient",
      "WaitTimeout",
      "WeightUpdateRatio",
      "allclose",
      "callbackAction",
      "closePools",
      "commandAction",
      "createTrial",
      "diagnose",
      "evaluate",
      "findTrials",
      "invokeRule",
      "logAction",
      "makeRules",
      "maxThreads",
      "mergeMoments",
      "modes",
      "momentsOf",
      "noRefresh",
      "openTrial",
      "parseActions",
      "parseColumns",
      "parseReductions",
      "parseRuleConfigurations",
      "parseWhere",
      "postAction",
      "readValues",
      "refresh",
      "reindexTrial",
      "repairTrial",
      "rowText",
      "selectSteps",
      "tableBytes",
      "trialFingerprint",
      "verifyTrial",
    ]
  `)
})

it('has each of them in docs/api.md', () => {
  const text = readFileSync(join(ROOT, 'docs/api.md'), 'utf8')
  for (const name of Object.keys(trialscan)) expect(text, name).toMatch(new RegExp(`\\b${name}\\b`))
})

it('gives Trial, Tensor and Scan these members', async () => {
  const { createTrial } = trialscan
  const trial = await createTrial(fixtureTrial('workers-4').directory)
  const members = (object: object): string[] => Object.getOwnPropertyNames(Object.getPrototypeOf(object)).sort()
  expect({
    trial: members(trial),
    tensor: members(trial.tensor('loss')),
    scan: members(trial.scan()),
  }).toMatchInlineSnapshot(`
    {
      "scan": [
        "constructor",
        "firstError",
        "lines",
        "problems",
        "stats",
      ],
      "tensor": [
        "along",
        "constructor",
        "originalName",
        "prevSteps",
        "reductionValue",
        "reductionValues",
        "shape",
        "shapes",
        "steps",
        "value",
        "values",
        "workers",
      ],
      "trial": [
        "close",
        "collection",
        "collections",
        "constructor",
        "distribution",
        "follow",
        "globalStep",
        "hasPassedStep",
        "hasTensor",
        "inputs",
        "labels",
        "loadedAllSteps",
        "mode",
        "modeStep",
        "modes",
        "outputs",
        "predictions",
        "problems",
        "refresh",
        "scan",
        "steps",
        "summary",
        "tensor",
        "tensorNames",
        "traffic",
        "waitForSteps",
        "withoutRefresh",
        "workers",
        "workersWithData",
      ],
    }
  `)
})
