/** Links findings to their causes (docs/rules.md, "The cause first"). */

import { expectArray } from '../base/arguments.js'
import { entryOf } from '../base/maps.js'
import { recordsInOrder } from '../scan/catalog/record-order.js'
import { NO_WORKER_STEPS } from '../scan/catalog/worker-steps.js'
import { expectTrial, stateOf, type Trial } from '../trial/trial.js'
import { type Finding, judgedFor } from './finding.js'
import { Flow } from './flow.js'

export interface DiagnosedFinding extends Finding {
  /** The index, among the diagnosed findings, of its cause. Null if it is itself a cause. */
  readonly cause: number | null
}

/**
 * Sorts findings and links each one to its cause. The order is by step and, within a step, by the position of the record in
 * the event file, which is the order of execution.
 * @param findings all that rules found in this trial, in any order
 */
export function diagnose(trial: Trial, findings: readonly Finding[]): readonly DiagnosedFinding[] {
  expectTrial('diagnose', trial)
  expectArray('diagnose', 'findings', 'an array of findings', findings)
  const byStep = new Map<number, Finding[]>()
  for (const finding of findings) {
    entryOf(byStep, finding.step, () => []).push(finding)
  }
  const diagnosis = new Diagnosis(trial)
  return [...byStep].sort(([a], [b]) => a - b).flatMap(([, ofStep]) => diagnosis.add(ofStep))
}

// ------------------------------------------------------------------------------------------------- the table

/** A kind of finding. Some rules have several. */
interface Aspect {
  /** The rule's name; in parentheses the kind, if the rule has several. */
  readonly name: string
  readonly is?: (finding: Finding) => boolean
  /** True if it concerns the weights that the step began with. It then comes before findings about the step's records. */
  readonly isFirst?: boolean
  /** True if it concerns a step as a whole, or a change since earlier steps. It then comes after findings about the step's records. */
  readonly isLast?: boolean
}

const isSmall = ({ value, threshold }: Finding): boolean => value !== null && threshold !== null && value < threshold
const isMeasured = ({ value }: Finding): boolean => value === null || Number.isFinite(value)

/** The order of findings about one record: causes before consequences. */
const ASPECTS: readonly Aspect[] = [
  { name: 'ExplodingNorm', isFirst: true },
  { name: 'CheckInputImages' },
  { name: 'NLPSequenceRatio' },
  { name: 'ExplodingTensor' },
  { name: 'PoorWeightInitialization (variances)', is: finding => finding.tensor !== null && !isSmall(finding) },
  { name: 'TensorVariance (large)', is: finding => isMeasured(finding) && !isSmall(finding) },
  { name: 'SaturatedActivation' },
  { name: 'DeadRelu' },
  { name: 'AllZero (gradient)', is: ({ tensor }) => isGradient(tensor) },
  { name: 'AllZero (other)' },
  { name: 'VanishingGradient' },
  { name: 'TensorVariance (small)', is: isMeasured },
  { name: 'TensorVariance (not finite)' },
  { name: 'ClassImbalance' },
  { name: 'Confusion' },
  { name: 'SimilarAcrossRuns' },
  { name: 'DivergesFrom' },
  { name: 'ReplicaDrift', isLast: true },
  // A moment that has been zero from the start belongs to a weight without a gradient; one that became zero was lost.
  { name: 'OptimizerReset (empty)', is: ({ value, threshold }) => value === 0 && threshold === 0, isLast: true },
  { name: 'OptimizerReset (lost)', isLast: true },
  { name: 'PoorWeightInitialization (gradients)', is: ({ tensor }) => tensor !== null, isLast: true },
  { name: 'WeightUpdateRatio (large)', is: finding => !isSmall(finding), isLast: true },
  { name: 'WeightUpdateRatio (small)', isLast: true },
  { name: 'UnchangedTensor (loss)', is: ({ tensor }) => isLoss(tensor), isLast: true },
  { name: 'UnchangedTensor (other)', isLast: true },
  { name: 'UnchangedRows', isLast: true },
  { name: 'Overfit', isLast: true },
  { name: 'PoorWeightInitialization (loss)', isLast: true },
  {
    name: 'LossNotDecreasing (validation)',
    is: ({ mode, tensor }) => mode === 'EVAL' || /^(validation|eval|test)-/.test(tensor ?? ''),
    isLast: true,
  },
  { name: 'LossNotDecreasing (training)', isLast: true },
  { name: 'Overtraining', isLast: true },
]

/**
 * The relation of two findings that lets the earlier one explain the later: any, those of the same tensor, or, for a weight, those of its
 * gradient (of any gradient, if the names don't show whose it is).
 */
export type Link = 'any' | 'tensor' | 'gradient'

/** The consequences of weights that were thrown far off. */
const OF_LARGE_WEIGHTS = [
  'ExplodingTensor',
  'ExplodingNorm',
  'TensorVariance (large)',
  'DeadRelu',
  'SaturatedActivation',
  'LossNotDecreasing',
]

/** The direct consequences of each cause. A rule's name alone stands for all its aspects. docs/rules.md gives the reasons. */
export const CONSEQUENCES: readonly (readonly [cause: string, link: Link, follows: readonly string[]])[] = [
  [
    'ExplodingTensor',
    'any',
    [
      'ExplodingTensor',
      'TensorVariance (large)',
      'TensorVariance (not finite)',
      'DeadRelu',
      'SaturatedActivation',
      'WeightUpdateRatio (large)',
      'PoorWeightInitialization',
      'LossNotDecreasing',
      'Overfit',
      'Overtraining',
      'ClassImbalance',
      'Confusion',
      'SimilarAcrossRuns',
      'DivergesFrom',
      'UnchangedRows',
    ],
  ],
  ['WeightUpdateRatio (large)', 'any', OF_LARGE_WEIGHTS],
  [
    'PoorWeightInitialization (variances)',
    'any',
    [
      'ExplodingTensor',
      'WeightUpdateRatio (large)',
      'DeadRelu',
      'SaturatedActivation',
      'AllZero (gradient)',
      'VanishingGradient',
      'PoorWeightInitialization',
    ],
  ],
  ['TensorVariance (large)', 'any', ['SaturatedActivation', 'PoorWeightInitialization (variances)']],
  ['TensorVariance (small)', 'any', ['VanishingGradient', 'PoorWeightInitialization']],
  [
    'SaturatedActivation',
    'any',
    ['AllZero (gradient)', 'VanishingGradient', 'PoorWeightInitialization', 'LossNotDecreasing'],
  ],
  [
    'DeadRelu',
    'any',
    [
      'DeadRelu',
      'AllZero (gradient)',
      'VanishingGradient',
      'PoorWeightInitialization',
      'LossNotDecreasing',
      'UnchangedRows',
      'OptimizerReset (empty)',
    ],
  ],
  ['DeadRelu', 'tensor', ['AllZero (other)', 'TensorVariance (small)', 'UnchangedTensor (other)']],
  [
    'AllZero (other)',
    'any',
    [
      'DeadRelu',
      'AllZero (gradient)',
      'VanishingGradient',
      'PoorWeightInitialization',
      'LossNotDecreasing',
      'OptimizerReset (empty)',
    ],
  ],
  ['AllZero (other)', 'tensor', ['TensorVariance (small)', 'WeightUpdateRatio (small)', 'UnchangedTensor']],
  [
    'AllZero (gradient)',
    'any',
    [
      'AllZero (gradient)',
      'VanishingGradient',
      'PoorWeightInitialization',
      'UnchangedTensor (loss)',
      'LossNotDecreasing',
      'Overtraining',
      'OptimizerReset (empty)',
    ],
  ],
  ['AllZero (gradient)', 'tensor', ['TensorVariance (small)', 'UnchangedTensor (other)']],
  ['AllZero (gradient)', 'gradient', ['WeightUpdateRatio (small)', 'UnchangedTensor (other)', 'UnchangedRows']],
  [
    'VanishingGradient',
    'any',
    [
      'VanishingGradient',
      'AllZero (gradient)',
      'PoorWeightInitialization',
      'UnchangedTensor (loss)',
      'LossNotDecreasing',
      'Overtraining',
    ],
  ],
  ['VanishingGradient', 'tensor', ['TensorVariance (small)', 'UnchangedTensor (other)']],
  ['VanishingGradient', 'gradient', ['WeightUpdateRatio (small)', 'UnchangedTensor (other)', 'UnchangedRows']],
  ['PoorWeightInitialization', 'any', ['PoorWeightInitialization']],
  ['WeightUpdateRatio (small)', 'tensor', ['UnchangedTensor (other)']],
  [
    'WeightUpdateRatio (small)',
    'any',
    ['UnchangedTensor (loss)', 'PoorWeightInitialization (loss)', 'LossNotDecreasing', 'Overtraining'],
  ],
  ['UnchangedTensor (other)', 'tensor', ['WeightUpdateRatio (small)']],
  [
    'UnchangedTensor (other)',
    'any',
    ['UnchangedTensor (loss)', 'PoorWeightInitialization (loss)', 'LossNotDecreasing', 'Overtraining'],
  ],
  ['UnchangedTensor (loss)', 'any', ['PoorWeightInitialization (loss)', 'LossNotDecreasing', 'Overtraining']],
  ['Overfit', 'any', ['LossNotDecreasing (validation)', 'Overtraining']],
  ['PoorWeightInitialization (loss)', 'any', ['UnchangedTensor (loss)', 'LossNotDecreasing', 'Overtraining']],
  ['LossNotDecreasing', 'any', ['UnchangedTensor (loss)', 'PoorWeightInitialization (loss)', 'Overtraining']],
  ['Overtraining', 'any', ['UnchangedTensor (loss)', 'LossNotDecreasing']],
  ['ClassImbalance', 'any', ['Confusion']],
  ['SimilarAcrossRuns', 'any', ['SimilarAcrossRuns', 'DivergesFrom']],
  ['DivergesFrom', 'any', ['DivergesFrom', 'SimilarAcrossRuns']],
  ['ReplicaDrift', 'any', ['ReplicaDrift']],
  ['OptimizerReset', 'any', ['OptimizerReset']],
  ['UnchangedRows', 'any', ['UnchangedRows']],
  ['ExplodingNorm', 'any', ['WeightUpdateRatio (large)', ...OF_LARGE_WEIGHTS]],
]

function ruleOf(aspect: string): string {
  return aspect.replace(/ \(.*/, '')
}

const RANKS = new Map(ASPECTS.map((aspect, rank) => [aspect, rank]))
const OF_RULE = new Map<string, Aspect[]>()
for (const aspect of ASPECTS) OF_RULE.set(ruleOf(aspect.name), [...(OF_RULE.get(ruleOf(aspect.name)) ?? []), aspect])

/** The causes that can explain each aspect, each with its link. */
const EXPLANATIONS = new Map<string, (readonly [cause: string, link: Link])[]>()
for (const [cause, link, follows] of CONSEQUENCES) {
  for (const [from, to] of expanded(cause).flatMap(from => follows.flatMap(expanded).map(to => [from, to] as const))) {
    EXPLANATIONS.set(to, [...(EXPLANATIONS.get(to) ?? []), [from, link]])
  }
}

function expanded(name: string): readonly string[] {
  return OF_RULE.get(name)?.map(aspect => aspect.name) ?? [name]
}

/** A user's rule has a single aspect. */
function aspectOf(finding: Finding): Aspect {
  return OF_RULE.get(finding.rule)?.find(({ is }) => is?.(finding) ?? true) ?? { name: finding.rule }
}

// ---------------------------------------------------------------------------------------------- the diagnosis

/** An earlier finding. */
interface KnownFinding {
  readonly step: number
  readonly tensor: string | null
  readonly worker: string | null
  /** The index of its cause; its own index if it is one. */
  readonly cause: number
}

/** A tensor with NaN or infinities. */
interface Exploded {
  /** The last finding of them. */
  readonly finding: Finding
  /** The step before which it is known not to have been judged since. */
  until: number
}

/** The first findings of an aspect, in order and up to a limit, and the first of each tensor. */
interface Firsts {
  readonly overall: KnownFinding
  readonly candidates: KnownFinding[]
  readonly byTensor: Map<string | null, KnownFinding>
}

const EXPLODING_TENSOR = 'ExplodingTensor'
/** The limit for findings of one aspect that are candidates for causes. */
const MAX_CANDIDATES = 64

/** `diagnose` for findings that arrive step by step. */
export class Diagnosis {
  readonly #trial: Trial
  readonly #flow: Flow
  #count = 0
  /** The first finding by rule, tensor and worker. Later ones have the same cause. */
  readonly #begun = new Map<string, Map<string | null, Map<string | null, KnownFinding>>>()
  readonly #firsts = new Map<string, Firsts>()
  /** True if the names of gradients identify their weights. */
  #namesWeights = false
  /** The tensors with NaN or infinities, by name and worker. */
  readonly #exploded = new Map<string, Exploded>()

  constructor(trial: Trial) {
    expectTrial('Diagnosis', trial)
    this.#trial = trial
    this.#flow = new Flow(trial)
  }

  /** @param findings all findings of one step; steps must ascend */
  add(findings: readonly Finding[]): readonly DiagnosedFinding[] {
    return this.#ordered(findings).map(({ finding, aspect }) => this.#diagnosed(finding, aspect))
  }

  #ordered(findings: readonly Finding[]): readonly { readonly finding: Finding; readonly aspect: Aspect }[] {
    const [first] = findings
    if (first === undefined) return []
    const workerSteps = stateOf(this.#trial).catalog.atStep(first.step)
    const placeOf = ({ tensor, worker }: Finding): number => {
      if (tensor === null) return Number.POSITIVE_INFINITY
      const saved = workerSteps.find(workerStep =>
        worker === null ? workerStep.tensors.has(tensor) : workerStep.worker === worker,
      )
      if (saved === undefined) return Number.POSITIVE_INFINITY
      return recordsInOrder(saved).get(tensor) ?? Number.POSITIVE_INFINITY
    }
    return findings
      .map(finding => ({ finding, aspect: aspectOf(finding), place: placeOf(finding) }))
      .sort(
        (a, b) =>
          turnOf(a.aspect) - turnOf(b.aspect) ||
          (a.aspect.isLast
            ? rankOf(a) - rankOf(b) || compareNumbers(a.place, b.place)
            : compareNumbers(a.place, b.place)) ||
          rankOf(a) - rankOf(b),
      )
  }

  #diagnosed(finding: Finding, aspect: Aspect): DiagnosedFinding {
    const index = this.#count++
    const begun = this.#begunBy(finding)
    const first = begun.get(finding.worker)
    // NaN that disappeared and comes back is a new fault.
    if (first && aspect.name !== EXPLODING_TENSOR) return { ...finding, cause: first.cause }
    const explanation = this.#explanationOf(finding, aspect)
    const { step, tensor, worker } = finding
    const known = { step, tensor, worker, cause: explanation?.cause ?? index }
    begun.set(finding.worker, known)
    this.#remember(finding, aspect, known)
    return { ...finding, cause: explanation?.cause ?? null }
  }

  #explanationOf(finding: Finding, { name }: Aspect): KnownFinding | undefined {
    const possible = (EXPLANATIONS.get(name) ?? []).flatMap(([cause, link]) => {
      const firsts = this.#firsts.get(cause)
      if (firsts === undefined || (cause === EXPLODING_TENSOR && !this.#isExploded(finding.step))) return []
      return this.#linked(firsts, link, finding, cause === name) ?? []
    })
    return possible.reduce<KnownFinding | undefined>(
      (a, b) => (a === undefined || b.cause < a.cause ? b : a),
      undefined,
    )
  }

  /** The first findings of the same rule and tensor, by worker. */
  #begunBy({ rule, name, tensor }: Finding): Map<string | null, KnownFinding> {
    // A class's name has no line breaks.
    const byTensor = entryOf(this.#begun, `${rule}\n${name}`, () => new Map())
    return entryOf(byTensor, tensor, () => new Map())
  }

  #linked(
    { candidates, byTensor }: Firsts,
    link: Link,
    finding: Finding,
    isSameAspect: boolean,
  ): KnownFinding | undefined {
    const { step, tensor, worker } = finding
    if (link === 'tensor') return byTensor.get(tensor)
    if (link === 'gradient' && this.#namesWeights) {
      return GRADIENTS.map(prefix => byTensor.get(prefix + tensor)).find(known => known)
    }
    return candidates.find(
      known =>
        // Workers don't affect each other within a step.
        (known.step < step || worker === null || known.worker === null || known.worker === worker) &&
        this.#flow.reaches(known, finding, isSameAspect),
    )
  }

  /** True if NaN or infinities persist: some tensor had them when it was last judged before a step. */
  #isExploded(step: number): boolean {
    for (const [key, exploded] of this.#exploded) {
      if (!this.#hasPassed(exploded, step)) return true
      this.#exploded.delete(key)
    }
    return false
  }

  /** True if a tensor was judged without a finding before a step. */
  #hasPassed(exploded: Exploded, step: number): boolean {
    const { tensor, worker } = exploded.finding
    const wasJudged = judgedFor(exploded.finding)
    const saved = stateOf(this.#trial).catalog.byTensor.get(tensor!) ?? NO_WORKER_STEPS
    const end = saved.before(step)
    for (let i = saved.before(exploded.until); i < end; i++) {
      const at = saved.at(i)!
      if ((worker === null || at.worker === worker) && wasJudged(at.step, tensor!)) return true
    }
    exploded.until = Math.max(exploded.until, step)
    return false
  }

  /** True if a tensor is, by its name, the gradient of another. */
  #isNamed(tensor: string | null): boolean {
    const prefix = GRADIENTS.find(prefix => tensor?.startsWith(prefix))
    return prefix !== undefined && stateOf(this.#trial).catalog.byTensor.has(tensor!.slice(prefix.length))
  }

  #remember(finding: Finding, { name }: Aspect, known: KnownFinding): void {
    const { tensor, worker } = finding
    this.#namesWeights ||= this.#isNamed(tensor)
    if (name === EXPLODING_TENSOR) {
      this.#exploded.set(JSON.stringify([tensor, worker]), { finding, until: finding.step + 1 })
    }
    let firsts = this.#firsts.get(name)
    const isNewFault = name === EXPLODING_TENSOR && firsts !== undefined && firsts.overall.cause < known.cause
    if (firsts === undefined || isNewFault) {
      firsts = { overall: known, candidates: [], byTensor: new Map() }
      this.#firsts.set(name, firsts)
    }
    if (firsts.candidates.length < MAX_CANDIDATES) firsts.candidates.push(known)
    if (!firsts.byTensor.has(tensor)) firsts.byTensor.set(tensor, known)
  }
}

/** The prefixes that hooks put before a weight's name for its gradient. */
const GRADIENTS: readonly string[] = ['gradient/', 'gradients/']

function isGradient(tensor: string | null): boolean {
  return tensor !== null && /gradient/i.test(tensor)
}

function isLoss(tensor: string | null): boolean {
  return tensor !== null && /loss|^(train|validation|eval|test)-/i.test(tensor)
}

function turnOf({ isFirst = false, isLast = false }: Aspect): number {
  return Number(isLast) - Number(isFirst)
}

function rankOf({ aspect }: { readonly aspect: Aspect }): number {
  return RANKS.get(aspect) ?? ASPECTS.length
}

/** A difference of two infinities would be NaN. */
function compareNumbers(a: number, b: number): number {
  return a < b ? -1 : a > b ? 1 : 0
}
